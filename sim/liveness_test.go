package sim

import (
	"fmt"
	"testing"
	"time"

	"ticketing/fsm/trace"
	"ticketing/raft"
)

// What is promised of progress is promised of a cluster as it is configured by default, in election
// timeouts: docs/liveness.md says what and why. Each promise is measured here, and each measure is
// shown a cluster that does not keep it.

// mostTimeouts is how many election timeouts the promises allow.
const mostTimeouts = 10

// worldOf plays a scenario and returns its world as it stands then.
func worldOf(t *testing.T, s *Scenario) *World {
	t.Helper()
	w, err := prepareRun(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.play(s, false); err != nil {
		t.Fatalf("%s: %v, %v", s.Name, err, w.broken)
	}
	return w
}

// waits lets a run go on until something holds, at most for so long, and returns how long that took.
func (w *World) waits(most trace.Time, holds func() bool) (took trace.Time, ok bool) {
	begin := w.now
	for !holds() {
		if !w.next(begin + most) {
			return most, false
		}
	}
	return w.now - begin, true
}

// faultsUntil is the random run of a seed up to some moment in the midst of its faults.
func faultsUntil(t *testing.T, seed uint64) *Scenario {
	t.Helper()
	s, err := Plan(seed, "harsh", 0)
	if err != nil {
		t.Fatal(err)
	}
	end := between(draw(seed, streamPlan, 98, 0, 0), 2*trace.Second, chaosEnd)
	var lines []Line
	for _, line := range s.Lines {
		switch c := line.Command.(type) {
		case Until, Heal, RunFor: // what a whole run ends with
			continue
		case At:
			if micros(c.Time) > end {
				continue
			}
		case SetConfig:
			c.PreVote, c.CheckQuorum = nil, nil
			line.Command = c
		}
		lines = append(lines, line)
	}
	s.Lines = append(lines, Line{Command: RunFor{For: duration(end)}})
	return s
}

// repair ends all faults: of the links, the clocks, the disks and the servers.
func (w *World) repair(t *testing.T) {
	t.Helper()
	none := 0
	right := LinkSpec{
		DelaySet: true, DelayMin: time.Millisecond, DelayMax: 20 * time.Millisecond,
		TailSet: true, LossPPM: &none, DuplicatePPM: &none,
	}
	commands := []Command{
		Heal{}, Hold{Again: true}, SetNetwork{LinkSpec: right},
		SetDisk{Node: Everyone, Do: "ok"}, Restart{Node: Everyone},
	}
	for _, n := range w.nodes {
		if n.alive && n.paused {
			commands = append(commands, Resume{Node: n.id})
		}
		commands = append(commands, SetClock{Actor: n.name, RatePPM: trueRate})
	}
	for _, c := range commands {
		if err := w.do(c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAfterAllFaultsThereIsALeaderWithinTenElectionTimeouts(t *testing.T) {
	const seeds = 400
	var most float64
	without := 0 // a leader when the faults end
	for seed := uint64(1); seed <= seeds; seed++ {
		w := worldOf(t, faultsUntil(t, seed))
		w.repair(t)
		if w.followed() == nil {
			without++
		}
		took, ok := w.waits(mostTimeouts*w.config.election, func() bool { return w.followed() != nil })
		if !ok {
			t.Errorf("seed %d: no leader after %d election timeouts", seed, mostTimeouts)
		}
		most = max(most, float64(took)/float64(w.config.election))
	}
	t.Logf("%d of %d runs had no leader; with one after at most %.1f election timeouts", without, seeds, most)
	if without < 30 {
		t.Errorf("only %d of %d runs had no leader when the faults ended: too few to say anything", without, seeds)
	}
}

// partial cuts links of a cluster of five. S1, S2 and S3 stay connected with each other; of all other
// links each direction is cut or not, as the seed has it.
func (w *World) partial(seed uint64) (cut int) {
	for from := range 5 {
		for to := range 5 {
			whole := from < 3 && to < 3
			if from == to || whole || draw(seed, streamPlan, 99, uint64(from), uint64(to))&1 == 0 {
				continue
			}
			w.setCut([]Actor{w.nodes[from].name}, []Actor{w.nodes[to].name}, true)
			cut++
		}
	}
	return cut
}

// standstill is the longest time without a new entry committed anywhere, in election timeouts, while
// a fault as partial draws it lasts. Whoever believes that it leads is given something to propose.
func standstill(t *testing.T, seed uint64, config string) (timeouts float64, cut int) {
	t.Helper()
	s, err := Parse("partial.txt", fmt.Sprintf(
		"# Some links are cut\nnodes 5\nseed %d\n%s\ntimeout S%d\nuntil converged\n", seed, config, seed%5+1))
	if err != nil {
		t.Fatal(err)
	}
	w := worldOf(t, s)
	cut = w.partial(seed)
	var committed raft.Index
	last, longest := w.now, trace.Time(0)
	for end := w.now + 60*w.config.election; w.now < end && !w.halted; {
		w.advance(w.now + w.config.election/10)
		for _, n := range w.nodes {
			if n.status.Role == raft.Leader {
				if err := w.do(Propose{Node: n.id, Text: "x"}); err != nil {
					t.Fatal(err)
				}
			}
			if n.status.CommitIndex > committed {
				committed, last = n.status.CommitIndex, w.now
			}
		}
		longest = max(longest, w.now-last)
	}
	if w.halted {
		t.Fatalf("seed %d: %v", seed, w.broken)
	}
	return float64(longest) / float64(w.config.election), cut
}

func TestWhileAMajorityIsConnectedThereIsProgressUnderAnyPartialPartition(t *testing.T) {
	t.Parallel()
	seeds := int(wide(100, 300))
	var most float64
	cuts := 0
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		timeouts, cut := standstill(t, seed, "config election=150ms")
		if timeouts > mostTimeouts {
			t.Errorf("seed %d: nothing was committed for %.1f election timeouts", seed, timeouts)
		}
		most, cuts = max(most, timeouts), cuts+cut
	}
	t.Logf("%d links cut in %d runs; nothing was committed for at most %.1f election timeouts", cuts, seeds, most)
	if cuts < seeds {
		t.Errorf("only %d links were cut", cuts)
	}
}

// A leader that hears nobody does not make room by itself, and a server that hears nobody deposes
// whoever leads.
func TestWithoutPreVoteOrCheckQuorumAPartialPartitionStopsProgress(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"checkquorum=off", "prevote=off"} {
		stuck := 0
		runs := wide(100, 300)
		for seed := uint64(1); seed <= runs; seed++ {
			if timeouts, _ := standstill(t, seed, "config election=150ms "+config); timeouts > mostTimeouts {
				stuck++
			}
		}
		t.Logf("%s: %d of %d runs stood still", config, stuck, runs)
		if stuck == 0 {
			t.Errorf("%s: every run went on", config)
		}
	}
}

func TestAnIdleClusterSendsEmptyHeartbeatsAndNothingElse(t *testing.T) {
	for _, nodes := range []int{1, 3, 5} {
		s, err := Parse("idle.txt", fmt.Sprintf(
			"# Nobody wants anything\nnodes %d\ntimeout S1\nuntil leader S1\npropose S1 x\nuntil converged\nrun 1s\n", nodes))
		if err != nil {
			t.Fatal(err)
		}
		w := worldOf(t, s)
		writes := func() (n uint64) {
			for _, node := range w.nodes {
				n += node.disk.writes
			}
			return n
		}
		before, wrote := w.counters, writes()
		const beats = 200
		w.advance(w.now + beats*w.config.heartbeat)
		sent := func(c counter) int64 { return w.counters[c] - before[c] }
		appends := sent(countMessages + counter(messageAppend))
		replies := sent(countMessages + counter(messageAppendReply))
		if empty := sent(countHeartbeats); empty != appends {
			t.Errorf("%d nodes: %d of %d AppendEntries carried entries", nodes, appends-empty, appends)
		}
		if others := sent(countMessages) - appends - replies; others != 0 {
			t.Errorf("%d nodes: %d messages were no heartbeats", nodes, others)
		}
		if want := beats * int64(nodes-1); appends < want-int64(nodes) || appends > want+int64(nodes) {
			t.Errorf("%d nodes: %d heartbeats, want about %d", nodes, appends, want)
		}
		if n := writes() - wrote; n != 0 || wrote == 0 {
			t.Errorf("%d nodes: they wrote %d times, and %d times before", nodes, n, wrote)
		}
	}
}
