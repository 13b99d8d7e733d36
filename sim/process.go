package sim

import (
	"fmt"
	"slices"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// This file is a server's process: its inputs, one after another, and what follows from each.

// nodeReceives is a message's arrival at a node's machine.
func (w *World) nodeReceives(n *node, f *flight) {
	if !n.alive {
		w.lose(f, "down")
		return
	}
	if n.asleep {
		w.lose(f, "asleep")
		return
	}
	if n.paused {
		n.inbox = append(n.inbox, input{flight: *f})
		return
	}
	w.process(n, f)
}

// process hands a message to the replica.
func (w *World) process(n *node, f *flight) {
	if !w.tick(n) {
		w.lose(f, "down")
		return
	}
	w.traceReceive(n, f)
	if w.door != nil && w.door.keeps(n, f) {
		w.step(n, nil)
		return
	}
	switch f.kind {
	case messageRequest:
		w.takeRequest(n, f)
		w.step(n, nil)
		return
	case messageDisconnect:
		for _, call := range sortedCalls(n.calls) {
			if open := n.calls[call]; open.client == f.from {
				delete(n.calls, call)
				w.noteLeft(f.from, &open.request)
				n.replica.Disconnect(open.request)
			}
		}
		w.step(n, nil)
		return
	}
	if w.trace != nil {
		n.voted.Asked(&n.status, &f.raft)
	}
	if err := n.replica.Receive(f.raft); err != nil {
		w.violate(wellFormed, n.name, err.Error())
		return
	}
	w.step(n, &f.raft)
}

func (w *World) takeRequest(n *node, f *flight) {
	n.nextCall++
	q := f.client.request
	q.Call = n.nextCall
	n.calls[q.Call] = openCall{client: f.from, request: q}
	n.replica.Request(q)
}

func sortedCalls(calls map[uint64]openCall) []uint64 {
	var ids []uint64
	for call := range calls {
		ids = append(ids, call)
	}
	slices.Sort(ids)
	return ids
}

// step takes what follows from an input and carries it out.
func (w *World) step(n *node, received *raft.Message) {
	w.steps++
	w.checks.step(w, n)
	for {
		out, err := n.replica.Take()
		if err != nil {
			w.stop(n, err)
			return
		}
		w.observe(n, out, received)
		received = nil
		if !w.comes(n, out, stageDecided) {
			return
		}
		again := w.begin(n, out.Write)
		if n.alive {
			again = w.beginFile(n, out.Save) || again
		}
		if !n.alive || !w.comes(n, out, stageWriting) {
			return // the disk has failed, or the power
		}
		for i := range out.Messages {
			m := &out.Messages[i]
			w.send(&flight{from: n.index, to: w.nodes[m.To-1].index, kind: kindOf(m.Body), raft: *m})
		}
		for i := range out.Replies {
			w.answer(n, &out.Replies[i])
		}
		if !w.comes(n, out, stageSent) {
			return
		}
		if !again {
			break
		}
	}
	w.arm(n)
	if w.coverage != nil {
		w.coverage.look(w, n)
	}
}

// reorderSpread is how many times as long as usual a write takes at most on a disk that finishes them
// in any order.
const reorderSpread = 4

// begin hands a write to the disk. In a manual run it is finished at once, and there is more to
// take.
func (w *World) begin(n *node, write raft.Write) (again bool) {
	if write.Seq == 0 {
		return false
	}
	d := &n.disk
	d.unsynced = append(d.unsynced, unsynced{Write: write, history: slices.Clone(n.behind)})
	d.writes++
	if d.failNext {
		w.stop(n, fmt.Errorf("write %d failed: the disk returned an error", write.Seq))
		return false
	}
	if d.cut != nil {
		w.counters[countCrashesWriting]++
		w.powerFails(n, *d.cut)
		return false
	}
	if d.stalled {
		return false
	}
	if w.manual {
		w.finish(n, len(d.unsynced)-1)
		return true
	}
	bits := draw(w.seed, streamSync, uint64(n.id), 0, d.writes)
	due := max(d.busy, w.now) + between(bits, d.syncMin, d.syncMax)
	if d.reorder {
		due = w.now + between(bits, d.syncMin, reorderSpread*d.syncMax)
	}
	d.busy = max(d.busy, due)
	w.schedule(event{at: due, kind: eventSaved, actor: n.index, slot: uint32(write.Seq), gen: n.boots})
	return false
}

// synced is the completion of a scheduled write: the oldest one, unless the disk reorders them.
func (w *World) synced(n *node, boots uint32, seq uint64) {
	nth := slices.IndexFunc(n.disk.unsynced, func(u unsynced) bool { return u.Seq == seq && !u.done })
	if n.boots != boots || !n.alive || n.disk.stalled || nth < 0 || nth > 0 && !n.disk.reorder {
		return // lost in a crash, or finished by hand
	}
	w.complete(n, nth)
}

// complete finishes the nth oldest unsynced write and tells the process, once that runs.
func (w *World) complete(n *node, nth int) {
	if nth > 0 {
		w.counters[countReordered]++
	}
	if n.paused {
		seq := n.disk.finish(nth)
		w.traceDisk(n, trace.KindSynced, seq)
		n.inbox = append(n.inbox, input{saved: seq})
		w.checks.store(w, n)
		return
	}
	if !w.tick(n) {
		return
	}
	w.finish(n, nth)
	w.step(n, nil)
}

func (w *World) finish(n *node, nth int) {
	seq := n.disk.finish(nth)
	w.traceSaved(n, seq)
	w.checks.store(w, n)
	n.replica.Saved(seq)
}

// pause stops the process; its clock, disk and network go on.
func (w *World) pause(n *node) {
	n.paused = true
	w.traceInput(n, trace.KindPause, "")
}

// suspend lets its machine sleep: the process stops, what is sent to it is lost, and its monotonic
// clock stands still unless it is one that goes on.
func (w *World) suspend(n *node, clockOn bool) {
	w.counters[countSuspends]++
	n.asleep = true
	if !clockOn {
		n.clock.sleep(w.now)
		w.paceHistory()
	}
	n.paused = true
	w.traceInput(n, trace.KindPause, "asleep")
}

// awake ends what a sleeping machine is without.
func (w *World) awake(n *node) {
	n.asleep = false
	n.clock.wake(w.now)
	w.paceHistory()
}

// resume lets it go on. It reads its clock before its queue, as a process does that wakes in its
// event loop.
func (w *World) resume(n *node) {
	w.awake(n)
	n.paused = false
	w.traceInput(n, trace.KindResume, "")
	cause := w.cause
	if !w.manual {
		w.wake(n)
	}
	queue := n.inbox
	n.inbox = nil
	for i := range queue {
		in := &queue[i]
		if !n.alive {
			return
		}
		w.cause = cause
		if in.read != 0 {
			w.askTable(n, in.read)
			continue
		}
		if in.saved == 0 && in.file == nil {
			w.process(n, &in.flight)
			continue
		}
		w.prepare(n)
		if in.file != nil {
			w.fileSaved(n, in.file)
		} else {
			w.traceSaved(n, in.saved)
			n.replica.Saved(in.saved)
		}
		w.step(n, nil)
	}
}

// stop is a node that stops itself, since it cannot go on safely.
func (w *World) stop(n *node, err error) {
	w.counters[countStopped]++
	w.traceStop(n, err)
	n.alive = false
	w.failReads(n)
	n.timerGen++
	n.timerAt = 0
	w.loseFiles(n)
	n.disk.crash(false)
	if n.replica.Failed() != nil {
		w.violate(readable, n.name, err.Error())
	}
}
