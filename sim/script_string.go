package sim

import (
	"fmt"
	"strings"
)

// String writes the scenario as a file that Parse reads back.
func (s *Scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", s.Title)
	for _, l := range s.Lines {
		fmt.Fprintln(&b, l)
	}
	return b.String()
}

// String writes the line as it stands in a file.
func (l Line) String() string {
	switch {
	case l.Command != nil:
		return l.Command.String()
	case l.Prose != "":
		return "# " + l.Prose
	}
	return ""
}

func (c SetNodes) String() string {
	return newLine("nodes %d", c.N).when(c.Learners > 0, "learners %d", c.Learners).String()
}

func (c SetSeed) String() string { return fmt.Sprintf("seed %d", c.Seed) }

func (SetManual) String() string { return "manual" }

func (c SetConfig) String() string {
	return newLine("config").
		when(c.Election > 0, "election=%s", brief(c.Election)).
		when(c.Heartbeat > 0, "heartbeat=%s", brief(c.Heartbeat)).
		when(c.PreVote != nil, "prevote=%s", onOffText(c.PreVote)).
		when(c.CheckQuorum != nil, "checkquorum=%s", onOffText(c.CheckQuorum)).
		when(c.Pipeline != nil, "pipeline=%s", onOffText(c.Pipeline)).
		when(c.Batch > 0, "batch=%d", c.Batch).
		when(c.Window > 0, "window=%d", c.Window).
		when(c.SnapshotEvery != nil, "snapshot=%s", indexText(c.SnapshotEvery)).
		when(c.Keep > 0, "keep=%d", c.Keep).
		when(c.Chunk > 0, "chunk=%d", c.Chunk).
		String()
}

func (c SetWithout) String() string { return "without " + strings.Join(c.Rules, " ") }

func (c SetNode) String() string {
	return newLine("node S%d", c.Node).
		when(c.Term > 0, "term=%d", c.Term).
		when(c.Vote > 0, "vote=S%d", c.Vote).
		when(len(c.Log) > 0, "log=%s", logText(c.Log)).
		when(c.Snapshot.Index > 0, "snapshot=%d@%d", c.Snapshot.Index, c.Snapshot.Term).
		String()
}

func (c SetNetwork) String() string {
	w := newLine("network")
	if c.From != "" {
		w = newLine("link %s->%s", c.From, c.To)
	}
	return w.when(c.DelaySet, "delay=%s", spanText(c.DelayMin, c.DelayMax)).
		when(c.TailSet, "tail=%s:%s", percentText(c.TailPPM), brief(c.Tail)).
		when(c.LossPPM != nil, "loss=%s", shareText(c.LossPPM)).
		when(c.DuplicatePPM != nil, "duplicate=%s", shareText(c.DuplicatePPM)).
		String()
}

func (c RunFor) String() string { return "run " + brief(c.For) }

func (c Until) String() string {
	return newLine("until %s", c.Cond).when(c.Within > 0, "within %s", brief(c.Within)).String()
}

func (c At) String() string { return fmt.Sprintf("at %s %s", brief(c.Time), c.Command) }

func (c Timeout) String() string { return fmt.Sprintf("timeout S%d", c.Node) }

func (c Beat) String() string { return fmt.Sprintf("beat S%d", c.Node) }

func (c Deliver) String() string {
	return newLine("%s", c.Verb).
		when(c.All, "all").
		when(c.From != "", "%s->%s", c.From, c.To).
		when(c.Kind != "", "%s", c.Kind).
		when(c.Nth > 0, "#%d", c.Nth).
		String()
}

func (c Hold) String() string {
	verb := "hold"
	if c.Again {
		verb = "release"
	}
	return newLine("%s %s->%s", verb, c.From, c.To).when(c.Kind != "", "%s", c.Kind).String()
}

func (c Cut) String() string {
	w := newLine("cut")
	for i, group := range c.Groups {
		w.when(i > 0, "|")
		for _, actor := range group {
			w.when(true, "%s", actor)
		}
	}
	return w.String()
}

func (c CutOne) String() string { return fmt.Sprintf("cut %s->%s", c.From, c.To) }

func (c Isolate) String() string { return fmt.Sprintf("isolate S%d", c.Node) }

func (c Heal) String() string {
	return newLine("heal").when(c.From != "", "%s->%s", c.From, c.To).String()
}

func (c Pause) String() string { return fmt.Sprintf("pause S%d", c.Node) }

func (c Suspend) String() string {
	return newLine("suspend S%d", c.Node).when(c.ClockOn, "clock=on").String()
}

func (c Resume) String() string { return fmt.Sprintf("resume S%d", c.Node) }

func (c Crash) String() string {
	return newLine("crash %s", c.Node).
		when(c.Writing, "writing").
		when(c.Keep > 0, "keep=%d", c.Keep).
		when(c.How != "", "%s", c.How).String()
}

func (c Restart) String() string { return fmt.Sprintf("restart %s", c.Node) }

func (c SetDisk) String() string {
	return newLine("disk %s", c.Node).
		when(c.SyncSet, "sync=%s", spanText(c.SyncMin, c.SyncMax)).
		when(c.Do != "", "%s", c.Do).
		when(c.Nth > 0, "#%d", c.Nth).
		when(c.File, "snapshot").
		String()
}

func (c SetClock) String() string {
	return newLine("clock %s", c.Actor).
		when(c.RatePPM > 0, "rate=%s", decimalText(c.RatePPM, 6)).
		when(c.Offset > 0, "offset=%s", brief(c.Offset)).
		when(c.Stop, "stop").
		when(c.Jump != 0, "jump=%s", signed(c.Jump)).
		when(c.Slew != 0, "slew=%s pace=%s", signed(c.Slew), percentText(c.Pace)).
		when(c.Wander > 0, "wander=%s", percentText(c.Wander)).
		when(c.Strobe != 0, "strobe=%s", signed(c.Strobe)).
		when(c.Every > 0, "every=%s", brief(c.Every)).
		when(c.For > 0, "for=%s", brief(c.For)).
		when(c.Coarse > 0, "coarse=%s", brief(c.Coarse)).
		when(c.Late > 0, "late=%s", brief(c.Late)).
		when(c.Timely, "timely").
		String()
}

func (c SetResource) String() string {
	return newLine("resource %s", c.Key).
		when(c.Mistake != "", "mistake=%s", c.Mistake).
		when(c.Restart, "restart").
		String()
}

func (c Connect) String() string {
	line := newLine("connect").when(c.Others > 0, "others=%d", c.Others)
	for _, client := range c.Clients {
		line.when(true, "%s", client)
	}
	return line.String()
}

func (c Extend) String() string {
	return newLine("%s: extend %s lease=%s", c.Client, c.Key, brief(c.Lease)).
		when(c.Via > 0, "via=S%d", c.Via).
		String()
}

func (c Acquire) String() string {
	return newLine("%s: acquire %s lease=%s", c.Client, c.Key, brief(c.Lease)).
		when(c.Try, "try").
		when(c.Via > 0, "via=S%d", c.Via).
		String()
}

func (c ReleaseLock) String() string {
	return newLine("%s: release %s", c.Client, c.Key).
		when(c.TokenSet, "token=%d", c.Token).
		when(c.Via > 0, "via=S%d", c.Via).
		String()
}

func (c Write) String() string {
	return newLine("%s: write %s", c.Client, c.Key).
		when(c.TokenSet, "token=%d", c.Token).
		when(c.Takes > 0, "takes=%s", brief(c.Takes)).
		String()
}

func (c Read) String() string { return fmt.Sprintf("%s: read %s", c.Client, c.Key) }

func (c ClientDo) String() string { return fmt.Sprintf("%s: %s", c.Client, c.Do) }

func (c ReadTable) String() string {
	return newLine("read S%d", c.Node).when(c.Local, "local").String()
}

func (c Transfer) String() string { return fmt.Sprintf("transfer S%d S%d", c.From, c.To) }

func (c Compact) String() string { return fmt.Sprintf("snapshot S%d", c.Node) }

func (c Change) String() string {
	return newLine("%s S%d", c.Do, c.Node).when(c.Learner, "learner").String()
}

func (c Propose) String() string { return fmt.Sprintf("propose S%d %s", c.Node, c.Text) }

func (c Expect) String() string { return fmt.Sprintf("expect %s", c.Cond) }

func (c Question) String() string {
	return "# ? " + strings.Join(append([]string{c.Text}, c.Answers...), " | ")
}

func (c CondLeader) String() string {
	if c.Node == 0 {
		return "no leader"
	}
	return newLine("leader S%d", c.Node).when(c.Term > 0, "term=%d", c.Term).String()
}

func (c CondNode) String() string { return fmt.Sprintf("S%d%s", c.Node, fields(c.Fields)) }

func (c CondInFlight) String() string {
	w := newLine("in-flight %s->%s", c.From, c.To)
	if c.No {
		w = newLine("no in-flight %s->%s", c.From, c.To)
	}
	return w.when(c.Kind != "", "%s", c.Kind).String() + fields(c.Fields)
}

func (c CondHolder) String() string {
	return newLine("holder %s %s", c.Key, c.Client).
		when(c.Token > 0, "token=%d", c.Token).
		when(c.At != "", "at %s", c.At).
		String()
}

func (c CondFree) String() string {
	return newLine("free %s", c.Key).when(c.At != "", "at %s", c.At).String()
}

func (c CondClient) String() string {
	return newLine("%s %s", c.Client, c.State).when(c.Token > 0, "token=%d", c.Token).String()
}

func (c CondCount) String() string { return fmt.Sprintf("count %s %s %d", c.Name, c.Op, c.N) }

func (c CondConverged) String() string {
	return newLine("converged").when(c.Within > 0, "within %s", brief(c.Within)).String()
}

func (c CondViolated) String() string { return c.Invariant + " violated" }
