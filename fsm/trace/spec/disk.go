package spec

import (
	"slices"

	"ticketing/fsm/trace"
)

// disk is the durable part of a server's variables. To the specification every variable that it
// names persistent is durable at once; here that takes a while, and a crash in between takes the
// action back, of which nobody has been told.
type disk struct {
	term   uint64
	vote   string
	log    []trace.EntryRecord
	writes []write // that are not finished, oldest first

	finished uint64 // the number of the last one that took effect
}

type write struct {
	record  *trace.WriteRecord
	log     []trace.EntryRecord // the server's, as it was handed over
	entries []trace.EntryRecord
	done    bool
}

func (d *disk) begin(w *trace.WriteRecord, log []trace.EntryRecord) {
	made := write{record: w, log: log}
	if w.First > 0 {
		made.entries = log[w.First-1 : w.Last]
	}
	d.writes = append(d.writes, made)
}

// synced is a write that is finished. It takes effect once all earlier ones have.
func (j *judge) synced(s *server, e *trace.Event) error {
	d := &s.disk
	if e.Write.Seq <= d.finished { // it was told that before it lost power, or while it was paused
		return nil
	}
	i := slices.IndexFunc(d.writes, func(w write) bool { return w.record.Seq == e.Write.Seq })
	if i < 0 {
		return j.refuse(s, "write %d is finished, which was not begun", e.Write.Seq)
	}
	d.writes[i].done = true
	for len(d.writes) > 0 && d.writes[0].done {
		d.store(&d.writes[0])
		d.finished = d.writes[0].record.Seq
		d.writes = d.writes[1:]
	}
	if uint64(e.Write.Term) != d.term || int(e.Write.Last) != len(d.log) {
		return j.refuse(s, "its disk has term %d and %d entries, and by the writes %d and %d",
			e.Write.Term, e.Write.Last, d.term, len(d.log))
	}
	return nil
}

func (d *disk) store(w *write) {
	d.term, d.vote = uint64(w.record.Term), ""
	if w.record.Vote != 0 {
		d.vote = trace.NodeName(w.record.Vote)
	}
	if b := w.record.Snapshot; b != nil {
		if i := int(b.Index); i > len(d.log) || d.log[i-1].Term != b.Term {
			d.log = w.log[:i:i]
		}
	}
	if len(w.entries) > 0 {
		first := int(w.entries[0].Index)
		d.log = append(d.log[:first-1:first-1], w.entries...)
	}
}

// begin is a start: what the server has must be what its disk has.
func (s *server) begin(e *trace.Event) {
	s.disk.writes, s.disk.finished = nil, 0 // they are counted anew
	base := 0
	if e.Snapshot != nil {
		base = int(e.Snapshot.Index)
	}
	log := s.disk.log
	s.now = seen{input: e, log: log[:min(base, len(log))], state: e.State}
}

// restarted is Restart(i).
func (j *judge) restarted(s *server) error {
	d := &s.disk
	if s.now.input.Kind == trace.KindStart { // a scenario may give it a log to begin with
		state := s.now.input.State
		d.log, d.term, d.vote = s.now.log, uint64(state.Term), voteOf(state)
	}
	if !sameLogs(d.log, s.now.log) {
		return j.refuse(s, "Restart: it begins with %d entries, and its disk had %d, or they differ", len(s.now.log), len(d.log))
	}
	s.log, s.term, s.vote = d.log, d.term, d.vote
	s.restart(s.now.input)
	j.did("Restart")
	return j.compare(s)
}
