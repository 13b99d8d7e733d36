package sim

import (
	"testing"

	"ticketing/fsm"
	"ticketing/internal/planted"
)

// releases shows that a client is granted token 1 and gives it back at once, and hears this.
func releases(w *World, i *invariant, heard fsm.ResultKind) string {
	c := w.clients[0]
	q := fsm.Request{Kind: fsm.Grant, Key: "door", LeaseMS: 1000, Seq: 1}
	w.noteAsked(c, &q)
	w.now++
	w.noteHeard(c, &q, &fsm.Reply{Status: fsm.Answered, Result: fsm.Result{Kind: fsm.Granted, Token: 1}})
	w.now++
	q = fsm.Request{Kind: fsm.Release, Key: "door", Token: 1, Seq: 2}
	w.noteAsked(c, &q)
	w.now++
	w.noteHeard(c, &q, &fsm.Reply{Status: fsm.Answered, Result: fsm.Result{Kind: heard}})
	return i.end(w)
}

func showingsOfHistories() map[string][]showing {
	return map[string][]showing{"clients-agree": {
		{"a lock that was acknowledged and is lost", "no order", func(w *World, i *invariant) string {
			return releases(w, i, fsm.NotFound)
		}},
		{"a lock that is given back", "", func(w *World, i *invariant) string {
			return releases(w, i, fsm.Released)
		}},
	}}
}

// The search says that what it judged was not nothing, and how often it gave up.
func TestWhatClientsSeeInRandomRunsIsJudged(t *testing.T) {
	f, err := Search{From: 1, To: 60, Faults: "harsh"}.Explore(t.Context())
	if err != nil || f.Failed != nil {
		t.Fatal(err, f.Failed)
	}
	n, gaveUp := f.Count("histories.operations"), f.Count("histories.gave-up")
	if f.Count("histories") != 60 || n < 1000 || gaveUp > 0 || f.Count("histories.cut") > 0 {
		t.Errorf("%d operations, gave up on %d keys", n, gaveUp)
	}
}

// An answer that is turned around on its way to the client shows on no server.
func TestTheSearchFindsAnAnswerThatIsTurnedAround(t *testing.T) {
	found := planted.Run(t, searches, nil, planted.Mistake{File: "sim/client_answers.go", Is: "	w.noteHeard(c, &q, &y)\n",
		Instead: `	if y.Result.Kind == fsm.Released && q.Seq%8 == 0 {
		y.Result.Kind = fsm.NotFound
	}
	w.noteHeard(c, &q, &y)
`})
	if want := "clients-agree "; len(found) < len(want) || found[:len(want)] != want {
		t.Errorf("the search finds %s", found)
	}
}
