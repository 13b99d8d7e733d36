package rpc

import (
	"fmt"
	"slices"
	"time"

	"ticketing/raft"
)

// Store is a server's disk. When Save has returned nil, the write survives; see raft.Write. When
// SaveSnapshot has, the snapshot does, from the write on that names it. One goroutine at a time calls
// Save and one SaveSnapshot, at the same time; Close comes after both.
type Store interface {
	Save(raft.Write) error
	SaveSnapshot(*raft.Snapshot) error
	Close() error
}

// write hands a write to the goroutine that saves. It returns false if the node ends first.
func (n *Node) write(w raft.Write) bool {
	if w.Seq == 0 {
		return true
	}
	w.Entries = slices.Clone(w.Entries)
	n.unfinished = append(n.unfinished, n.now())
	select {
	case n.writes <- w:
		return true
	case <-n.ctx.Done():
		return false
	}
}

// save is the goroutine that saves, until the loop has ended and all is saved. An error ends it,
// and with it the node: what it cannot remember it must not promise.
func (n *Node) save() error {
	for w := range n.writes {
		began := time.Now()
		if err := n.store.Save(w); err != nil {
			return fmt.Errorf("saving write %d: %w", w.Seq, err)
		}
		took := time.Since(began)
		n.finished <- func() { // there is room for all writes that can be unfinished
			n.unfinished = n.unfinished[1:]
			n.metrics.saved(took, len(w.Entries))
			n.replica.Saved(w.Seq)
			n.witness.saved(w.Seq)
		}
	}
	return nil
}

// hangs reports whether the disk has been at one write for so long that a leader steps down.
func (n *Node) hangs() bool {
	limit := raft.Time(n.config.ElectionTimeout.Microseconds())
	return len(n.unfinished) > 0 && n.now()-n.unfinished[0] >= limit
}
