package sim

import (
	"fmt"
	"strings"

	"ticketing/fsm"
	"ticketing/fsm/trace"
)

// A commitment is what the row about committed entries says.
type commitment struct {
	first *trace.Event // that has words
	words []string
	lock  map[string]string
	tone  tone
	old   *trace.EntryRecord // the first of those without a command
}

// applies tells what is committed: entries that no node has applied before.
func (s *teller) applies(m *moment, applied []*trace.Event) {
	c := &commitment{lock: map[string]string{}}
	for _, e := range applied {
		if entryOf(e).Index <= s.applied {
			continue
		}
		s.applied = entryOf(e).Index
		if s.isLate(entryOf(e)) {
			s.commits(m, c)
			c = &commitment{lock: map[string]string{}}
		}
		before := len(c.words)
		s.oldNoop(e, c)
		s.apply(entryOf(e), c)
		if c.first == nil && len(c.words) > before {
			c.first = e
		}
	}
	s.commits(m, c)
}

// commits makes the row.
func (s *teller) commits(m *moment, c *commitment) {
	if c.first == nil {
		return
	}
	if n := len(c.words); n > 6 {
		c.words = []string{c.words[0], "…", c.words[n-1]}
	}
	r := s.add(c.first, "committed: "+strings.Join(c.words, "; ")+s.hears(m), c.tone)
	r.lock, r.mark = c.lock, "◆"
}

// isLate reports whether an entry was to end another tenure than the one that it meets. What pictures
// are about has a row of its own, below the one that shows the tenure which it meets.
func (s *teller) isLate(entry *trace.EntryRecord) bool {
	e, err := fsm.Decode([]byte(entry.Command))
	holder, held := s.held[e.Key]
	return err == nil && s.isSubject(entry) && held && holder.token != s.meant[position{entry.Index, entry.Term}]
}

// oldNoop notes that an entry without a command is committed, if it is of a term before the one
// that commits it. The no-op of a leader's own term is no news.
func (s *teller) oldNoop(e *trace.Event, c *commitment) {
	column, ok := s.column[e.Node]
	entry, err := fsm.Decode([]byte(entryOf(e).Command))
	if !ok || err != nil || entry.Kind != fsm.Noop || entry.Text != "" || entryOf(e).Term >= s.nodes[column].term {
		return
	}
	if c.old == nil {
		c.words = append([]string{""}, c.words...)
		c.old = entryOf(e)
	}
	words := fmt.Sprintf("entry %d of term %d", entryOf(e).Index, entryOf(e).Term)
	if c.old != entryOf(e) {
		words = "entries " + span(c.old.Index, entryOf(e).Index) + " of earlier terms"
	}
	c.words[0] = words
}

// apply follows the lock table by the results alone, and says what changes.
func (s *teller) apply(entry *trace.EntryRecord, c *commitment) {
	e, err := fsm.Decode([]byte(entry.Command))
	if err != nil || e.Kind == fsm.Noop && e.Text == "" || e.Kind == fsm.Open {
		return
	}
	holder, held := s.held[e.Key]
	var token uint64
	switch result := entry.Result; {
	case strings.HasSuffix(result, " again"):
		c.words = append(c.words, s.again(e, strings.TrimSuffix(result, " again")))
	case scan(result, "Granted{%d}", &token):
		s.held[e.Key] = tenureLook{owner: ownerOf(e), token: token, fresh: true}
		s.owners[token] = ownerOf(e)
		c.words = append(c.words, ownerOf(e)+" holds "+s.keyAnd(e.Key)+fmt.Sprintf("#%d", token))
	case result == fsm.Result{Kind: fsm.GrantRejected}.String():
		c.words = append(c.words, fmt.Sprintf("Grant %s is rejected, %s holds the key",
			ownerOf(e), tenureName(holder.owner, holder.token)))
	case result == fsm.Result{Kind: fsm.Released}.String(),
		result == fsm.Result{Kind: fsm.Expired, Existed: true}.String():
		s.removes(entry, e, c)
	case result == fsm.Result{Kind: fsm.Expired}.String() && held:
		s.meets(e, holder, c)
	case result == fsm.Result{Kind: fsm.Expired}.String():
		c.words = append(c.words, s.proposal(entry)+" finds nothing to remove")
	case result == fsm.Result{Kind: fsm.Extended}.String():
		c.words = append(c.words, fmt.Sprintf("%s%s has a new lease of %s",
			s.keyAnd(e.Key), tenureName(holder.owner, holder.token), leaseWords(int64(e.LeaseMS))))
	default:
		c.words = append(c.words, s.proposal(entry)+nothingWords(e, result))
	}
}

// removes is the end of a tenure: of the one that was meant, or of another.
func (s *teller) removes(entry *trace.EntryRecord, e fsm.Envelope, c *commitment) {
	holder := s.held[e.Key]
	delete(s.held, e.Key)
	s.over[holder.token] = "is over"
	meant := s.meant[position{entry.Index, entry.Term}]
	name := tenureName(holder.owner, holder.token)
	switch {
	case meant != 0 && meant != holder.token:
		other := tenureName(s.owners[meant], meant)
		c.words = append(c.words, fmt.Sprintf("%s for %s REMOVES %s", s.proposal(entry), other, name))
		c.lock[e.Key], c.tone = "✕ gone", toneWrong
		s.over[holder.token] = "was removed"
		s.gone = append(s.gone, fmt.Sprintf("the lease of %s ends late and REMOVES %s", other, name))
	case ownerOf(e) != "" && e.Token == 0 && ownerOf(e) != holder.owner:
		words := fmt.Sprintf("%s of %s REMOVES %s", s.proposal(entry), ownerOf(e), name)
		c.words = append(c.words, words)
		c.lock[e.Key], c.tone = "✕ gone", toneWrong
		s.over[holder.token] = "was removed"
		s.gone = append(s.gone, words)
	case s.subject[position{entry.Index, entry.Term}]:
		c.words = append(c.words, s.proposal(entry)+" ends "+name)
	default:
		c.words = append(c.words, s.keyAnd(e.Key)+name+" is released")
	}
}

// meets is an Expire that finds another tenure than the one that it names.
func (s *teller) meets(e fsm.Envelope, holder tenureLook, c *commitment) {
	name := tenureName(holder.owner, holder.token)
	expired := tenureName(s.owners[uint64(e.Token)], uint64(e.Token))
	c.words = append(c.words, fmt.Sprintf("Expire #%d meets #%d: no-op, %s keeps %s",
		e.Token, holder.token, holder.owner, e.Key))
	c.lock[e.Key] = fmt.Sprintf("⊘ %d≠%d", e.Token, holder.token)
	c.tone = toneSubject
	s.late = append(s.late, fmt.Sprintf("the late Expire of %s meets %s and removes nothing", expired, name))
}

func (s *teller) keyAnd(key string) string {
	if len(s.keys) > 1 {
		return key + " "
	}
	return ""
}

// hears adds to a commit who learns at once that it was granted, or has a new lease.
func (s *teller) hears(m *moment) string {
	words := ""
	for _, e := range m.tail {
		answer := s.fate[e.ID]
		gains := answer != nil && (answer.Text == stateGranted || answer.Text == stateExtended)
		if e.Kind == trace.KindReply && gains && s.quick(e, answer) {
			if !s.told[answer.ID] {
				words += fmt.Sprintf("; %s hears it at %s", answer.Node, millis(answer.At))
			}
			s.told[answer.ID] = true
		}
	}
	return words
}

// request tells a request that nobody acts on at once. What several clients ask at almost the same
// time is one row.
func (s *teller) request(e *trace.Event) {
	c, key := clientOf(e), asking(e)
	if c.Op == opWrite || c.Op == opRead || c.Op == fsm.Open.String() || s.firstAsk[key] != e || s.quick(e, s.proposed[key]) {
		return // told elsewhere, or a repetition
	}
	if r := s.last(); r != nil && r.asking != nil && e.At-r.at < quickEnough && r.asking.Op == c.Op && r.asking.Key == c.Key {
		r.askers = append(r.askers, c.Client)
		r.words = askWords(r.askers, c)
		return
	}
	r := s.add(e, askWords([]string{c.Client}, c), toneNone)
	r.asking, r.askers = c, []string{c.Client}
}

// real tells what real clients want of a server: their own side is in no trace.
func (s *teller) real(m *moment) {
	for _, e := range m.inputs() {
		switch {
		case !isRealRequest(s.Trace, e):
		case clientOf(e).Op == trace.Disconnect:
			s.add(e, clientOf(e).Client+" leaves before it is answered", toneNone)
		default:
			s.request(e)
		}
	}
}

func askWords(who []string, c *trace.ClientRecord) string {
	switch {
	case c.Op == fsm.Release.String():
		return listed(who) + " wants to release " + c.Key
	case c.Op == fsm.Extend.String():
		return fmt.Sprintf("%s wants to extend #%d by %s", listed(who), c.Token, leaseWords(c.LeaseMS))
	case len(who) == 1:
		return who[0] + " asks for " + c.Key
	}
	return listed(who) + " ask for " + c.Key
}

// resource tells a call to what a lock guards.
func (s *teller) resource(m *moment) {
	c := clientOf(m.Event)
	does := c.Op + "s"
	words := fmt.Sprintf("%s %s with token %d", c.Client, does, c.Token)
	look := toneNone
	holder, held := s.held[c.Key]
	if !held || holder.token != c.Token {
		words = fmt.Sprintf("%s, whose #%d %s, %s", c.Client, c.Token, s.over[c.Token], does)
		if c.Token == 0 {
			words = fmt.Sprintf("%s %s without a token", c.Client, does)
		}
		look = toneWrong
	}
	switch c.Status {
	case stateRefused:
		words += fmt.Sprintf(": refused, the resource has seen #%d", c.High)
		look = toneNone
	case stateChecked:
		words += ": the resource finds its token right"
	default:
		words += ": the resource takes it"
	}
	s.add(m.Event, words, look)
}

// scan reads one number in a result that has this form.
func scan(result, form string, n *uint64) bool {
	_, err := fmt.Sscanf(result, form, n)
	return err == nil
}
