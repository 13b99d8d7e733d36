package wal

import "ticketing/raft"

// An outline is what must be known of the stored log without its commands: where it begins, which
// term stands at an index, and which segment holds it. A later entry never stands in an earlier
// segment, since to write an entry is to replace all that follow.
//
// The first span begins with the base, the entry behind which the log begins: the last one that a
// snapshot includes, or 0. While a log is loaded, the base is unknown until the last marker: all
// before that begins wherever the markers before it had it begin, in segments that may be gone.
type outline struct {
	spans []span // by rising index; none only while the base is unknown
	last  raft.Index
	open  bool // the base is unknown: the first span begins with an entry like any other
}

// A span is a run of entries with one term in one segment.
type span struct {
	first   raft.Index
	term    raft.Term
	segment uint64
}

// base is the entry behind which the log begins.
func (o *outline) base() position { return position{o.spans[0].first, o.spans[0].term} }

// at returns the span that an entry is in; i is its place.
func (o *outline) at(index raft.Index) (s span, i int, ok bool) {
	for i := len(o.spans) - 1; i >= 0 && index <= o.last; i-- {
		if o.spans[i].first <= index {
			return o.spans[i], i, true
		}
	}
	return span{}, 0, false
}

// put notes entries that a segment holds. They replace all from the first one's index on. It
// reports whether they can stand there: behind the base and without a gap.
func (o *outline) put(entries []raft.Entry, segment uint64) bool {
	if len(entries) == 0 {
		return true
	}
	first := entries[0].Index
	switch {
	case first < 1:
		return false
	case o.open && (len(o.spans) == 0 || first <= o.base().index):
		o.spans = o.spans[:0]
	case first <= o.base().index || first > o.last+1:
		return false
	}
	for len(o.spans) > 0 && o.spans[len(o.spans)-1].first >= first {
		o.spans = o.spans[:len(o.spans)-1]
	}
	for _, e := range entries {
		n := len(o.spans)
		if n == 0 || o.spans[n-1].term != e.Term || o.spans[n-1].segment != segment {
			o.spans = append(o.spans, span{e.Index, e.Term, segment})
		}
		o.last = e.Index
	}
	return true
}

// begin makes a snapshot's last entry the base. If that entry stands in the log, those behind it
// stay; else the log and the snapshot are of different histories, or there is nothing in between,
// and the whole log goes. It reports which, and the first segment that is still needed: that in
// which the entry stands, or the one that is about to say so.
func (o *outline) begin(s *raft.Snapshot, segment uint64) (needed uint64, stays bool) {
	base := span{s.LastIncludedIndex, s.LastIncludedTerm, segment}
	o.open = false
	if found, i, ok := o.at(base.first); ok && found.term == base.term {
		base.segment = found.segment
		o.spans = append([]span{base}, o.spans[i+1:]...)
		return base.segment, true
	}
	o.spans, o.last = []span{base}, base.first
	return segment, false
}
