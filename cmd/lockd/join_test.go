package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ticketing/raft"
	"ticketing/rpc"
)

// three starts a cluster of three.
func three(t *testing.T) (addrs, dirs []string, servers []*program) {
	t.Helper()
	addrs = freeAddrs(t, 5)
	for i := range 3 {
		dirs = append(dirs, t.TempDir())
		servers = append(servers, serve(t, i+1, peersOf(addrs[:3]), dirs[i]))
	}
	return addrs, dirs, servers
}

// newMember starts a server that is to join, or has joined.
func newMember(t *testing.T, id int, dir string, more ...string) *program {
	t.Helper()
	args := []string{"-id", fmt.Sprint(id), "-dir", dir, "-election", "100ms", "-heartbeat", "20ms"}
	return start(t, append(args, more...)...)
}

func members(t *testing.T, client *rpc.Client) (ids []raft.ServerID) {
	t.Helper()
	y, err := client.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range y.Members {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestAServerJoinsAndNeedsNoJoinAfterwards(t *testing.T) {
	t.Parallel()
	addrs, dirs, servers := three(t)
	client := dial(t, addrs[:3]...)
	first := lock(t, client, "a")
	dir := filepath.Join(t.TempDir(), "4")
	four := newMember(t, 4, dir, "-join", addrs[1], "-listen", addrs[3])
	four.stderr.await(t, "joined as a learner")
	four.stderr.await(t, "msg=listening")
	if err := client.Promote(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	four.stop(t)
	lockAfter(t, client, first)
	// It counts, and is needed: of four one is down.
	servers[0].stop(t)
	four = newMember(t, 4, dir)
	four.stderr.await(t, "msg=listening")
	second := lockAfter(t, client, first)
	// That of an older command line is no reason to forget the fourth.
	servers[0] = serve(t, 1, peersOf(addrs[:3]), dirs[0])
	servers[1].stop(t)
	lockAfter(t, client, second)
	if ids := members(t, client); len(ids) != 4 {
		t.Errorf("the members are %v", ids)
	}
	// With -join in its command line it does not ask again: the others may be down.
	four.stop(t)
	four = newMember(t, 4, dir, "-join", "127.0.0.1:1")
	four.stderr.await(t, "msg=listening")
}

func TestAServerThatHasLostItsDirectoryIsNotLetIn(t *testing.T) {
	t.Parallel()
	addrs, _, _ := three(t)
	client := dial(t, addrs[:3]...)
	dir := t.TempDir()
	four := newMember(t, 4, dir, "-join", addrs[0], "-listen", addrs[3])
	four.stderr.await(t, "msg=listening")
	four.stop(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	four = newMember(t, 4, dir, "-join", addrs[0], "-listen", addrs[3])
	if code := four.end(t); code != 1 || !strings.Contains(four.stderr.String(), "forgotten its votes") ||
		!strings.Contains(four.stderr.String(), "lockctl member remove 4") {
		t.Errorf("it ends with %d:\n%s", code, four.stderr)
	}
	if err := client.Remove(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	five := newMember(t, 5, dir, "-join", addrs[0], "-listen", addrs[3])
	five.stderr.await(t, "msg=listening")
	if ids := members(t, client); len(ids) != 4 || ids[3] != 5 {
		t.Errorf("the members are %v", ids)
	}
}

// A member's file alone does not tell a join that was cut short from a log that was lost. What the
// cluster knows does: whoever votes, or has acknowledged entries, has had a log.
func TestAServerThatHasLostItsLogAloneIsNotLetIn(t *testing.T) {
	t.Parallel()
	addrs, _, _ := three(t)
	client := dial(t, addrs[:3]...)
	for i, votes := range []bool{true, false} {
		id, dir := 4+i, t.TempDir()
		args := []string{"-join", addrs[0], "-listen", addrs[3+i]}
		server := newMember(t, id, dir, args...)
		eventually(t, "what it has acknowledged", func() bool {
			y, err := client.Members(t.Context())
			return err == nil && len(y.Members) == 4 && y.Members[3].Match > 0
		})
		if votes {
			if err := client.Promote(t.Context(), raft.ServerID(id)); err != nil {
				t.Fatal(err)
			}
		}
		server.stop(t)
		logs, err := filepath.Glob(filepath.Join(dir, "*.wal"))
		if err != nil || len(logs) == 0 {
			t.Fatal(logs, err)
		}
		for _, log := range logs {
			if err := os.Remove(log); err != nil {
				t.Fatal(err)
			}
		}
		server = newMember(t, id, dir, args...)
		code, said := server.end(t), server.stderr.String()
		if code != 1 || !strings.Contains(said, fmt.Sprintf("its log is gone from %s", dir)) ||
			!strings.Contains(said, fmt.Sprintf("lockctl member remove %d", id)) {
			t.Errorf("votes %v: it ends with %d:\n%s", votes, code, said)
		}
		if err := client.Remove(t.Context(), raft.ServerID(id)); err != nil {
			t.Fatal(err)
		}
	}
}

// A join that was cut short between its two halves is begun again.
func TestAJoinThatWasCutShortIsBegunAgain(t *testing.T) {
	t.Parallel()
	addrs, _, _ := three(t)
	client := dial(t, addrs[:3]...)
	dir := t.TempDir()
	o := options{id: 4, dir: dir, cluster: defaultCluster, advertise: addrs[3]}
	if err := o.settle(identity{cluster: defaultCluster}); err != nil {
		t.Fatal(err)
	}
	four := newMember(t, 4, dir)
	if code := four.end(t); code != 2 || !strings.Contains(four.stderr.String(), "start it with -join") {
		t.Errorf("without -join it ends with %d:\n%s", code, four.stderr)
	}
	if err := client.Add(t.Context(), 4, addrs[3]); err != nil { // it was as far as this, too
		t.Fatal(err)
	}
	four = newMember(t, 4, dir, "-join", addrs[2])
	four.stderr.await(t, "is a member already")
	four.stderr.await(t, "msg=listening")
}

func TestJoinsThatCannotBeSayWhatToDo(t *testing.T) {
	t.Parallel()
	addrs, dirs, _ := three(t)
	joined := t.TempDir()
	o := options{id: 7, dir: joined, cluster: defaultCluster, advertise: addrs[4]}
	if err := o.settle(identity{cluster: defaultCluster}); err != nil {
		t.Fatal(err)
	}
	damaged := t.TempDir()
	if err := os.WriteFile(memberFile(damaged), []byte("ticketing member 1\nid 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	floor := initialised(t, "7")
	to := "-join " + addrs[0] + " -listen " + addrs[3]
	for _, c := range []struct {
		id   int
		dir  string
		args string
		code int
		says string
	}{
		{4, t.TempDir(), to + " -cluster other", 2, "it is not -cluster other"},
		{4, t.TempDir(), "-join " + addrs[0], 2, "-advertise, or -listen without it"},
		{4, t.TempDir(), "-join " + addrs[0] + " -listen :0 -insecure", 2, "no host that others can"},
		{4, t.TempDir(), "-join nonsense -listen " + addrs[3], 2, "nonsense: missing port"},
		{4, t.TempDir(), "-join : -listen " + addrs[3], 2, "no host that others can"},
		{4, t.TempDir(), "-join " + addrs[0] + ", -listen " + addrs[3], 2, "HOST:PORT"},
		{2, t.TempDir(), to, 1, "has nothing of it"},
		{4, t.TempDir(), "-join " + addrs[0] + " -listen " + addrs[3] + " -advertise " + addrs[1], 1,
			"server 2 answers"},
		{4, dirs[0], to, 2, "start it with -peers as before"},
		{4, joined, to, 2, "is the directory of server 7"},
		{7, joined, "-join " + addrs[0] + " -listen " + addrs[3] + " -advertise " + addrs[3], 2,
			"the cluster knows server 7 at"},
		{7, joined, "-peers 7=" + addrs[3], 2, "leave -peers out"},
		{4, damaged, to, 1, "is damaged: remove it"},
		{4, floor, to, 1, "and the cluster is"},
		{4, t.TempDir(), to + " -peers 4=" + addrs[3], 2, "one that comes later"},
	} {
		args := append([]string{}, strings.Fields(c.args)...)
		p := newMember(t, c.id, c.dir, args...)
		if code := p.end(t); code != c.code || !strings.Contains(p.stderr.String(), c.says) {
			t.Errorf("-id %d -dir %s %s ends with %d:\n%s", c.id, c.dir, c.args, code, p.stderr)
		}
	}
	if ids := members(t, dial(t, addrs[:3]...)); len(ids) != 3 {
		t.Errorf("the members are %v", ids)
	}
}
