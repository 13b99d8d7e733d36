package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	"ticketing/raft"
	"ticketing/rpc"
)

// newcomer starts a server that knows nobody, and returns where it listens.
func newcomer(t *testing.T, id raft.ServerID) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig()
	config.ID = id
	n, err := rpc.Start(config, nowhere{}, raft.Durable{}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop() })
	return l.Addr().String()
}

func TestAServerIsReplacedByCommand(t *testing.T) {
	addrs := service(t, 3)
	steady(t, client(t), addrs)
	added := newcomer(t, 4)
	for _, step := range []struct{ line, prints string }{
		{"member add 4 " + added, "server 4 is a learner, at " + added},
		{"member promote 4", "server 4 votes"},
		{"member remove 1 -json", `{"change":"remove","id":1}`},
		{"member promote -timeout 9s 4", ""},
	} {
		code, stdout, stderr := lockctl(t, step.line)
		if wrong := step.prints == ""; (code != 0) != wrong || !strings.Contains(stdout, step.prints) {
			t.Errorf("%s exits with %d, prints %q and says %q", step.line, code, stdout, stderr)
		}
	}
	code, stdout, stderr := lockctl(t, "member list -json")
	var list struct {
		Index   raft.Index
		Members []memberRecord
	}
	err := json.Unmarshal([]byte(stdout), &list)
	if err != nil || code != 0 || len(list.Members) != 3 || list.Index == 0 {
		t.Fatalf("it exits with %d, prints %s and says %s: %v", code, stdout, stderr, err)
	}
	leaders := 0
	for i, m := range list.Members {
		if m.ID != raft.ServerID(i+2) || !m.Voter || m.Address == "" || m.Match == 0 {
			t.Errorf("a member is shown as %+v", m)
		}
		if m.Leader {
			leaders++
		}
	}
	_, stdout, _ = lockctl(t, "member list")
	if leaders != 1 || strings.Count(stdout, "voter") != 3 || strings.Count(stdout, "leads") != 1 ||
		!strings.Contains(stdout, added) {
		t.Errorf("%d lead:\n%s", leaders, stdout)
	}
	aligned(t, stdout, "ROLE", "ADDRESS", "BEHIND")
	eventually(t, func() bool {
		_, stdout, _ = lockctl(t, "status")
		return strings.Contains(stdout, "removed") && strings.Contains(stdout, "; stop it.")
	}, func() string { return "status does not say that one was removed:\n" + stdout })
}

func TestTheLastVotersRemovalSaysWhatToDo(t *testing.T) {
	addrs := service(t, 1)
	steady(t, client(t), addrs)
	code, stdout, stderr := lockctl(t, "member remove 1")
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 ||
		!strings.Contains(stderr, "the only one that votes; add and promote another one before") {
		t.Errorf("it exits with %d, prints %q and says %q", code, stdout, stderr)
	}
}

func TestImpossibleMembersAreOneLineThatSaysWhatToDo(t *testing.T) {
	addrs := service(t, 3)
	leader, _ := steady(t, client(t), addrs)
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"member", 2, "member list, add ID HOST:PORT"},
		{"member grow", 2, "member list, add ID HOST:PORT"},
		{"member add 4", 2, "member list, add ID HOST:PORT"},
		{"member add four 127.0.0.1:1", 2, "no server's id"},
		{"member add 0 127.0.0.1:1", 2, "no server's id"},
		{"member add 4 nowhere", 2, "missing port"},
		{"member remove 1 2", 2, "member list, add ID HOST:PORT"},
		{"member add 4 " + addrs[1], 1, "remove it first"},
		{"member add 2 127.0.0.1:1", 1, "is a member already, at " + addrs[1]},
		{"member promote 2", 1, "server 2 votes"},
		{"member promote 9", 1, "lockctl member list shows who is"},
		{"member remove 9", 1, "lockctl member list shows who is"},
	} {
		code, stdout, stderr := lockctl(t, c.line)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s exits with %d, prints %q and says %q", c.line, code, stdout, stderr)
		}
	}
	if code, _, stderr := lockctl(t, "member add 4 127.0.0.1:1"); code != 0 {
		t.Fatal(stderr)
	}
	code, _, stderr := lockctl(t, "member promote 4 -timeout 500ms")
	if code != 1 || !strings.Contains(stderr, "has not caught up") ||
		!strings.Contains(stderr, "127.0.0.1:1") {
		t.Errorf("a learner that is not there: %d, %s", code, stderr)
	}
	for i, addr := range addrs {
		if addr == leader {
			continue
		}
		code, _, stderr := lockctl(t, fmt.Sprintf("member remove 4 -at %s", addr))
		if code != 1 || !strings.Contains(stderr, "does not lead") {
			t.Errorf("server %d alone: %d, %s", i+1, code, stderr)
		}
	}
}
