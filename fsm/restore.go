package fsm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ticketing/raft"
)

// DecodeTable reads what a table that had applied the entries up to index was written as. It accepts
// nothing else: no table that entries could not have made, and none that is written in another way.
func DecodeTable(data []byte, index raft.Index) (Table, error) {
	r := reader{rest: data, index: index}
	t, hash := r.table()
	if t.Hash() != hash {
		r.fail("the table has the hash %d, not %d", t.Hash(), hash)
	}
	if r.err != nil {
		return Table{}, fmt.Errorf("%w: line %d: %w", ErrSnapshot, r.line, r.err)
	}
	return t, nil
}

// A reader reads lines until one is wrong; from then on there are none.
type reader struct {
	rest  []byte
	line  int // the last one read
	index raft.Index
	last  Token  // the last one given out
	key   string // the last one read
	id    ClientID
	err   error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// next returns the next line.
func (r *reader) next() string {
	if r.err != nil {
		return ""
	}
	r.line++
	end := slices.Index(r.rest, '\n')
	if end < 0 {
		r.fail("it is cut off")
		return ""
	}
	line := string(r.rest[:end])
	r.rest = r.rest[end+1:]
	return line
}

// fields returns the n numbers behind a word, on a line of their own: n of them even if it is wrong.
func (r *reader) fields(word string, n int) []uint64 {
	line := r.next()
	rest, found := strings.CutPrefix(line, word+" ")
	numbers, ok := numbersOf(rest)
	if !found || !ok || len(numbers) != n {
		r.fail("%.80q is not %q and %d numbers", line, word, n)
		return make([]uint64, n)
	}
	return numbers
}

func numbersOf(text string) (numbers []uint64, ok bool) {
	numbers = make([]uint64, 0, 4)
	for more := true; more; {
		var digits string
		digits, text, more = strings.Cut(text, " ")
		n, ok := decodeUint(digits)
		if !ok {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}

// table reads all. What a line says of how many follow is believed only as far as they do follow.
func (r *reader) table() (t Table, hash uint64) {
	head := r.fields("table 1", 3)
	locks, sessions := head[1], head[2]
	if locks > maxLocks || sessions > maxSessions {
		r.fail("%d locks and %d sessions are too many", locks, sessions)
	}
	if r.err != nil {
		return Table{}, 0
	}
	t.tokens, r.last = Token(head[0]), Token(head[0])
	t.held = tenures{r.tree(&t, int(locks)), int(locks)}
	r.distinct(&t)
	t.sessions = map[ClientID]session{}
	for range sessions {
		r.session(&t)
	}
	slices.SortStableFunc(t.silences, silence.compare)
	hash = r.fields("hash", 1)[0]
	if len(r.rest) > 0 {
		r.fail("%d bytes follow", len(r.rest))
	}
	return t, hash
}

// tree reads n locks, half of them before the one on top: so the tree is built in one go, and
// balanced.
func (r *reader) tree(t *Table, n int) *branch {
	if n == 0 || r.err != nil {
		return nil
	}
	left := r.tree(t, n/2)
	b := branch{}
	b.key, b.tenure = r.lock()
	t.sum += hashTenure(b.key, b.tenure)
	return b.on(left, r.tree(t, n-n/2-1))
}

func (r *reader) lock() (key string, tenure Tenure) {
	line := r.next()
	numbers, rest, _ := strings.Cut(line, ` "`)
	owner, key, found := strings.Cut(rest, `" `)
	n, ok := numbersOf(numbers)
	if !ok || !found || len(n) != 3 || n[1] > 1<<32-1 {
		r.fail("%.80q is not a lock", line)
		return "", Tenure{}
	}
	tenure = Tenure{Token: Token(n[0]), LeaseMS: uint32(n[1]), Owner: owner, Since: raft.Index(n[2])}
	switch err := cmp.Or(checkKey(key), checkOwner(owner)); {
	case err != nil:
		r.fail("%w", err)
	case key <= r.key:
		r.fail("the key %q comes after %q", key, r.key)
	case tenure.Token == 0 || tenure.Token > r.last:
		r.fail("token %d of %d", tenure.Token, r.last)
	case tenure.Since > r.index:
		r.fail("entry %d in a snapshot up to %d", tenure.Since, r.index)
	}
	r.key = key
	return key, tenure
}

// distinct looks for a token that two locks have.
func (r *reader) distinct(t *Table) {
	var tokens []Token
	for _, tenure := range t.Tenures() {
		tokens = append(tokens, tenure.Token)
	}
	slices.Sort(tokens)
	for i := range tokens {
		if i > 0 && tokens[i] == tokens[i-1] {
			r.fail("two locks have token %d", tokens[i])
		}
	}
}

// session reads one. What it says must be such that entries could have made it.
func (r *reader) session(t *Table) {
	line := r.next()
	n, ok := numbersOf(line)
	if !ok || len(n)%4 != 3 {
		r.fail("%.80q is not a session", line)
		return
	}
	id, s := ClientID(n[0]), session{last: raft.Index(n[1]), lowest: n[2]}
	if id <= r.id || s.last > r.index {
		r.fail("session %d after %d, of entry %d in a snapshot up to %d", id, r.id, s.last, r.index)
	}
	for n = n[3:]; len(n) > 0; n = n[4:] {
		o := outcome{n[0], n[1], Token(n[3]), ResultKind(n[2])}
		if i := len(s.done); i > 0 && o.seq <= s.done[i-1].seq || n[2] > 255 || !o.possible(s.lowest, r.last) {
			r.fail("request %d of session %d, with %d as the lowest, came to %d, token %d",
				o.seq, id, s.lowest, n[2], o.token)
		}
		s.done = append(s.done, o)
	}
	r.id = id
	t.sessions[id] = s
	t.silences = append(t.silences, silence{id, s.last})
	t.sum += hashSession(id, s)
}

// possible reports whether an open request can have come to this, with so many tokens given out.
func (o outcome) possible(lowest uint64, tokens Token) bool {
	if o.seq < lowest || o.seq-lowest >= maxOpen {
		return false
	}
	switch o.kind {
	case Granted:
		return o.token > 0 && o.token <= tokens
	case ResultNoop, Released, NotFound, Extended:
		return o.token == 0
	}
	return false
}
