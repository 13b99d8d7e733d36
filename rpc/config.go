package rpc

import (
	"context"
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// Config is what a node is told once.
type Config struct {
	ID      raft.ServerID
	Addrs   map[raft.ServerID]string // where each listens with which the cluster begins; see members.go
	Cluster uint64                   // the same on all servers of a cluster, and on no others

	// See raft.Config. 0 stands for 1 s and 100 ms: a shorter wait takes a busy machine for a dead
	// one.
	ElectionTimeout, HeartbeatTimeout time.Duration

	// The shortest lease that is accepted. 0 stands for twice the longest election timeout: what a
	// client holds should outlive its leader.
	LeastLease time.Duration

	// TokenFloor is what the cluster's tokens start above; see fsm.Config. It is a part of what the
	// cluster is: let Cluster differ where it does, and servers that differ in it refuse each other.
	TokenFloor fsm.Token

	// SnapshotEvery is after how many applied entries this server takes a snapshot, behind which its log
	// then begins; 0 stands for never by itself. Servers may differ in it.
	SnapshotEvery raft.Index

	// Keep is how many entries before a snapshot's end stay in memory for peers that are behind, see
	// raft.Config. 0 stands for 100,000, unless KeepNone says that it is meant.
	Keep     raft.Index
	KeepNone bool

	// TLS is for the listener and for connections to peers, see LoadTLS; nil stands for none.
	TLS *tls.Config

	// Dial connects to a peer, and must give up when the context ends. nil stands for TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Rules to leave out, for demonstrations of what they are for. The zero value leaves out none.
	Rules fsm.Rules

	// PreVote and CheckQuorum taken away, for the same purpose; see raft.Config.
	NoPreVote, NoCheckQuorum bool

	// Decide Grants on the applied table only, for the same purpose; see fsm.Config.
	GrantOnApplied bool

	Log *slog.Logger // nil stands for slog.Default

	// Trace takes down what the node does. Nodes in one process may share one; nil stands for none.
	Trace *trace.Recorder
}

const (
	maxBatch  = 256       // entries in one AppendEntries; an entry has at most some 600 bytes
	window    = 8         // unanswered AppendEntries with entries at one peer
	chunkSize = 256 << 10 // bytes of a snapshot in one message, which others wait behind
	// keep is more than are appended while a snapshot is on its way: of the largest table, that takes
	// some seconds, at some 10,000 a second. A peer that gets one and finds what follows gone needs
	// another, and so on. They take 10 to 70 MB.
	keep = 100_000

	maxWrites  = 1  // unfinished writes with which clients have to wait, so that they share the next
	roomWrites = 64 // more come from peers, who stop at their window, and from timers
	maxInputs  = 1024

	// Bytes of commands that are not committed: some hundred thousand requests. A leader that commits
	// nothing any more steps down after an election timeout; until then this is what it takes.
	maxUncommitted = 64 << 20
)

func (c Config) withDefaults() Config {
	if c.ElectionTimeout == 0 {
		c.ElectionTimeout = time.Second
	}
	if c.HeartbeatTimeout == 0 {
		c.HeartbeatTimeout = 100 * time.Millisecond
	}
	if c.LeastLease == 0 {
		c.LeastLease = 4 * c.ElectionTimeout // the longest one is below twice the configured one
	}
	if c.Keep == 0 && !c.KeepNone {
		c.Keep = keep
	}
	if c.Dial == nil {
		c.Dial = dialTCP
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// raft returns what the core is told. Every process draws its election timeouts anew.
func (c Config) raft() raft.Config {
	election := raft.Time(c.ElectionTimeout.Microseconds())
	seed := rand.Uint64()
	voters := make([]raft.ServerID, 0, len(c.Addrs))
	for id := range c.Addrs {
		voters = append(voters, id)
	}
	slices.Sort(voters)
	return raft.Config{
		ID: c.ID, Voters: voters,
		ElectionTimeout:  election,
		HeartbeatTimeout: raft.Time(c.HeartbeatTimeout.Microseconds()),
		Jitter: func(i uint64) raft.Time {
			return raft.Time(rand.New(rand.NewPCG(seed, i)).Int64N(int64(election)))
		},
		MaxBatch: maxBatch, Window: window,
		PreVote: !c.NoPreVote, CheckQuorum: !c.NoCheckQuorum,
		ChunkSize: chunkSize, Keep: c.Keep, MaxUncommitted: maxUncommitted,
	}
}
