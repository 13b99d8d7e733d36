package sim

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ticketing/raft"
)

// A SyntaxError says where a scenario is malformed, what is wrong there and what was expected.
type SyntaxError struct {
	File    string
	Line    int
	Problem string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem) }

// What holds for a scenario that does not say otherwise.
const (
	defaultNodes     = 3
	defaultElection  = 150 * time.Millisecond
	defaultHeartbeat = 50 * time.Millisecond
)

// maxNodes is the largest cluster: a diagram of it still fits a screen.
const maxNodes = 9

// RuleNames lists the rules that "without" can take away.
func RuleNames() []string {
	return []string{"expire-token", "release-token", "gate", "noop-wait", "request-ids"}
}

// Parse reads a scenario. The name is its file's, which errors give as it stands. What can be
// judged without running the scenario is judged here, so that one with a mistake in its last line
// does not start. An error is a *SyntaxError about the first line that is wrong.
func Parse(name, text string) (*Scenario, error) {
	s := &Scenario{Name: strings.TrimSuffix(filepath.Base(name), ".txt"), File: name, Text: text}
	p := &parser{
		verbs:     verbs(),
		nodes:     defaultNodes,
		first:     map[raft.ServerID]bool{1: true, 2: true, 3: true},
		election:  defaultElection,
		heartbeat: defaultHeartbeat,
		said:      map[string]bool{},
	}
	for raw := range strings.Lines(text) {
		p.no++
		if err := p.line(s, strings.TrimSpace(raw)); err != nil {
			return nil, &SyntaxError{File: name, Line: p.no, Problem: err.Error()}
		}
	}
	if p.no == 0 {
		problem := "the file is empty; expected " + titleForm
		return nil, &SyntaxError{File: name, Line: 1, Problem: problem}
	}
	return s, nil
}

// How lines that are not commands are written, for errors.
const (
	titleForm    = `"# " and the scenario's title in the first line`
	questionForm = `"# ? question | right answer | wrong answer …"`
)

// parser is what the lines so far have settled for the lines to come.
type parser struct {
	verbs               map[string]verb
	no                  int                    // of the line being read
	nodes               int                    // how many there are
	first               map[raft.ServerID]bool // those from the start that no line removes, and whether they vote
	named               bool                   // a line has named a node, so their number stands
	firstEvent          int                    // its line; 0 while set-up goes on
	election, heartbeat time.Duration          // as configured so far
	said                map[string]bool        // what may be said only once
}

// line reads one line, without the space around it, into the scenario.
func (p *parser) line(s *Scenario, text string) error {
	if err := printable(text); err != nil {
		return err
	}
	prose, isProse := strings.CutPrefix(text, "#")
	if p.no == 1 {
		s.Title = strings.TrimSpace(prose)
		if !isProse || s.Title == "" {
			return errors.New("the scenario has no title; expected " + titleForm)
		}
		return nil
	}
	l := Line{No: p.no}
	var err error
	question, isQuestion := strings.CutPrefix(strings.TrimSpace(prose), "?")
	switch {
	case isProse && isQuestion:
		l.Command, err = parseQuestion(question)
	case isProse:
		// Only the one space after the # goes: prose may draw a picture.
		l.Prose = strings.TrimPrefix(prose, " ")
	case text != "":
		l.Command, err = p.command(text)
	}
	if err != nil {
		return err
	}
	s.Lines = append(s.Lines, l)
	return nil
}

func (p *parser) command(text string) (Command, error) {
	r := &reader{p: p, left: strings.Fields(text)}
	c := r.command()
	r.end()
	if r.err != nil {
		return nil, r.err
	}
	if p.firstEvent == 0 && endsSetUp(c) {
		p.firstEvent = p.no
	}
	return c, nil
}

// endsSetUp reports whether c is an event: something that happens at a time, so that no set-up may
// follow. A clock's rate before the first event is set-up, after it an event.
func endsSetUp(c Command) bool {
	switch c := c.(type) {
	case SetNodes, SetSeed, SetManual, SetConfig, SetWithout, SetNode, SetNetwork, Question:
		return false
	case SetDisk:
		return !c.SyncSet
	case SetClock:
		return c.Stop || c.Jump != 0 || c.Slew != 0 || c.Strobe != 0
	case SetResource:
		return c.Restart
	}
	return true
}

// parseQuestion reads what stands behind "# ?". A question may stand anywhere, in the set-up too.
func parseQuestion(text string) (Command, error) {
	parts := strings.Split(text, "|")
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
		if parts[i] == "" {
			return nil, errors.New("the question or an answer is empty; expected " + questionForm)
		}
	}
	if len(parts) < 3 {
		return nil, errors.New("the question needs at least two answers; expected " + questionForm)
	}
	return Question{Text: parts[0], Answers: parts[1:]}, nil
}

// printable refuses what has no business in a file that is shown in terminals and web pages.
func printable(text string) error {
	if !utf8.ValidString(text) {
		return errors.New("the line is not UTF-8; expected text")
	}
	for _, c := range text {
		if unicode.IsControl(c) && c != '\t' {
			return fmt.Errorf("the line has the control character %q; expected text", c)
		}
	}
	return nil
}
