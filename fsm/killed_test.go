package fsm

import (
	"fmt"
	"strings"
	"testing"

	"ticketing/raft"
)

// A victim is a server alone that is killed at one of the moments between which its disk does
// something, or it takes what there is to do. What it has applied by then is only in its memory.
type victim struct {
	*cluster
	steps, at int
	killed    bool
	applied   int // entries that were carried out and in no snapshot on the disk when it was killed
	repeated  int // requests that were carried out before they were made again
}

// step lets the disk do one thing. A snapshot is slower than the writes that come meanwhile.
func (v *victim) step() {
	n := v.node(1)
	v.steps++
	switch {
	case v.steps > 1000: // some twenty would do
		v.fatal("a request is not answered")
	case v.steps == v.at:
		v.killed, v.applied = true, len(n.applied)
		v.crash(1)
		v.restart(1)
		v.do(1, (*Replica).ElectionTimeout)
	case len(n.writes) > 0 && (n.saving == nil || v.steps%3 > 0):
		v.saveOne(n)
	case n.saving != nil:
		v.keep(n)
	default:
		v.take(n)
	}
}

// leads lets it become the leader.
func (v *victim) leads() {
	for v.status(1).Role != raft.Leader {
		v.step()
	}
}

// request makes a request until it is answered, and once more if the server was killed meanwhile:
// who has no answer cannot know. An answer that is given right before the kill does not arrive.
func (v *victim) request(q Request) string {
	v.leads()
	before := v.killed
	call := v.ask(1, q)
	for v.answer(call) == "" || v.steps+1 == v.at {
		v.step()
		if v.killed != before {
			v.leads()
			before, call = v.killed, v.ask(1, v.again(call))
		}
	}
	answer, again := strings.CutSuffix(v.answer(call), " again")
	if again {
		v.repeated++
	}
	return answer
}

// lives lets a victim do the same as every other one, and tells what the table is in the end.
func lives(t *testing.T, at int) (v *victim, holds string) {
	c := newCluster(t, 1, Rules{}, func(c *Config) { c.SnapshotEvery = 3 })
	c.failure = fmt.Sprintf("it was killed before step %d", at)
	c.node(1).slow = true
	v = &victim{cluster: c, at: at}
	v.do(1, (*Replica).ElectionTimeout)
	for _, q := range []Request{
		acquire(1, "door"), acquire(2, "gate"), release(1, "door", 1), acquire(3, "door"),
		extend(2, "gate", 2), release(3, "door", 3), acquire(1, "vault"), release(2, "gate", 2),
		acquire(2, "door"), acquire(3, "gate"),
	} {
		holds += v.request(q) + " "
	}
	table := v.node(1).Table()
	for key, tenure := range table.Tenures() {
		holds += fmt.Sprintf("%s #%d ", key, tenure.Token)
	}
	return v, holds + fmt.Sprintf("next %d", table.Tokens()+1)
}

// C11: a server is killed between carrying a command out and remembering that it has. There is no
// such memory beside the table: both come from the snapshot and the log. So each command is carried
// out once in effect, wherever the server is killed.
func TestAServerThatIsKilledAnywhereCarriesOutEachCommandOnce(t *testing.T) {
	whole, want := lives(t, 0)
	behind, repeated, inMemory := 0, 0, 0
	for at := 1; at <= whole.steps; at++ {
		v, holds := lives(t, at)
		if !v.killed {
			t.Fatalf("it was not killed before step %d of %d", at, whole.steps)
		}
		same(t, fmt.Sprintf("killed before step %d", at), want, holds)
		behind += v.counts["restarted behind a snapshot"]
		inMemory += min(1, v.applied)
		repeated += v.repeated
	}
	if behind < 5 || repeated < 5 || inMemory < 10 {
		t.Errorf("of %d kills %d were behind a snapshot, %d with commands that only the memory had "+
			"carried out, and %d requests were made again that had been carried out",
			whole.steps, behind, inMemory, repeated)
	}
}
