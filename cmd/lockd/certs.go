package main

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ticketing/raft"
)

const certsHelp = `lockd certs makes the certificates that TLS needs, for trying it out and for
small installations: a CA, a certificate for each server, and one for clients.

  lockd certs -dir DIR [flags]

  -dir DIR      where to put them; made if it is not there
  -ids LIST     the numbers of the servers (1,2,3)
  -hosts LIST   further names and IP addresses for the servers' certificates;
                lockd and lockctl do not look at them
  -days N       how long the certificates are good (365); the CA's is for ten
                years

It overwrites nothing. Where there is a CA in DIR, it signs with that one: so a
server is added, and a certificate renewed whose files were moved away.
`

const certsAdvice = `
Give server N its own two files and the CA's certificate, and start it with

  -tls-cert %s -tls-key %s -tls-ca %s

and clients with

  -tls-cert %s -tls-key %s -tls-ca %s

No server needs %s: whoever has it can make itself a server
or a client. Keep it elsewhere. What was made now expires at %s.
`

func runCerts(args []string, stdout io.Writer) error {
	m, err := parseCerts(args, stdout)
	if err != nil {
		return err
	}
	err = m.strike()
	for _, file := range m.made {
		fmt.Fprintln(stdout, "made", filepath.Join(m.dir, file))
	}
	if err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(m.dir, name) }
	fmt.Fprintf(stdout, certsAdvice,
		at("server-N.pem"), at("server-N-key.pem"), at("ca.pem"),
		at("client.pem"), at("client-key.pem"), at("ca.pem"),
		at("ca-key.pem"), time.Now().Add(m.life).UTC().Format(time.DateOnly))
	return nil
}

func parseCerts(args []string, stdout io.Writer) (*mint, error) {
	var ids, hosts string
	var days int
	m := &mint{}
	f := flag.NewFlagSet("lockd certs", flag.ContinueOnError)
	f.StringVar(&m.dir, "dir", "", "")
	f.StringVar(&ids, "ids", "1,2,3", "")
	f.StringVar(&hosts, "hosts", "", "")
	f.IntVar(&days, "days", 365, "")
	if err := parseFlags(f, args, certsHelp, stdout); err != nil {
		return nil, err
	}
	if m.dir == "" {
		return nil, fmt.Errorf("%w: -dir is needed; see lockd certs -h", errUsage)
	}
	if days < 1 || days > 3650 {
		return nil, fmt.Errorf("%w: -days %d is not between 1 and 3650", errUsage, days)
	}
	m.life = time.Duration(days) * 24 * time.Hour
	for part := range strings.SplitSeq(ids, ",") {
		id, err := strconv.ParseUint(strings.TrimSpace(part), 10, 64)
		if err != nil || id == 0 || slices.Contains(m.ids, raft.ServerID(id)) {
			return nil, fmt.Errorf("%w: -ids: %q is not a new number from 1", errUsage, part)
		}
		m.ids = append(m.ids, raft.ServerID(id))
	}
	if hosts != "" {
		m.hosts = strings.Split(hosts, ",")
	}
	return m, nil
}
