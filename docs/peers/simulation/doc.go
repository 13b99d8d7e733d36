// Package simulation measures what a simulated hour of a cluster costs: of ours, by package sim as
// searches run it, and of go.etcd.io/raft's RawNode in an event loop of the same kind, without any of
// sim's checks. It is for benchmarks alone:
//
//	go -C docs/peers test -bench . ./simulation
package simulation
