package sim

import (
	"strings"
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

// An Extend is carried out, its answer is lost, and a copy of it comes when the shorter lease is over: the
// client hears that there is no such tenure, and another one had the lock meanwhile.
func TestAnExtendThatIsToldNoMayHaveBeenCarriedOut(t *testing.T) {
	s, err := Parse("late", `# A shorter lease
nodes 2
seed 2
at 0s B: acquire door lease=1s
at 100ms E: acquire door lease=1s
at 100ms drop E->S2 request #2
at 600ms E: extend door lease=300ms
at 635ms drop S2->E request-reply
run 1.4s
`)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{})
	if err != nil || !r.Held() {
		t.Fatal(err, r.Failure, r.Violations)
	}
	if r.Count("extend.extended") != 1 || r.Count("extend.not-found") != 1 || r.Count("grant.granted") != 2 {
		t.Errorf("it did not come to that: %v", r.counters)
	}
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

// clientsRunner is a program that looks for a run in which clients do not agree, whatever else is broken.
const clientsRunner = `package main

import (
	"fmt"

	"ticketing/sim"
)

func main() {
	for seed := uint64(1); seed <= 200; seed++ {
		r, err := sim.Search{Faults: "harsh"}.Run(seed, sim.Options{KeepGoing: true})
		if err != nil {
			panic(err)
		}
		for _, v := range r.Violations {
			if v.Invariant == "clients-agree" {
				fmt.Println("at seed", seed, v.Detail)
				return
			}
		}
	}
	fmt.Println("nothing")
}
`

// judgedAnyway plants that what clients saw is judged though a server has broken a rule already. So what
// shows is what they can see by themselves.
func judgedAnyway() planted.Mistake {
	return planted.Mistake{File: "sim/check.go", Is: "		if len(w.broken) > 0 {\n			return\n		}\n"}
}

// Each is a promise that a server breaks behind its clients' backs: they are told, and it is not so.
func TestClientsThatWereToldWhatIsNotSoDoNotAgree(t *testing.T) {
	t.Parallel()
	for name, mistakes := range map[string][]planted.Mistake{
		"nothing": nil,
		"a grant is answered before a majority has it": {{
			File: "raft/replication.go", Is: "n := reached(c, c.durable(), func(p *peer) Index { return p.matchIndex })",
			Instead: "n := c.log.lastIndex()",
		}},
		"a grant is answered and not kept": {{
			File: "fsm/table.go", Is: "		t.put(e.Key, Tenure{Token: t.tokens,", Instead: "		if t.tokens%8 == 0 {\n			return Result{Kind: Granted, Token: t.tokens}\n		}\n		t.put(e.Key, Tenure{Token: t.tokens,",
		}},
		"a reader is shown another owner": {{
			File: "fsm/table.go", Is: "Owner: e.Owner", Instead: "Owner: e.Key",
		}},
		"an extension is answered and not done": {{
			File: "fsm/replica.go", Is: "case result.Kind == Granted || result.Kind == Extended:", Instead: "case result.Kind == Granted:",
		}},
	} {
		found := planted.Run(t, clientsRunner, nil, append(mistakes, judgedAnyway())...)
		t.Logf("%s: %.60s", name, found)
		if name == "nothing" && found != "nothing" || name != "nothing" && !strings.HasPrefix(found, "at seed ") {
			t.Errorf("%s: the search finds %s", name, found)
		}
	}
}
