// Package sim runs the lock service on paper: servers, network, disks, clocks and clients in
// virtual time, in one goroutine, with faults on purpose and invariants after every event. When a run
// has ended, what its clients saw is judged without a look at any server.
//
// # What is promised
//
// The servers are the product's own fsm.Replica. The same scenario, seed and rules give the same
// trace, byte for byte, on every machine. Randomness is keyed by what it is for, so that a run from
// which one thing is taken away is the same run but for what follows from that.
//
// # How it works
//
// A [Scenario] is parsed from the scenario language or made by the random search; [Run] carries it
// out in a world and returns a [Result], with a trace.Trace if asked for. All that draws or explains
// reads only the trace.
//
// # Reading order
//
// script.go (what can be said), world.go and node.go (how it happens), network.go, disk.go,
// snapshot.go, clock.go and client.go, observe.go and record.go (what is written down), check.go and the
// check_*.go (what must hold).
package sim
