package rpc

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"ticketing/raft"
)

// disk is a store in memory. It survives its server.
type disk struct {
	mu      sync.Mutex
	sync    time.Duration // what one Save takes
	saves   int
	durable raft.Durable
	forgets bool // all entries
	fail    error
	hung    chan struct{} // a Save waits until it is closed

	kept     []*raft.Snapshot // that were saved and that no write has named yet
	noRoom   error            // for a snapshot
	hungKeep chan struct{}    // a SaveSnapshot waits until it is closed
}

// Save waits with the lock free: in a bubble nobody may wait for a lock while time goes on.
func (d *disk) Save(w raft.Write) error {
	d.mu.Lock()
	hung, sync := d.hung, d.sync
	d.mu.Unlock()
	if hung != nil {
		<-hung
	}
	if sync > 0 {
		<-time.After(sync)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return d.fail
	}
	d.saves++
	d.durable.HardState = w.HardState
	if w.Snapshot != nil {
		d.beginBehind(w.Snapshot)
	}
	if len(w.Entries) > 0 && !d.forgets {
		first := raft.Index(1)
		if s := d.durable.Snapshot; s != nil {
			first += s.LastIncludedIndex
		}
		d.durable.Entries = append(d.durable.Entries[:w.Entries[0].Index-first], w.Entries...)
	}
	return nil
}

// beginBehind lets the log begin behind a snapshot: what follows its last entry stays if that is there.
func (d *disk) beginBehind(s *raft.Snapshot) {
	if !slices.Contains(d.kept, s) {
		panic("a write names a snapshot that was not saved")
	}
	is := func(e raft.Entry) bool { return e.Index == s.LastIncludedIndex && e.Term == s.LastIncludedTerm }
	at := slices.IndexFunc(d.durable.Entries, is)
	if at < 0 {
		at = len(d.durable.Entries) - 1
	}
	d.durable.Entries = slices.Clone(d.durable.Entries[at+1:])
	d.durable.Snapshot = s
	d.kept = slices.DeleteFunc(d.kept, func(k *raft.Snapshot) bool {
		return k.LastIncludedIndex <= s.LastIncludedIndex // another may wait for its write
	})
}

func (d *disk) SaveSnapshot(s *raft.Snapshot) error {
	d.mu.Lock()
	hung := d.hungKeep
	d.mu.Unlock()
	if hung != nil {
		<-hung
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := cmp.Or(d.fail, d.noRoom); err != nil {
		return err
	}
	d.kept = append(d.kept, s)
	return nil
}

func (d *disk) Close() error { return nil }

// set changes a disk. What is being saved is saved as the disk was before.
func (d *disk) set(change func(*disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

// hang makes every Save that begins from now on wait for resume.
func (d *disk) hang() { d.set(func(d *disk) { d.hung = make(chan struct{}) }) }

func (d *disk) resume() {
	d.set(func(d *disk) {
		if d.hung != nil {
			close(d.hung)
			d.hung = nil
		}
	})
}

func (d *disk) count() (saves int) {
	d.set(func(d *disk) { saves = d.saves })
	return saves
}
