package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"ticketing/fsm"
	"ticketing/raft/wal"
)

const initHelp = `lockd init says, before a server's first start, what all tokens of its cluster
are greater than. It is for a cluster in the place of one whose disks are lost:
what its locks protect has seen tokens already, and refuses smaller ones.

  lockd init -dir DIR -token-floor N [-cluster NAME]

  -dir DIR         the directory of this server's log to be, made if it is not
                   there; its server is not started yet
  -token-floor N   not less than any token that was ever given out, from 1 to
                   9223372036854775807
  -cluster NAME    as for lockd (ticketing)

Run it for each server, with the same floor: servers whose floors differ refuse
each other. It cannot be changed afterwards. A directory without it has floor 0.
`

// maxFloor leaves as many tokens above it, and fits where what a lock protects stores one as a
// signed number.
const maxFloor = 1<<63 - 1

const defaultCluster = "ticketing"

// identity is which cluster a server belongs to. It is written once, before the first start, and is
// no flag: a flag may be forgotten at one of a hundred starts, and tokens would fall.
type identity struct {
	cluster string
	floor   fsm.Token
}

// number is how servers and logs tell clusters apart. The floor is part of it, so that servers
// which would give out different tokens refuse each other, and each other's logs.
func (i identity) number() uint64 {
	sum := fnv.New64a()
	sum.Write([]byte(i.cluster)) // it never fails
	if i.floor > 0 {
		fmt.Fprintf(sum, "\x00%d", i.floor) // 0 is in no name that a command line can give
	}
	return sum.Sum64() | 1 // never 0
}

func (i identity) String() string {
	return fmt.Sprintf("-cluster %s with token floor %d", i.cluster, i.floor)
}

// text is what stands in the file. The sum is of what stands above it.
func (i identity) text() []byte {
	return sealed(fmt.Appendf(nil, "ticketing identity 1\ncluster %q\ntoken-floor %d\n",
		i.cluster, i.floor))
}

// sealed puts a sum below a text.
func sealed(text []byte) []byte {
	sum := fnv.New64a()
	sum.Write(text)
	return fmt.Appendf(text, "sum %016x\n", sum.Sum64())
}

func identityFile(dir string) string { return filepath.Join(dir, "identity") }

// identify tells which cluster the server of a directory belongs to.
func (o options) identify(dir string) (identity, error) {
	i, err := readIdentity(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // that one the log explains
		return identity{cluster: o.cluster}, nil
	case err != nil:
		return i, err
	case o.named && o.cluster != i.cluster:
		return i, fmt.Errorf("%w: -cluster %s, but lockd init has made %s for a server of %s; leave "+
			"-cluster out, or name this server's own directory", errUsage, o.cluster, dir, i.cluster)
	}
	return i, nil
}

// readIdentity reads what init has written. What it has not written is damaged.
func readIdentity(dir string) (identity, error) {
	var i identity
	text, err := os.ReadFile(identityFile(dir))
	if err != nil {
		return i, err
	}
	var cluster, floor, sum string
	_, err = fmt.Sscanf(string(text), "ticketing identity 1\ncluster %q\ntoken-floor %s\nsum %s\n",
		&cluster, &floor, &sum)
	if err == nil {
		var n uint64
		n, err = strconv.ParseUint(floor, 10, 64)
		i = identity{cluster, fsm.Token(n)}
	}
	if err != nil || !bytes.Equal(i.text(), text) {
		return i, fmt.Errorf("%s is damaged: with another token floor than before, tokens might be "+
			"given out twice; copy the file from another server of the cluster, where it is the same",
			identityFile(dir))
	}
	return i, nil
}

func (i identity) write(dir string) error { return writeDurably(identityFile(dir), i.text()) }

// writeDurably makes a file: under another name first, so that it is there whole or not at all.
func writeDurably(name string, text []byte) error {
	draft := name + ".new"
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(draft, name); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// runInit is lockd init.
func runInit(args []string, stdout io.Writer) error {
	var dir string
	var floor uint64
	i := identity{}
	f := flag.NewFlagSet("lockd init", flag.ContinueOnError)
	f.StringVar(&dir, "dir", "", "")
	f.StringVar(&i.cluster, "cluster", defaultCluster, "")
	f.Uint64Var(&floor, "token-floor", 0, "")
	if err := parseFlags(f, args, initHelp, stdout); err != nil {
		return err
	}
	i.floor = fsm.Token(floor)
	switch {
	case dir == "" || floor == 0 || floor > maxFloor:
		return fmt.Errorf("%w: -dir and a -token-floor from 1 to %d are needed; see lockd init -h",
			errUsage, uint64(maxFloor))
	case i.cluster == "":
		return fmt.Errorf("%w: -cluster needs a name, the same on all servers of the cluster", errUsage)
	}
	if err := i.found(dir); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: the tokens of cluster %s are greater than %d.\n", dir, i.cluster, floor)
	return nil
}

// found writes the identity into a directory in which no server has ever run. It holds the log's
// lock meanwhile: none is starting there either.
func (i identity) found(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.wal")) // the pattern is right
	if err == nil && len(logs) > 0 {
		return fmt.Errorf("a server has run in %s: its tokens start where they do; a token floor is "+
			"for a new cluster, in new directories", dir)
	}
	// Whose the log is, an empty one does not say.
	log, _, err := wal.Open(dir, wal.Options{Cluster: i.number(), Server: 1})
	if err != nil {
		return err
	}
	was, err := readIdentity(dir)
	switch {
	case err == nil:
		err = fmt.Errorf("%s is of %v already; that cannot be changed", dir, was)
	case errors.Is(err, fs.ErrNotExist):
		err = i.write(dir)
	}
	return errors.Join(err, log.Close())
}
