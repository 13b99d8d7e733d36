package fsm

import (
	"maps"
	"slices"

	"ticketing/raft"
)

// A Tenure is one holding of a key, from its Grant to its end. It is stored as the log gave it.
type Tenure struct {
	Token   Token
	LeaseMS uint32     // how long it may last, in milliseconds; counted elsewhere
	Owner   string     // for people
	Since   raft.Index // the entry that last set the lease: a Grant or an Extend
}

// maxLocks is how many keys may be held at once: with it a table fits in a gigabyte.
const maxLocks = 1 << 20

// Table is the lock table: which keys are held, the last token given out, and the clients' sessions
// (see session.go). The zero value is the empty table before the first entry. There is no clock in
// it anywhere, so that replicas which apply the same entries at different times are equal all the
// same.
type Table struct {
	held     tenures
	tokens   Token // the last one assigned; it never falls, whatever is released
	sessions map[ClientID]session
	silences []silence // of each session one, see forget
	sum      uint64    // of the hashes of tenures and sessions, see Hash
}

// Apply carries out the command of the log entry at index. It is total: every envelope has a
// result.
func (t *Table) Apply(index raft.Index, e Envelope) Result {
	if e.Client != 0 {
		return t.applyOnce(index, e) // and unless it was carried out before, that calls Apply
	}
	tenure, held := t.Holder(e.Key)
	switch e.Kind {
	case Grant:
		// A key that is held stays with its holder. A leader behind its gate knows its whole log
		// and proposes no such Grant; without the gate contention makes many. Either way the
		// table decides, at the moment of applying, and not whoever proposed.
		//spec:rule Grant.Held
		if held {
			return Result{Kind: GrantRejected}
		}
		if t.held.size >= maxLocks {
			return Result{Kind: TableFull}
		}
		// One counter for all keys, in the table and nowhere else. It survives every removal, so
		// that no token is ever given out twice.
		//spec:rule Token.Grows
		t.tokens++
		t.put(e.Key, Tenure{Token: t.tokens, LeaseMS: e.LeaseMS, Owner: e.Owner, Since: index})
		return Result{Kind: Granted, Token: t.tokens}

	case Release:
		// With a token it releases that tenure and no other: by the time a Release is applied, the
		// one that its sender meant may be over and the key be another's. Token 0 is the row of the
		// specification, whoever holds the key.
		//spec:rule Release.Token
		if !held || e.Token != 0 && e.Token != tenure.Token {
			return Result{Kind: NotFound}
		}
		t.remove(e.Key, tenure)
		return Result{Kind: Released}

	case Expire:
		existed := held
		// A late or repeated Expire names a tenure that is over. Whoever holds the key now has
		// another token. This comparison is the whole guard: delete the line, and a late Expire
		// removes a freshly granted lock.
		//spec:rule Expire.Token
		existed = existed && tenure.Token == e.Token
		if existed {
			t.remove(e.Key, tenure)
		}
		return Result{Kind: Expired, Existed: existed}

	case Extend:
		// It names its tenure, so it never revives one that is over, and never lengthens another's.
		// Since tells the countdowns that there is a new lease to count, see Leases.
		//spec:rule Extend.Token
		if !held || e.Token != tenure.Token {
			return Result{Kind: NotFound}
		}
		t.remove(e.Key, tenure)
		tenure.LeaseMS, tenure.Since = e.LeaseMS, index
		t.put(e.Key, tenure)
		return Result{Kind: Extended}

	case Open:
		t.open(index)
		return Result{Kind: Opened, Client: ClientID(index)}
	}
	return Result{}
}

func (t *Table) put(key string, tenure Tenure) {
	t.held = tenures{t.held.top.with(key, tenure), t.held.size + 1}
	t.sum += hashTenure(key, tenure)
}

func (t *Table) remove(key string, tenure Tenure) {
	t.held = tenures{t.held.top.without(key), t.held.size - 1}
	t.sum -= hashTenure(key, tenure)
}

// Holder returns the tenure of key, and whether there is one.
func (t *Table) Holder(key string) (Tenure, bool) {
	b := t.held.find(key)
	if b == nil {
		return Tenure{}, false
	}
	return b.tenure, true
}

// Tenures goes through the held keys in order, each with its tenure, as of now: the table may change
// meanwhile.
func (t *Table) Tenures() func(yield func(key string, tenure Tenure) bool) {
	held := t.held
	return func(yield func(string, Tenure) bool) {
		w := held.walk()
		for b := w.next(); b != nil; b = w.next() {
			if !yield(b.key, b.tenure) {
				return
			}
		}
	}
}

// Keys returns the held keys in order.
func (t *Table) Keys() []string {
	var keys []string
	for key := range t.Tenures() {
		keys = append(keys, key)
	}
	return keys
}

// Len is the number of held keys.
func (t *Table) Len() int { return t.held.size }

// Tokens is the last token given out.
func (t *Table) Tokens() Token { return t.tokens }

// Clone returns an independent copy.
func (t *Table) Clone() Table {
	c := *t                             // branches are never written
	c.sessions = maps.Clone(t.sessions) // and neither are a session's parts
	c.silences = slices.Clone(t.silences)
	return c
}

// Hash is a digest of the table: equal tables have equal hashes, and different ones differ with
// near certainty. It is kept up to date by a sum over tenures and sessions, which needs no order
// and no second look at those that have not changed.
func (t *Table) Hash() uint64 { return mix(t.sum ^ mix(uint64(t.tokens))) }

// hashTenure is a digest of a tenure, mixed so that sums of them do not cancel.
func hashTenure(key string, tenure Tenure) uint64 {
	h := mix(hashText(key, tenure.Owner) ^ uint64(tenure.Token))
	h = mix(h ^ uint64(tenure.LeaseMS))
	return mix(h ^ uint64(tenure.Since))
}

// hashText is FNV-1a over two texts.
func hashText(a, b string) uint64 {
	h := uint64(14695981039346656037)
	for _, s := range [...]string{a, b} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211 // a byte that no UTF-8 text has, so that the parts stay apart
	}
	return h
}

// mix spreads each bit of x over the whole word (the finalizer of splitmix64; any like it would
// do).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
