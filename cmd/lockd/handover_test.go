package main

import (
	"strings"
	"testing"

	"ticketing/raft"
)

// A leader that gets a signal hands over before it stops: nobody has to find out that it is gone.
func TestALeaderThatIsStoppedHandsOver(t *testing.T) {
	t.Parallel()
	addrs, dirs := freeAddrs(t, 3), []string{t.TempDir(), t.TempDir(), t.TempDir()}
	var programs []*program
	for i, dir := range dirs {
		programs = append(programs, serve(t, i+1, peersOf(addrs), dir))
	}
	client := dial(t, addrs...)
	last := lock(t, client, "door")
	for range 3 {
		old := 0
		eventually(t, "all follow one leader", func() bool {
			leads := status(client, addrs[old])
			for i, addr := range addrs {
				s := status(client, addr)
				if s.Role == raft.Leader.String() {
					old, leads = i, s
				}
			}
			for _, addr := range addrs {
				s := status(client, addr)
				if s.Leader != addrs[old] || s.Term != leads.Term || s.Applied != leads.Last {
					return false
				}
			}
			return true
		})
		term, asked := status(client, addrs[old]).Term, preCandidates(programs, old)
		if code := programs[old].stop(t); code != 0 {
			t.Errorf("server %d exits with %d", old+1, code)
		}
		if said := programs[old].stderr.String(); !strings.Contains(said, "handed over leadership") {
			t.Errorf("server %d does not say that it has handed over:\n%s", old+1, said)
		}
		last = lockAfter(t, client, last)
		for i, addr := range addrs {
			if s := status(client, addr); i != old && s.Term != term+1 {
				t.Errorf("server %d is in term %d after %d", i+1, s.Term, term)
			}
		}
		if now := preCandidates(programs, old); now != asked {
			t.Errorf("%d election timeouts were over, as before %d", now, asked)
		}
		programs[old] = serve(t, old+1, peersOf(addrs), dirs[old])
	}
}

// preCandidates counts in the logs of all but one how often an election timeout was over.
func preCandidates(programs []*program, but int) (count int) {
	for i, p := range programs {
		if i != but {
			count += strings.Count(p.stderr.String(), "role=pre-candidate")
		}
	}
	return count
}
