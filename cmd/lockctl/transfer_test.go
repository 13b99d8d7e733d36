package main

import (
	"fmt"
	"strings"
	"testing"

	"ticketing/rpc"
)

func TestATransferSaysWhoLeadsNow(t *testing.T) {
	addrs := service(t, 3)
	k := client(t)
	l := take(t, k, "door")
	leader, follower := steady(t, k, addrs)
	old, next := idOf(addrs, leader), idOf(addrs, follower)
	for line, says := range map[string]string{
		fmt.Sprint("transfer -to ", old): "it leads already; lockctl status",
		"transfer -to 9":                 "it is not a voter of the cluster; lockctl status",
	} {
		if code, stdout, stderr := lockctl(t, line); code != 2 || stdout != "" ||
			!strings.Contains(stderr, says) {
			t.Errorf("%s exits with %d, prints %q and says %s", line, code, stdout, stderr)
		}
	}
	code, stdout, stderr := lockctl(t, fmt.Sprint("transfer -to ", next))
	says := fmt.Sprintf("server %d leads, at %s, after ", next, follower)
	if code != 0 || !strings.HasPrefix(stdout, says) || stderr != "" {
		t.Errorf("it exits with %d, prints %q and says %s", code, stdout, stderr)
	}
	if now, _ := steady(t, k, addrs); now != follower {
		t.Errorf("the one at %s leads", now)
	}
	code, stdout, _ = lockctl(t, "transfer -json")
	now, _ := steady(t, k, addrs)
	says = fmt.Sprintf(`{"leader":%d,"addr":"%s","took_ms":`, idOf(addrs, now), now)
	if code != 0 || now == follower || !strings.HasPrefix(stdout, says) {
		t.Errorf("it exits with %d and prints %q; the one at %s leads", code, stdout, now)
	}
	if code, _, stderr := lockctl(t, "transfer -to 0"); code != 2 || !strings.Contains(stderr, "leave -to out") {
		t.Errorf("to server 0: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := lockctl(t, "transfer door"); code != 2 {
		t.Errorf("with a key it exits with %d and says %s", code, stderr)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Errorf("the lock has not outlived it: %v", err)
	}
}

// The last of four voters is not there, and a fifth server is a learner.
func TestATransferThatCannotBeIsOneLineThatSaysWhatToDo(t *testing.T) {
	addrs := service(t, 3, func(c *rpc.Config) { c.Addrs[4] = "127.0.0.1:1" })
	leader, _ := steady(t, client(t), addrs)
	if code, _, stderr := lockctl(t, "member add 5 127.0.0.1:2"); code != 0 {
		t.Fatal(stderr)
	}
	for _, c := range []struct {
		to   int
		code int
		says string
	}{
		{idOf(addrs, leader), 2, "it leads already; lockctl status tells the servers' ids"},
		{5, 2, "it is not a voter of the cluster; lockctl status tells the servers' ids"},
		{9, 2, "it is not a voter of the cluster; lockctl status tells the servers' ids"},
		{4, 1, "leads as before; lockctl status tells how the servers are"},
	} {
		code, stdout, stderr := lockctl(t, fmt.Sprint("transfer -to ", c.to))
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("to %d: it exits with %d, prints %q and says %q", c.to, code, stdout, stderr)
		}
	}
	if now, _ := steady(t, client(t), addrs); now != leader {
		t.Errorf("the one at %s leads, and it was the one at %s", now, leader)
	}
}

// idOf is the number of the server at an address.
func idOf(addrs []string, addr string) int {
	for i, a := range addrs {
		if a == addr {
			return i + 1
		}
	}
	return 0
}
