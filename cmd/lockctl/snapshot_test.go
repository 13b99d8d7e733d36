package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSnapshotShortensTheLogOfEachServer(t *testing.T) {
	addrs := service(t, 3)
	k := client(t)
	take(t, k, "door")
	steady(t, k, addrs)
	if _, text, _ := lockctl(t, "status"); strings.Contains(text, "snapshot") {
		t.Errorf("without a snapshot status tells of one:\n%s", text)
	}
	code, stdout, stderr := lockctl(t, "snapshot -json -at "+addrs[1])
	var one struct{ Snapshots []snapshotted }
	if err := json.Unmarshal([]byte(stdout), &one); err != nil || code != 0 || len(one.Snapshots) != 1 ||
		one.Snapshots[0].Addr != addrs[1] || one.Snapshots[0].Index == 0 || one.Snapshots[0].Bytes == 0 {
		t.Fatalf("it exits with %d, prints %s and says %s: %v", code, stdout, stderr, err)
	}
	_, text, _ := lockctl(t, "status")
	if !strings.Contains(text, "\n"+addrs[0]+"  none ") || strings.Count(text, "none") != 2 {
		t.Errorf("with a snapshot of one server status prints\n%s", text)
	}
	code, stdout, stderr = lockctl(t, "snapshot")
	if code != 0 || strings.Count(stdout, "\n") != 4 {
		t.Errorf("it exits with %d, prints\n%sand says %s", code, stdout, stderr)
	}
	var all cluster
	if _, stdout, _ = lockctl(t, "status -json"); json.Unmarshal([]byte(stdout), &all) != nil {
		t.Fatal(stdout)
	}
	for _, s := range all.Servers {
		if s.Snapshot == nil || s.Snapshot.Index == 0 || s.First == 0 {
			t.Errorf("server %d has no snapshot: %+v", s.ID, s)
		}
	}
	take(t, k, "gate") // it goes on
	code, stdout, stderr = lockctl(t, "snapshot -addrs "+addrs[0]+",127.0.0.1:1")
	if code != 1 || !strings.Contains(stdout, addrs[0]) || !strings.Contains(stderr, "not all servers") {
		t.Errorf("with one that is silent it exits with %d, prints\n%sand says %s", code, stdout, stderr)
	}
}
