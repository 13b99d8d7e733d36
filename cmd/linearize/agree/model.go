package agree

import (
	"github.com/anishathalye/porcupine"

	"ticketing/fsm"
	"ticketing/sim/linear"
)

// tenure is one key of the lock table at a moment: who has it, and from when on the lease may be over.
type tenure struct {
	held  bool
	owner string
	token fsm.Token
	until int64
	last  fsm.Token // the greatest so far, of those that anybody ever names
	now   int64     // at the earliest
}

// asked is what goes into a step.
type asked struct {
	linear.Operation
	nameless []fsm.Token // what the lock may be called if no answer says so; one of them is 0: nobody names it
}

// Mistake is one in the model, for the test that a mistake shows.
type Mistake string

// The mistakes.
const (
	None          Mistake = ""
	LeasesEarly   Mistake = "a lease is over a little before its time"
	AnyMayRelease Mistake = "a Release frees the key whatever token it names"
	NobodyLeaves  Mistake = "a lock is not given back for a client that has hung up"
)

// lockTable is the table as the specification has it. What the history does not tell is guessed, in
// all ways: whether a lease was over before a step, whether a request of unknown outcome was
// carried out in it, and which token it was given.
func lockTable(mistake Mistake) porcupine.Model {
	guess := porcupine.NondeterministicModel{
		Partition: byKey,
		Init:      func() []any { return []any{tenure{}} },
		Step: func(s, input, _ any) (next []any) {
			o := input.(asked)
			for _, before := range s.(tenure).lapsed(mistake) {
				for _, after := range before.carryOut(&o, mistake) {
					next = append(next, after)
				}
			}
			return next
		},
	}
	return guess.ToModel()
}

// lapsed is the tenure as it is, and as it is when it has ended by itself.
func (s tenure) lapsed(mistake Mistake) []tenure {
	if !s.held {
		return []tenure{s}
	}
	over := s.free()
	over.now = max(s.now, s.until)
	if mistake == LeasesEarly {
		over.now = max(s.now, s.until-5)
	}
	return []tenure{s, over}
}

func (s tenure) free() tenure { return tenure{last: s.last, now: s.now} }

// carryOut returns what a table can be after an operation, nothing if it cannot have given that answer.
func (s tenure) carryOut(o *asked, mistake Mistake) []tenure {
	if s.now = max(s.now, o.Call); s.now > o.Return {
		return nil
	}
	its := s.held && (o.Token == s.token || mistake == AnyMayRelease && o.Kind == linear.Release)
	after := s
	switch {
	case o.Kind == linear.Acquire && o.Outcome == linear.Unknown:
		return append(s.granted(o, mistake, o.nameless), s)
	case o.Kind == linear.Acquire && o.Outcome == linear.OK:
		return s.granted(o, mistake, []fsm.Token{o.Token})
	case o.Kind == linear.Acquire:
		return s.when(s.held)
	case o.Kind == linear.Get && o.Token == 0:
		return s.when(!s.held)
	case o.Kind == linear.Get:
		return s.when(its && s.owner == o.Owner)
	case o.Outcome == linear.No:
		return s.when(!its)
	case o.Outcome == linear.Unknown && !its:
		return []tenure{s}
	case o.Kind == linear.Release:
		after = s.free()
	default:
		after.until = s.now + o.Lease
	}
	return after.when(its)
}

func (s tenure) when(right bool) []tenure {
	if !right {
		return nil
	}
	return []tenure{s}
}

// granted is what a Grant makes of a key that is free, for each token that it may have got.
func (s tenure) granted(o *asked, mistake Mistake, tokens []fsm.Token) (all []tenure) {
	for _, token := range tokens {
		if s.held || token != 0 && token <= s.last {
			continue
		}
		t := tenure{
			held: true, owner: o.Client, token: token, until: s.now + o.Lease,
			last: max(s.last, token), now: s.now,
		}
		if o.Left != 0 && mistake != NobodyLeaves {
			t.until = min(t.until, max(s.now, o.Left))
		}
		all = append(all, t)
	}
	return all
}

// byKey splits a history, as no operation is about two keys.
func byKey(all []porcupine.Operation) (parts [][]porcupine.Operation) {
	place := map[string]int{}
	for _, o := range all {
		key := o.Input.(asked).Key
		i, known := place[key]
		if !known {
			i = len(parts)
			place[key], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], o)
	}
	return parts
}

// prepare makes a history into what the library takes.
func prepare(all []linear.Operation) []porcupine.Operation {
	answered, nameless := map[fsm.Token]bool{0: true}, []fsm.Token{0}
	for _, o := range all {
		if o.Kind == linear.Acquire {
			answered[o.Token] = true
		}
	}
	for _, o := range all {
		if !answered[o.Token] {
			answered[o.Token], nameless = true, append(nameless, o.Token)
		}
	}
	clients := map[string]int{}
	var prepared []porcupine.Operation
	for _, o := range all {
		if _, known := clients[o.Client]; !known {
			clients[o.Client] = len(clients)
		}
		prepared = append(prepared, porcupine.Operation{
			ClientId: clients[o.Client], Input: asked{o, nameless}, Call: o.Call, Return: o.Return,
		})
	}
	return prepared
}
