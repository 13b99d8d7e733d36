package main

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"ticketing/raft"
	"ticketing/rpc"
)

// parsePeers reads 1=host:port,2=host:port. It looks no name up: a peer's may be unknown until
// that machine is there.
func parsePeers(s string) (map[raft.ServerID]string, error) {
	addrs, owners := map[raft.ServerID]string{}, map[string]raft.ServerID{}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		number, addr, _ := strings.Cut(part, "=")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%w: -peers: %q is not ID=HOST:PORT with an ID from 1",
				errUsage, part)
		}
		id := raft.ServerID(n)
		if err := rpc.CheckAddr(addr); err != nil {
			return nil, fmt.Errorf("%w: -peers: %q: %w", errUsage, part, err)
		}
		if addrs[id] != "" {
			return nil, fmt.Errorf("%w: -peers names server %d twice", errUsage, id)
		}
		if other := owners[addr]; other != 0 {
			return nil, fmt.Errorf("%w: -peers gives the address %s to servers %d and %d",
				errUsage, addr, other, id)
		}
		addrs[id], owners[addr] = addr, id
	}
	return addrs, nil
}

// advise says what a number of servers is worth, where that may not be what was meant.
func advise(log *slog.Logger, servers int) {
	switch {
	case servers == 1:
		log.Warn("one server: while it is down nobody gets a lock, and if its disk is lost, " +
			"so is what it knew")
	case servers%2 == 0:
		log.Warn("an even number of servers survives no more losses than one server less",
			"servers", servers, "survives", (servers-1)/2)
	}
}

// loopback reports whether an address can be reached from this machine alone.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
