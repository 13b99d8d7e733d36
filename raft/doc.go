// Package raft is the Raft consensus algorithm as Figure 2 of the paper states it ("In Search of an
// Understandable Consensus Algorithm", Ongaro and Ousterhout, extended version), written to be
// read.
//
// # What is promised
//
// Figure 3 of the paper, whatever messages are lost, repeated, delayed or reordered, whatever the
// servers' clocks do, and however often servers crash, as long as each restarts with every write
// that it was told to make durable and reported as saved:
//
//   - Election Safety: at most one leader is elected in a given term (section 5.2).
//   - Leader Append-Only: a leader only appends to its own log (section 5.3).
//   - Log Matching: two logs that hold an entry with the same index and term are equal up to and
//     including that entry (section 5.3).
//   - Leader Completeness: an entry committed in some term is in the log of every leader of a
//     later term (section 5.4).
//   - State Machine Safety: no two servers apply different entries at one index (section 5.4.3).
//
// Progress needs more: a majority that can talk, and clocks that measure an election timeout as
// much longer than a message takes (section 5.6).
//
// # How it works
//
// [Core] is a value without goroutines, locks, clocks or randomness of its own. The driver feeds it
// inputs: the time ([Core.Tick]), messages ([Core.Receive]), commands ([Core.Propose]) and finished
// writes ([Core.Saved], [Core.SnapshotSaved]); then it takes what there is to do ([Core.Take]). No input handler saves or
// replicates anything by itself. Handlers change the state, and queue replies and vote requests;
// Take looks at what changed and derives one write and the AppendEntries from it, so any number of
// inputs share one disk flush and one message.
//
// # What the driver owes
//
//  1. Calls come from one goroutine at a time. Tick comes before any other input, with a
//     reading of this server's monotonic clock in microseconds.
//  2. After any inputs it calls Take, sends [Output.Messages] in order if it can (the network may do
//     what it likes with them), applies [Output.Committed] in order, and begins to save
//     [Output.Write]. It may send and apply before the write is finished: what must wait is held
//     back in the core. If there is [Output.Restore], the state machine becomes that first.
//  3. A write is term, vote and entries in one record: after a crash either all of it is there or
//     none. Writes take effect in the order of their sequence numbers, and an entry at or below
//     the last stored index replaces that one and all after it. Once a write has survived,
//     it calls Saved. Completions may be reported in any order.
//  4. When it likes to, it gives [Core.Compact] what its state machine is. A snapshot in
//     [Output.Save] it makes durable, beside the writes and however long that takes, and then calls
//     SnapshotSaved. The one before stays until a write names the new one ([Write.Snapshot]). From
//     that write on the log begins behind it: if the snapshot's last entry stands in the stored log,
//     with its term, what follows stays, and otherwise nothing. The write's entries come after that.
//  5. A write or a snapshot that cannot be saved stops this server. Carrying on would mean to forget
//     what was promised.
//  6. After a crash it calls New with exactly what survived, its state machine being what
//     [Durable.Snapshot] says.
//
// # Reading order
//
// message.go (the two RPCs), log.go, core.go (the state), durability.go (what waits for the disk),
// election.go, replication.go: these are Figure 2 and nothing more. Each thing beyond has a file of
// its own, and they can be read in any order: prevote.go, checkquorum.go, snapshot.go, readindex.go,
// transfer.go, membership.go, backlog.go. config.go is what a server is told, status.go what it
// tells. invariant.go states what is true of every core at every moment, and every test asks it
// after every input. Where this code departs from the paper's text, docs/divergences.md says why.
package raft
