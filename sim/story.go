package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"ticketing/fsm/trace"
)

// What the story is about.
const (
	storyScenario = "late-expire"
	storyRule     = "expire-token"
	storyClaim    = "removal-meant" // the invariant that the rule is there for
)

// storyLine is the whole guard, in fsm/table.go. A test checks that it still is.
const storyLine = "existed = existed && tenure.Token == e.Token"

// Story runs the late-Expire scenario as it is, and again without the token check, and draws both:
// the first from its beginning, the second from the first event that differs. It held if the first
// run passed and the second one broke.
func Story(o Style) (text string, held bool, err error) {
	scenario, err := Load(storyScenario)
	if err != nil {
		return "", false, err
	}
	with, err := Run(scenario, Options{Record: true, KeepGoing: true})
	if err != nil {
		return "", false, fmt.Errorf("running %s: %w", storyScenario, err)
	}
	without, err := Run(scenario, Options{Record: true, KeepGoing: true, Without: []string{storyRule}})
	if err != nil {
		return "", false, fmt.Errorf("running %s without %s: %w", storyScenario, storyRule, err)
	}
	lines := Diagram(with.Trace, o)
	lines = append(lines, instead(without.Trace, o, with.Trace)...)
	lines = append(lines, moral(o, with, without)...)
	return strings.Join(lines, "\n") + "\n", with.Held() && len(without.Violations) > 0, nil
}

// instead draws a trace from where it parts from another one.
func instead(t *trace.Trace, o Style, other *trace.Trace) []string {
	s := tell(t)
	d := s.layout(o)
	same := identical(t, other)
	words := fmt.Sprintf("the same seed %s · identical through event %d · %s",
		rulesWords(t.Header), same, s.finding())
	if same == len(t.Events) {
		words = fmt.Sprintf("the same seed %s · no event differs", rulesWords(t.Header))
	}
	return append(d.title(words), s.draw(d, int64(same)+1)...)
}

// identical counts the events with which two traces begin alike.
func identical(t *trace.Trace, other *trace.Trace) int {
	n := min(len(t.Events), len(other.Events))
	for i := range n {
		if !reflect.DeepEqual(t.Events[i], other.Events[i]) {
			return i
		}
	}
	return n
}

// moral says what held, what broke, what that did to the clients, and what to do next.
func moral(o Style, with, without *Result) []string {
	lines := [][2]string{
		{"with the check", outcome(with)},
		{"without it", outcome(without) + both(without.Trace)},
		{"see it yourself", invitation(with)},
		{"next", "raftsim list · raftsim run " + storyScenario +
			" · raftsim run -trace -without " + storyRule + " " + storyScenario},
	}
	var drawn []string
	for _, line := range lines {
		const indent = 17
		for i, part := range wrap(o.Clean(line[1]), o.width()-indent) {
			c := newCanvas(o)
			if i == 0 {
				c.text(0, line[0], paintBold)
			}
			c.text(indent, part, verdictPaint(line[1]))
			drawn = append(drawn, c.String())
		}
	}
	return drawn
}

// invitation asks the reader to take the guard away, or to put it back.
func invitation(with *Result) string {
	if with.Held() {
		return "delete `" + storyLine + "` in fsm/table.go, and run this again"
	}
	return "put `" + storyLine + "` back into fsm/table.go, and run this again"
}

// verdictPaint is green for what held and red for what did not.
func verdictPaint(text string) paint {
	switch {
	case strings.HasPrefix(text, "✓"):
		return paintHeld
	case strings.HasPrefix(text, "✕"):
		return paintWrong
	}
	return paintPlain
}

// outcome is a run's verdict about the story's invariant: that it held, and what it says, or when
// it broke.
func outcome(r *Result) string {
	i := slices.IndexFunc(r.Violations, func(v Violation) bool { return v.Invariant == storyClaim })
	switch {
	case i >= 0:
		return fmt.Sprintf("✕ %s broke at %s ms", storyClaim, millis(r.Violations[i].At))
	case len(r.Violations) > 0:
		return "✕ " + r.Violations[0].String()
	case r.Failure != nil:
		return "✕ " + r.Failure.Error()
	}
	return fmt.Sprintf("✓ %s held: %s", storyClaim, Sentence(storyClaim))
}

// both says for how long two clients believed to hold the same lock.
func both(t *trace.Trace) string {
	overlaps := overlaps(t)
	if len(overlaps) == 0 {
		return ""
	}
	v := overlaps[0]
	return fmt.Sprintf("; %s and %s both believed to hold %s for %s ms (%s to %s)",
		v.one, v.other, v.key, millis(v.to-v.from), millis(v.from), millis(v.to))
}
