// Package rpc runs the lock service on real machines: goroutines, sockets, a disk and clocks around
// the same fsm.Replica that the simulator drives. [Node] is a server, [Client] is for programs that
// take locks.
//
// # What is promised
//
// A Node keeps raft's contract with its driver: what it says has been saved before, and after a
// failed save it says nothing more. A Client reports what it knows: a request has succeeded, or has
// not, or it is unknown whether it has ([ErrUnknownOutcome]). It has a session with the service, in
// which a request that is sent again is carried out once: so it asks again, whoever leads, until it
// has the answer or its context ends.
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
// # What the caller owes
//
// All servers of a cluster have the same Cluster, TokenFloor and timeouts, and each its own ID and
// Store. Those with which it begins have the same Addrs as well, and those that come later have none:
// once the members were changed, the log says who they are, on every server, whatever it was started
// with. A server that has lost its Store never comes back under its ID.
// A Store's Save may take long, and SaveSnapshot longer; neither must say nil before a power cut can do
// no harm. No clock need
// be right, but clocks that do not run alike to a hundredth make clients and leases disagree.
//
// # Limits
//
// Whoever reaches the port can ask for so much and no more:
//
//	a message                       1 MiB; a longer one ends its connection
//	entries in one AppendEntries    256
//	calls unanswered at one peer    16
//	connections                     2048; for the next one the longest idle one is closed,
//	                                before all others one that sends nothing for 5 s; never a
//	                                peer's, and none with a request that is being worked on
//	requests of one connection      256 at a time; others are answered Busy
//	requests for locks, of all      1024 at a time; others are answered Busy
//	what a leader has not committed 64 MiB; what is beyond is answered Busy
//	a handshake                     5 s
//	writing an answer               one election timeout
//	requests without a written      512 of one connection; no more are read from it
//	answer
//	a write to the disk             one election timeout; then a leader steps down, so that another
//	                                one is elected; it goes on as a follower when the disk does
//	locks in one reply              500
//	bytes of a snapshot in one      262,144; one is on its way to a peer at a time
//	message
//
// # TLS
//
// With Config.TLS every connection is encrypted and both sides show a certificate of the one CA, see
// LoadTLS. The certificate of server N has the DNS names lockd and lockd-N, and is for use by servers
// and by clients. A client asks for lockd; a server that connects to peer N asks for lockd-N. What
// comes in with a certificate that has the name lockd-N may send Raft's messages as server N, all
// others may only ask for locks: whose certificates a CA gives those names decides who is a server.
// Without TLS there is no authentication: whoever can reach the port can take and release locks, and
// speak as a server.
//
// # What is logged
//
// Attributes have these names and no others:
//
//	node    the server that logs
//	role    follower, candidate or leader
//	term    the current one
//	leader  the server that leads, 0 if none is known
//	peer    another server, 0 for whoever is none
//	index   of the log's entry that says who the members are, 0 if it is the command line
//	voters  the members that vote, by id
//	learners  the members that do not vote yet
//	addr    the other end of a connection
//	reason  what is wrong with what was refused, in two or three words, see WriteMetrics
//	err     the same in full, or what has failed
//	index   the entry up to which a snapshot goes
//	bytes   its size
//	took    how long it needed on its way to the disk
//	own     true if this server has taken it, false if it is a leader's
//
// Who leads is logged when it changes. What others do wrong is logged once in ten minutes for each
// reason and peer, so that a log does not grow as fast as a stranger likes; the metrics count it all.
// No line holds a key or an owner.
//
// # Reading order
//
// config.go, node.go, save.go, snapshots.go, peer.go, beyond.go, members.go (who the peers are), serve.go
// (connections, Raft's RPCs), lock.go, read.go, transfer.go and change.go (the clients' RPCs), codec.go and
// conn.go, visitors.go (limits), blame.go (what others do wrong), tls.go, metrics.go and exposition.go;
// errors.go, client.go (connections), seek.go (from server to server), pass.go (sessions), look.go
// (what changes nothing), roster.go (the servers themselves), acquire.go, held.go, extend.go, do.go.
package rpc
