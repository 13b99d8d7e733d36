package rpc

import (
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
	if len(w.Entries) > 0 && !d.forgets {
		d.durable.Entries = append(d.durable.Entries[:w.Entries[0].Index-1], w.Entries...)
	}
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
