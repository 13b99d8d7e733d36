package simulation

import (
	"errors"
	"fmt"
	"io"
	"log"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// servers is how many there are, on both sides.
const servers = 3

// The times, in µs, are those that sim has unless a scenario says otherwise.
const (
	heartbeat          = 50_000
	electionTicks      = 3 // heartbeats, and etcd draws up to twice as many
	delayMin, delayMax = 5_000, 20_000
	second             = 1_000_000
)

// etcd is a cluster of RawNodes. Their disks take no time, nothing is checked, and what is committed
// is counted: all of that is in etcd's favour.
type etcd struct {
	now     int64
	queue   queue
	order   int64 // events so far: what decides between two at one time
	draws   uint64
	nodes   [servers]*raft.RawNode
	disks   [servers]*raft.MemoryStorage
	applied [servers]int // commands, not etcd's own entries
	events  int
}

func newEtcd(seed uint64) (*etcd, error) {
	e := &etcd{draws: seed}
	var voters []uint64
	for i := range uint64(servers) {
		voters = append(voters, i+1)
	}
	for i := range e.nodes {
		e.disks[i] = raft.NewMemoryStorage()
		start := &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
			Index: new(uint64(1)), Term: new(uint64(1)), ConfState: &raftpb.ConfState{Voters: voters},
		}}
		if err := e.disks[i].ApplySnapshot(start); err != nil {
			return nil, fmt.Errorf("server %d: %w", i+1, err)
		}
		n, err := raft.NewRawNode(&raft.Config{
			ID: uint64(i + 1), ElectionTick: electionTicks, HeartbeatTick: 1, Storage: e.disks[i], Applied: 1,
			MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 16, PreVote: true, CheckQuorum: true,
			Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
		})
		if err != nil {
			return nil, fmt.Errorf("server %d: %w", i+1, err)
		}
		e.nodes[i] = n
		e.schedule(event{at: e.draw(heartbeat), to: i}) // they do not tick together
	}
	return e, nil
}

func (e *etcd) schedule(v event) {
	e.order++
	v.order = e.order
	e.queue.push(v)
}

// draw returns a number below n (splitmix64).
func (e *etcd) draw(n uint64) int64 {
	e.draws += 0x9e3779b97f4a7c15
	z := e.draws
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int64((z ^ z>>31) % n)
}

// advance runs the cluster until a time, in µs.
func (e *etcd) advance(until int64) error {
	for len(e.queue) > 0 && e.queue[0].at <= until {
		v := e.queue.pop()
		e.now = v.at
		e.events++
		n := e.nodes[v.to]
		if v.message == nil {
			n.Tick()
			e.schedule(event{at: e.now + heartbeat, to: v.to})
		} else if err := n.Step(v.message); err != nil {
			return fmt.Errorf("server %d: %w", v.to+1, err)
		}
		if err := e.take(v.to); err != nil {
			return err
		}
	}
	e.now = until
	return nil
}

// propose gives a command to the leader, if there is one.
func (e *etcd) propose(data []byte) error {
	for i, n := range e.nodes {
		if n.BasicStatus().RaftState != raft.StateLeader {
			continue
		}
		if err := n.Propose(data); err != nil && !errors.Is(err, raft.ErrProposalDropped) {
			return fmt.Errorf("server %d: %w", i+1, err)
		}
		return e.take(i)
	}
	return nil
}

// take does what a RawNode asks for, in the order that its documentation gives.
func (e *etcd) take(i int) error {
	n, disk := e.nodes[i], e.disks[i]
	for n.HasReady() {
		r := n.Ready()
		if r.HardState != nil {
			if err := disk.SetHardState(r.HardState); err != nil {
				return fmt.Errorf("server %d: %w", i+1, err)
			}
		}
		if err := disk.Append(r.Entries); err != nil {
			return fmt.Errorf("server %d: %w", i+1, err)
		}
		for _, m := range r.Messages {
			at := e.now + delayMin + e.draw(delayMax-delayMin+1)
			e.schedule(event{at: at, to: int(m.GetTo()) - 1, message: m})
		}
		for _, c := range r.CommittedEntries {
			if len(c.Data) > 0 {
				e.applied[i]++
			}
		}
		n.Advance(r)
	}
	return nil
}
