package linear

import (
	"slices"
	"strings"
	"testing"

	"ticketing/fsm"
)

func op(client string, kind Kind, token fsm.Token, outcome Outcome, call, ret int64) Operation {
	o := Operation{Client: client, Kind: kind, Key: "door", Token: token, Outcome: outcome, Call: call, Return: ret}
	if kind == Acquire || kind == Extend {
		o.Lease = 100
	}
	return o
}

func saw(owner string, token fsm.Token, call, ret int64) Operation {
	o := op("S1", Get, token, OK, call, ret)
	o.Owner = owner
	return o
}

func shorter(o Operation, lease int64) Operation { o.Lease = lease; return o }

func onGate(o Operation) Operation { o.Key = "gate"; return o }

func hungUp(o Operation, at int64) Operation { o.Left = at; return o }

const none = "no order"

// Each wrong history has a right neighbour.
func TestAHistoryIsRightIfOneOrderExplainsIt(t *testing.T) {
	a := op("A", Acquire, 1, OK, 0, 5)
	open := op("A", Acquire, 0, Unknown, 0, Never)
	for _, c := range []struct {
		what, says string
		all        []Operation
	}{
		{"a hand-over", "", []Operation{a, op("B", Acquire, 2, OK, 1, 20), op("A", Release, 1, OK, 10, 12)}},
		{"two holders", none, []Operation{a, op("B", Acquire, 2, OK, 1, 99)}},
		{"a lease is over", "", []Operation{a, op("B", Acquire, 2, OK, 1, 100)}},
		{"a grant is lost", none, []Operation{a, op("A", Release, 1, No, 6, 9)}},
		{"a grant is lost to a reader", none, []Operation{a, saw("", 0, 6, 9)}},
		{"a reader sees the grant", "", []Operation{a, saw("A", 1, 6, 9)}},
		{"a reader sees another owner", none, []Operation{a, saw("B", 1, 6, 9)}},
		{"a client hangs up", "", []Operation{hungUp(a, 4), saw("", 0, 6, 9)}},
		{"a client hangs up later", none, []Operation{hungUp(a, 10), saw("", 0, 6, 9)}},
		{"a release happens twice", none, []Operation{a, op("A", Release, 1, OK, 6, 7), op("A", Release, 1, OK, 8, 9)}},
		{"a release may have happened", "", []Operation{a, op("A", Release, 1, Unknown, 6, Never), saw("", 0, 7, 9)}},
		{"or not", "", []Operation{a, op("A", Release, 1, Unknown, 6, Never), saw("A", 1, 7, 9)}},
		{"what was seen is lost", none, []Operation{open, saw("A", 1, 6, 7), saw("", 0, 8, 9)}},
		{"what was seen stays", "", []Operation{open, saw("A", 1, 6, 7), saw("A", 1, 8, 9)}},
		{"what was seen changes", none, []Operation{open, saw("A", 1, 6, 7), saw("A", 2, 8, 9)}},
		{"nobody has asked", none, []Operation{open, saw("B", 1, 6, 7)}},
		{"an extended lease is cut short", none, []Operation{a, op("A", Extend, 1, OK, 50, 60), saw("", 0, 110, 149)}},
		{"an extended lease is over", "", []Operation{a, op("A", Extend, 1, OK, 50, 60), saw("", 0, 110, 150)}},
		{"a lease that may be a shorter one", "", []Operation{
			func() Operation { o := a; o.Lease = 900; return o }(), op("A", Extend, 1, Unknown, 50, Never), saw("", 0, 110, 150),
		}},
		{"a shorter one is counted from the last extension", "", []Operation{
			a, op("A", Extend, 1, OK, 60, 65), shorter(op("A", Extend, 1, Unknown, 50, Never), 20), saw("", 0, 70, 80),
		}},
		{"and not from before", none, []Operation{
			a, op("A", Extend, 1, OK, 60, 65), shorter(op("A", Extend, 1, Unknown, 50, Never), 20), saw("", 0, 70, 79),
		}},
		{"an extension revives", none, []Operation{a, op("A", Release, 1, OK, 6, 7), op("A", Extend, 1, OK, 8, 9)}},
		{"an extension does not wait for a reader", "", []Operation{
			a, op("A", Extend, 1, OK, 10, 60), saw("A", 1, 50, 60), saw("", 0, 105, 110),
		}},
		{"nor comes before it is asked for", none, []Operation{
			a, op("A", Extend, 1, OK, 10, 60), saw("A", 1, 50, 60), saw("", 0, 105, 109),
		}},
		{"a lock that a reader tells of is as old as it can be", "", []Operation{
			a, op("A", Release, 1, OK, 6, 7), op("B", Acquire, 0, Unknown, 8, Never),
			op("A", Release, 1, No, 50, 55), saw("B", 2, 60, 61), saw("", 0, 107, 108),
		}},
		{"and no older", none, []Operation{
			a, op("A", Release, 1, OK, 6, 7), op("B", Acquire, 0, Unknown, 8, Never),
			op("A", Release, 1, No, 50, 55), saw("B", 2, 60, 61), saw("", 0, 106, 107),
		}},
		{"two requests of one client, and one is seen", "", []Operation{
			op("B", Acquire, 0, Unknown, 0, Never), shorter(op("B", Acquire, 0, Unknown, 20, Never), 10),
			saw("B", 1, 25, 26), saw("", 0, 29, 30),
		}},
		{"neither of two is short enough", none, []Operation{
			op("B", Acquire, 0, Unknown, 0, Never), shorter(op("B", Acquire, 0, Unknown, 20, Never), 10),
			saw("B", 1, 25, 26), saw("", 0, 28, 29),
		}},
		{"one request is seen twice", none, []Operation{open, saw("A", 1, 6, 7), saw("", 0, 107, 108), saw("A", 2, 109, 110)}},
		{"a table rejects", "", []Operation{a, op("B", Acquire, 0, No, 6, 9)}},
		{"a table rejects without reason", none, []Operation{op("B", Acquire, 0, No, 6, 9)}},
		{"a token goes back on one key, though both were asked for at once", none, []Operation{
			op("A", Acquire, 2, OK, 0, 15), saw("A", 2, 10, 20), op("B", Acquire, 1, OK, 5, 200),
		}},
		{"a token twice", "given out twice", []Operation{a, op("B", Acquire, 1, OK, 0, 200)}},
		{"a token is seen on two keys", "too", []Operation{a, onGate(saw("A", 1, 6, 9))}},
		{"a token goes back", "goes back", []Operation{op("A", Acquire, 2, OK, 0, 5), op("B", Acquire, 1, OK, 6, 200)}},
	} {
		got, gaveUp := Check(c.all, 1000)
		if (c.says == "") != (got == "") || !strings.Contains(got, c.says) || gaveUp != 0 {
			t.Errorf("%s: %q, not %q; gave up on %d", c.what, got, c.says, gaveUp)
		}
	}
}

func TestASearchThatIsTooLongIsGivenUpAndCounted(t *testing.T) {
	all := []Operation{op("A", Acquire, 1, OK, 0, 5), op("A", Release, 1, No, 6, 9)}
	if problem, gaveUp := Check(all, 0); problem != "" || gaveUp != 1 {
		t.Errorf("%q, gave up on %d", problem, gaveUp)
	}
}

// What costs is whatever can have happened at many places, or not at all.
func TestRequestsOfUnknownOutcomeAndReadersMakeNoSearchLong(t *testing.T) {
	all := []Operation{op("B", Acquire, 1, OK, 0, 5)}
	for i := range int64(25) {
		all = append(all, op("A", Acquire, 0, Unknown, 10+i, Never), op("B", Acquire, 0, Unknown, 10+i, Never))
	}
	for i := range int64(40) {
		all = append(all, saw("B", 1, 20, 60), op("B", Release, 7, No, 20, 60), saw("A", 2+fsm.Token(i/8), 100+100*i, 300+100*i))
	}
	for _, c := range []struct {
		what, says string
		last       Operation
	}{
		{"all is well", "", saw("B", 7, 4300, 4350)},
		{"a tenure that is over is seen", none, saw("A", 6, 9000, 9100)},
	} {
		history := append(slices.Clone(all), saw("", 0, 4240, 4280), c.last)
		got, gaveUp := Check(history, 20_000)
		if (c.says == "") != (got == "") || !strings.Contains(got, c.says) || gaveUp != 0 {
			t.Errorf("%s: %q, not %q; gave up on %d", c.what, got, c.says, gaveUp)
		}
	}
}
