package main

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"ticketing/raft"
	"ticketing/rpc"
)

// steady waits until all servers have applied the same, and returns the leader's address and a
// follower's.
func steady(t *testing.T, k *rpc.Client, addrs []string) (leader, follower string) {
	t.Helper()
	eventually(t, func() bool {
		applied := map[raft.Index]bool{}
		for _, addr := range addrs {
			s, err := k.Status(t.Context(), addr)
			if err != nil {
				t.Fatal(err)
			}
			applied[s.Applied] = true
			if s.Role == raft.Leader.String() {
				leader = addr
			} else {
				follower = addr
			}
		}
		return len(applied) == 1 && !applied[0] && leader != ""
	}, func() string { return "the servers do not agree" })
	return leader, follower
}

func TestStatusShowsEveryServerAndItsOwnCounts(t *testing.T) {
	addrs := service(t, 3)
	k := client(t)
	take(t, k, "door")
	leader, _ := steady(t, k, addrs)
	code, stdout, stderr := lockctl(t, "status -json")
	var all cluster
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || code != 0 || len(all.Servers) != 3 {
		t.Fatalf("it exits with %d, prints %s and says %s: %v", code, stdout, stderr, err)
	}
	for i, s := range all.Servers {
		left := int64(0)
		if len(s.Leases) == 1 && s.Leases[0].Key == "door" && s.Leases[0].Token == 1 {
			left = s.Leases[0].LeftMS
		}
		if s.Addr != addrs[i] || s.ID != uint64(i+1) || s.Leader != leader || s.Term == 0 ||
			s.Applied == 0 || s.Commit < s.Applied || s.Last < s.Commit || s.Held != 1 ||
			s.Tokens != 1 || len(s.Hash) != 16 || s.Hash != all.Servers[0].Hash ||
			(s.Role == "leader") != (s.Addr == leader) || left <= 0 || left > 60000 {
			t.Errorf("server %d is shown as %+v", i+1, s)
		}
	}
	if !strings.Contains(stdout, `"token":"1"`) {
		t.Errorf("the token is no string: %s", stdout)
	}
	_, text, _ := lockctl(t, "status")
	aligned(t, text, "LEADER", "TABLE")
	if n := strings.Count(text, all.Servers[0].Hash[:8]); n != 3 {
		t.Errorf("the hash is there %d times:\n%s", n, text)
	}
	if !regexp.MustCompile(`\ndoor  1 ( +(59.*s|1m0s)){3}\n`).MatchString(text) {
		t.Errorf("no remaining time is there:\n%s", text)
	}
}

// aligned checks that columns of the first table begin where their headings do.
func aligned(t *testing.T, text string, headings ...string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	for _, h := range headings {
		at := strings.Index(lines[0], h)
		for _, l := range lines[1:4] {
			if at < 2 || len(l) <= at || l[at] == ' ' || l[at-1] != ' ' {
				t.Errorf("the column %s is not aligned:\n%s", h, text)
			}
		}
	}
}

func TestStatusSaysWhoDoesNotAnswer(t *testing.T) {
	addrs := service(t, 1)
	code, stdout, stderr := lockctl(t, "status -addrs "+addrs[0]+",127.0.0.1:1")
	if code != 1 || !strings.Contains(stdout, "silent") ||
		!strings.Contains(stdout, "127.0.0.1:1") || !strings.Contains(stdout, addrs[0]+"  1") ||
		!strings.Contains(stderr, "not all servers answer") {
		t.Errorf("it exits with %d, prints\n%sand says %s", code, stdout, stderr)
	}
	code, stdout, _ = lockctl(t, "status -json -at "+addrs[0])
	if code != 0 || strings.Count(stdout, `"addr"`) != 1 {
		t.Errorf("asked for one server, it exits with %d and prints %s", code, stdout)
	}
}

// Equal logs make equal tables, or something is very wrong.
func TestTablesThatDifferAreNoticed(t *testing.T) {
	at := func(applied raft.Index, hash uint64, err error) health {
		return healthOf("", rpc.StatusReply{Applied: applied, Hash: hash}, err)
	}
	down := errors.New("down")
	for _, c := range []struct {
		name    string
		servers []health
		want    raft.Index
	}{
		{"equal", []health{at(7, 1, nil), at(7, 1, nil), at(7, 1, nil)}, 0},
		{"one is behind", []health{at(7, 1, nil), at(6, 2, nil), at(7, 1, nil)}, 0},
		{"the last differs", []health{at(7, 1, nil), at(6, 3, nil), at(7, 2, nil)}, 7},
		{"two that are behind", []health{at(7, 1, nil), at(6, 2, nil), at(6, 3, nil)}, 6},
		{"one is down", []health{at(7, 1, nil), at(7, 2, down)}, 0},
		{"one is down, and one is new",
			[]health{at(0, 5, nil), at(7, 1, down), at(7, 1, nil), at(7, 2, nil)}, 7},
	} {
		if got := differ(c.servers); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestOneServerCanBeAsked(t *testing.T) {
	addrs := service(t, 3)
	k := client(t)
	l := take(t, k, "door")
	leader, follower := steady(t, k, addrs)
	for line, want := range map[string]int{
		"acquire gate -try": 75, "acquire gate": 75, "lock gate -conflict-code 9 -- false": 9,
		"release door -token 1": 1,
	} {
		command, rest, _ := strings.Cut(line, " ")
		code, _, stderr := lockctl(t, command+" -at "+follower+" "+rest)
		says := follower + " does not lead; the one at " + leader + " does"
		if code != want || !strings.Contains(stderr, says) {
			t.Errorf("%s at a follower exits with %d and says %q", line, code, stderr)
		}
	}
	for _, line := range []string{"get door", "list"} {
		_, stdout, stderr := lockctl(t, line+" -local -at "+follower)
		if !strings.Contains(stdout, "door  1 ") || !strings.Contains(stdout, "may be stale") ||
			!strings.Contains(stdout, follower) || !strings.Contains(stdout, "index ") {
			t.Errorf("%s at a follower prints\n%sand says %s", line, stdout, stderr)
		}
		_, stdout, _ = lockctl(t, line+" -local -json -at "+follower)
		if !strings.Contains(stdout, `"from":"`+follower+`","applied":`) ||
			!strings.Contains(stdout, `"token":"1"`) {
			t.Errorf("%s at a follower prints %s", line, stdout)
		}
		_, stdout, _ = lockctl(t, line+" -local -addrs 127.0.0.1:1,"+follower)
		if !strings.Contains(stdout, "what "+follower+" has applied") {
			t.Errorf("%s, of whoever answers, prints\n%s", line, stdout)
		}
		for _, where := range []string{"", " -at " + follower, " -at " + leader} {
			code, stdout, stderr := lockctl(t, line+where)
			if code != 0 || !strings.Contains(stdout, "door  1 ") || strings.Contains(stdout, "stale") {
				t.Errorf("%s exits with %d, prints\n%sand says %s", line+where, code, stdout, stderr)
			}
		}
	}
	if code, _, stderr := lockctl(t, "lock gate -at "+leader+" -- true"); code != 0 {
		t.Errorf("lock at the leader exits with %d and says %s", code, stderr)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
