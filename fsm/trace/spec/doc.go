// Package spec judges traces by Raft's published TLA+ specification (Ongaro, raft.tla). It is an
// outside judge: the guards of the specification's actions are written down here once more, as
// plainly as Go can, and nothing of package raft is called. So a mistake of ours has to be made
// twice, in two ways, to go unseen.
//
// # How it works
//
// [Check] keeps for each server the specification's variables. An input of a server, with the
// entries and the state that followed, is one or more of the specification's actions in a row;
// docs/specification.md has the table. The judge carries those actions out on its own variables, and
// then the server's term, role, vote, log and commitIndex in the trace have to be what it came to.
// A message has to be one that an action could have sent.
//
// What the specification does not have is let through by name and counted, see [Report]: a vote
// before the vote, snapshots, changes of the servers, reads. Each may change only what it is for.
//
// # Reading order
//
// spec.go (the variables and the way through a trace), actions.go (the actions), input.go (which
// input is which actions), messages.go (what may be sent), disk.go (what survives a crash).
package spec
