package raft_test

import (
	"fmt"

	"ticketing/raft"
)

// Three servers elect the first and agree on a command. The driver is the loop: it takes what each
// core wants done, saves at once, and delivers the messages.
func Example() {
	servers := map[raft.ServerID]*raft.Core{}
	for id := raft.ServerID(1); id <= 3; id++ {
		servers[id], _ = raft.New(raft.Config{
			ID: id, Voters: []raft.ServerID{1, 2, 3},
			ElectionTimeout: 150_000, HeartbeatTimeout: 50_000, // µs
			Jitter:   func(n uint64) raft.Time { return raft.Time(id * 10_000) },
			MaxBatch: 64, Window: 4,
		}, raft.Durable{}, 0)
	}
	drive := func() {
		for busy := true; busy; {
			busy = false
			for id := raft.ServerID(1); id <= 3; id++ {
				out := servers[id].Take()
				for _, e := range out.Committed {
					fmt.Printf("server %d applies entry %d: %q\n", id, e.Index, e.Command)
				}
				for _, m := range out.Messages {
					_ = servers[m.To].Receive(m)
				}
				if out.Write.Seq > 0 { // a real driver has put it on the disk before it says so
					servers[id].Saved(out.Write.Seq)
				}
				busy = busy || len(out.Messages) > 0 || out.Write.Seq > 0
			}
		}
	}
	servers[1].Tick(160_000) // no leader has spoken for as long as server 1 waits
	drive()
	fmt.Println("server 1 is", servers[1].Status().Role)
	_, _, _ = servers[1].Propose([]byte("grant the lock"))
	drive()
	// Output:
	// server 1 applies entry 1: ""
	// server 2 applies entry 1: ""
	// server 3 applies entry 1: ""
	// server 1 is leader
	// server 1 applies entry 2: "grant the lock"
	// server 2 applies entry 2: "grant the lock"
	// server 3 applies entry 2: "grant the lock"
}
