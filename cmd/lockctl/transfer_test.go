package main

import (
	"fmt"
	"strings"
	"testing"
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
	if code, _, stderr := lockctl(t, "transfer door"); code != 2 {
		t.Errorf("with a key it exits with %d and says %s", code, stderr)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Errorf("the lock has not outlived it: %v", err)
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
