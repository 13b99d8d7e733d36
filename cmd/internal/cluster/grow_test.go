package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

func TestOnlyAServerWithAPlaceThatWasNeverThereEnters(t *testing.T) {
	c := &Cluster{
		addrs:     map[raft.ServerID]string{1: "127.0.0.1:1", 2: "127.0.0.1:2"},
		processes: map[raft.ServerID]*process{1: {}}, joined: map[raft.ServerID]bool{},
	}
	for _, id := range []raft.ServerID{1, 3} {
		if err := c.Enter(t.Context(), id); err == nil || c.joined[id] {
			t.Errorf("server %d enters: %v", id, err)
		}
	}
}

func TestRoutesAreRefusedWhereThereAreNoProxies(t *testing.T) {
	config := Config{Binary: "lockd", Dir: t.TempDir(), Routed: true}
	if c, err := Start(t.Context(), config); err == nil {
		t.Errorf("servers were started: %v", c.Stop())
	}
}

// The log has one address of each server, and the way there is another for each of the others.
func TestARouteLeadsThroughTheOwnProxy(t *testing.T) {
	addrs := map[raft.ServerID]string{1: "127.0.0.1:1", 2: "127.0.0.1:2", 3: "127.0.0.1:3"}
	links, err := newLinks(addrs)
	if err != nil {
		t.Fatal(err)
	}
	defer links.close()
	c := &Cluster{
		config: Config{N: 2, Later: 1, Proxied: true, Routed: true}, addrs: addrs, links: links,
		ids: []raft.ServerID{1, 2}, joined: map[raft.ServerID]bool{3: true},
	}
	for id, want := range map[raft.ServerID][]string{
		1: {"-peers", "1=127.0.0.1:1,2=127.0.0.1:2", "-routes",
			"127.0.0.1:2=" + links.proxy("S1", "S2") + ",127.0.0.1:3=" + links.proxy("S1", "S3")},
		3: {"-join", "127.0.0.1:1,127.0.0.1:2", "-routes",
			"127.0.0.1:1=" + links.proxy("S3", "S1") + ",127.0.0.1:2=" + links.proxy("S3", "S2")},
	} {
		if d := cmp.Diff(want, c.others(id)); d != "" {
			t.Errorf("server %d (-want +got):\n%s", id, d)
		}
	}
}
