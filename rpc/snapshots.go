package rpc

import (
	"context"
	"fmt"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// This file is a snapshot's way to the disk, which goes beside that of the writes, and what a server
// tells of its snapshots. When one is taken, fsm decides; how it goes to a peer, raft.

// keeping is a snapshot on its way to the disk.
type keeping struct {
	snapshot *raft.Snapshot
	foreign  bool // a leader's: nobody here has read it yet
}

// keep hands a snapshot to the goroutine that saves them. There is room: the next one is given out when
// this one is saved.
func (n *Node) keep(out *fsm.Output) {
	if s := out.Save; s != nil {
		n.snapshots <- keeping{s, s.LastIncludedIndex > n.replica.Core().Status().LastApplied}
	}
	if out.Restored != 0 {
		n.log.Info("a leader's snapshot has become the table", "index", uint64(out.Restored))
	}
}

// saveSnapshots is the goroutine that saves them, until the loop has ended and all is saved. It is not
// the one of the writes, as clients wait for those and a snapshot takes long. An error ends the node as
// one of a write does: a disk that is full or broken does not get better by itself, and the log would
// grow. What the disk had, it has still.
func (n *Node) saveSnapshots() error {
	for k := range n.snapshots {
		began, s := time.Now(), k.snapshot
		var table *fsm.Table
		if k.foreign {
			t, err := n.fsm.ReadSnapshot(s)
			if err != nil {
				return fmt.Errorf("refusing a leader's snapshot: %w", err)
			}
			table = &t
		}
		if err := n.store.SaveSnapshot(s); err != nil {
			return fmt.Errorf("saving the snapshot up to entry %d: %w", s.LastIncludedIndex, err)
		}
		took := time.Since(began)
		n.finished <- func() { n.kept(s, table, took) } // there is room for one
	}
	return nil
}

// kept takes in that a snapshot is on the disk. The table is that of a leader's.
func (n *Node) kept(s *raft.Snapshot, table *fsm.Table, took time.Duration) {
	n.log.Info("a snapshot is on the disk", "index", uint64(s.LastIncludedIndex), "bytes", len(s.Data),
		"took", took, "own", table == nil)
	if table != nil {
		n.replica.SnapshotRead(*table)
		n.metrics.installed++
	} else {
		n.metrics.taken++
	}
	n.metrics.snapshotBytes += uint64(len(s.Data))
	n.metrics.snapshotSave.add(took)
	n.newest = n.now()
	n.replica.SnapshotSaved(s.LastIncludedIndex)
	n.witness.kept(s)
}

// take is the replica's Take. It notes for how long all else had to wait for a part of a snapshot.
func (n *Node) take() (*fsm.Output, error) {
	busy := func() bool { return n.replica.Compacting() != 0 || n.replica.Recounting() }
	before, began := busy(), time.Now()
	out, err := n.replica.Take()
	if before || busy() || out.Restored != 0 {
		n.metrics.longestStep = max(n.metrics.longestStep, time.Since(began))
	}
	return out, err
}

// SnapshotArgs and SnapshotReply are those of Lock.Snapshot. It begins a snapshot of the server that is
// asked, whether it leads or not, and does not wait until it is there: Lock.Status tells.
type (
	SnapshotArgs  struct{}
	SnapshotReply struct {
		Roster
		Status Status
		Leader string
		Index  raft.Index // the entry up to which it goes: this one, one that was under way, or the last
	}
)

func (y *SnapshotReply) outcome() (Status, string) { return y.Status, y.Leader }

// SnapshotInfo is the last snapshot on a server's disk.
type SnapshotInfo struct {
	Index raft.Index // the entry up to which it goes, 0 if there is none
	Bytes int
	AgeMS int64 // since it was there; of one from before the server's start, since that
}

// Snapshot begins a snapshot. If there is nothing to gain, it is content with what there is.
func (l lockService) Snapshot(_ *SnapshotArgs, y *SnapshotReply) error {
	return read(l.session, true, y, &y.Status, func(_ Status, leader string) SnapshotReply {
		r := l.node.replica
		begun := r.Compact() == nil // or there is one that will do: the last, or one under way
		index := r.Compacting()
		if index == 0 {
			index = l.node.lastSnapshot().Index
		}
		if begun {
			l.node.log.Info("a snapshot was asked for", "index", uint64(index))
		}
		return SnapshotReply{Status: OK, Leader: leader, Index: index}
	})
}

// lastSnapshot tells of the last one on the disk. The loop calls it.
func (n *Node) lastSnapshot() SnapshotInfo {
	s := n.replica.Core().Snapshot()
	if s == nil {
		return SnapshotInfo{}
	}
	return SnapshotInfo{s.LastIncludedIndex, len(s.Data), int64(n.now()-n.newest) / 1000}
}

// Snapshot makes the server at addr take a snapshot of all that it has applied, whether it leads or
// not, and waits until it is on that server's disk. It returns the entry up to which the snapshot goes.
// If there is one already that goes as far, or one is under way, that will do.
func (c *Client) Snapshot(ctx context.Context, addr string) (SnapshotInfo, error) {
	var y SnapshotReply
	if err := c.askOne(ctx, addr, "Lock.Snapshot", &SnapshotArgs{}, &y); err != nil {
		return SnapshotInfo{}, err
	}
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		s, err := c.Status(ctx, addr)
		if err != nil {
			return SnapshotInfo{}, err
		}
		if s.Snapshot.Index >= y.Index {
			return s.Snapshot, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return SnapshotInfo{}, fmt.Errorf("waiting for the snapshot of %s up to entry %d, which is "+
				"under way: %w", addr, y.Index, err)
		}
	}
}

// compaction is about snapshots.
func (s *snapshot) compaction(t *exposition) {
	t.family("snapshots_total", "counter", "Snapshots on the disk since the start, this server's own and "+
		"those of a leader that it got because it was too far behind.")
	t.value(s.taken, "from", "self")
	t.value(s.installed, "from", "leader")
	t.family("snapshot_bytes_total", "counter", "Bytes in these snapshots.")
	t.value(s.snapshotBytes)
	t.histogram("snapshot_write_seconds", "How long one took on its way to the disk.", &s.snapshotSave)
	t.family("snapshot_longest_step_seconds", "gauge", "For how long all else had to wait at most for a "+
		"part of a snapshot, or until one had become the table.")
	t.sample("", seconds(s.longestStep))
	t.family("snapshot_index", "gauge", "The last entry in the last snapshot, 0 if there is none.")
	t.value(uint64(s.last.Index))
	t.family("snapshot_last_bytes", "gauge", "The size of the last snapshot.")
	t.value(uint64(s.last.Bytes))
	t.family("first_index", "gauge", "The first entry that is still in the log.")
	t.value(uint64(s.first))
}
