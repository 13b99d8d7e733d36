// Package rpc runs the lock service on real machines: goroutines, sockets, a disk and clocks around
// the same fsm.Replica that the simulator drives. [Node] is a server, [Client] is for programs that
// take locks.
//
// # What is promised
//
// A Node keeps raft's contract with its driver: what it says has been saved before, and after a
// failed save it says nothing more. A Client reports what it knows: a request has succeeded, or has
// not, or it is unknown whether it has ([ErrUnknownOutcome]), and it never sends a request for a
// lock again unless it knows that the first one came to nothing or is still where it was.
//
// A Lock's Done is closed at the local deadline, with no network needed. That is as much as a
// client can know about its lock. What the lock protects should compare tokens, see package fsm.
//
// # How it works
//
// One goroutine owns the Replica, and all else reaches it by handing it functions to call. It
// collects all that wait, takes what follows, gives the write to a goroutine that saves, and sends.
//
// Servers and clients speak net/rpc. Its methods return no errors, since an error would arrive
// without its type and without the reply: the reply has a [Status]. A handler cannot see its caller
// leave; so each connection has services of its own, and when its Read fails, which happens as soon
// as the other side closes it, all that it waits for is cancelled. A caller that leaves between
// the handler's return and the arrival of the answer goes unnoticed; then the lease ends the lock.
//
// There is no authentication: whoever can reach the port can take and release locks.
//
// # Reading order
//
// config.go, node.go, peer.go, serve.go (connections, Raft's RPCs), lock.go (the clients' RPCs),
// conn.go; client.go (connections), seek.go (from server to server), acquire.go, held.go.
package rpc
