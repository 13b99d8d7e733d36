// Package fsm is the lock service that Raft replicates: the commands and what each does to the lock
// table, when a leader proposes what, and [Replica], which joins these with a raft.Core into one
// value. Like raft it computes and does nothing else: no goroutine, lock, clock or randomness.
//
// # What is promised
//
// Whatever messages, clocks, disks and servers do while a majority's synced writes survive:
//
//   - All replicas that have applied the same entries hold the same table.
//   - Tokens grow strictly with every grant, of any key, for ever.
//   - A tenure (one holding of a key, named by its token) is removed only by a committed command
//     that names it, or by a Release that names none. In particular a late Expire never removes a lock that
//     was granted in the meantime.
//
// What is not promised: that a client which believes to hold a lock is alone in that. Its clock, or
// a pause, or a leader's clock may be wrong. Where that matters, what the lock protects must
// compare tokens: accept a write only if no greater token has been seen.
//
// # How it works
//
// A log entry is an [Envelope]: who asks, and the [Command]. [Table.Apply] is the specification,
// and has no clock in it. [Leases] counts down on this server's own clock, from its own apply, and
// says when to propose an Expire; only the committed Expire removes anything. [Replica] decides
// what a leader proposes. Each of its precautions (see [Rules]) makes harmful log orders rarer;
// none makes them impossible. The comparison in Table.Apply does.
//
// What stands in the table's place in a snapshot is the table of one moment, which [Replica] writes a
// part in each Take, while the server goes on: by itself after [Config.SnapshotEvery] entries, or when
// [Replica.Compact] asks for it. A server that is given one starts the countdowns of its leases anew.
//
// # What the driver owes
//
// The same as raft's driver, for the same reasons, see there; and to hand each [Reply] to its call.
// If the caller has gone by the time that Take returns a Granted, the driver says so with
// [Replica.Undelivered], since the replica has counted the call as answered. It sends no Release of
// its own: the client may be back already, and have heard of its lock by another call.
//
// # Reading order
//
// command.go, table.go, tenures.go, session.go, lease.go, replica.go, leader.go, ahead.go, requests.go,
// reads.go, members.go; then snapshot.go, restore.go and compact.go.
package fsm
