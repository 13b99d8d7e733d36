package sim

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"ticketing/fsm/trace"
)

// drawable makes traces of all kinds: the library's, with every rule and without, and random ones.
func drawable(t *testing.T) map[string]*trace.Trace {
	t.Helper()
	traces := map[string]*trace.Trace{}
	add := func(name string, s *Scenario, o Options) {
		o.Record = true
		r, err := Run(s, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		traces[name] = r.Trace
	}
	for i, s := range Library() {
		if !long() && i%4 != 0 {
			continue // the long form draws all
		}
		add(s.Name, s, Options{})
		add(s.Name+" without", s, Options{Without: RuleNames(), KeepGoing: true})
	}
	for seed := range uint64(6) {
		faults := FaultNames()[seed%2]
		s, err := Plan(seed, faults, 3+int(seed)%3*2)
		if err != nil {
			t.Fatal(err)
		}
		add(fmt.Sprintf("%s %d", faults, seed), s, Options{})
	}
	return traces
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestPicturesAndTranscriptsKeepToTheirStyle(t *testing.T) {
	t.Parallel()
	for name, trace := range drawable(t) {
		for _, o := range []Style{
			{}, {ASCII: true}, {Color: true}, {Color: true, ASCII: true}, {Width: 80}, {Width: 60},
		} {
			checkStyle(t, fmt.Sprintf("diagram of %s, %+v", name, o), Diagram(trace, o), o)
			text := Transcript(trace, o)
			checkStyle(t, fmt.Sprintf("transcript of %s, %+v", name, o), strings.Split(text, "\n"), o)
		}
	}
}

func checkStyle(t *testing.T, name string, lines []string, o Style) {
	t.Helper()
	for i, line := range lines {
		plain := line
		if o.Color {
			plain = colour.ReplaceAllString(line, "")
		}
		problem := ""
		switch {
		case len([]rune(plain)) > o.width():
			problem = "is too wide"
		case strings.HasSuffix(plain, " "):
			problem = "ends with a blank"
		case o.ASCII && strings.ContainsFunc(plain, func(r rune) bool { return r > unicode.MaxASCII }):
			problem = "is not ASCII"
		case strings.ContainsFunc(plain, unicode.IsControl):
			problem = "has a control character"
		}
		if problem != "" {
			t.Errorf("%s: line %d %s: %q", name, i+1, problem, line)
			return
		}
	}
}

func TestColourChangesNothingButColour(t *testing.T) {
	t.Parallel()
	for name, trace := range drawable(t) {
		plain := strings.Join(Diagram(trace, Style{}), "\n") + Transcript(trace, Style{})
		painted := strings.Join(Diagram(trace, Style{Color: true}), "\n") + Transcript(trace, Style{Color: true})
		if colour.ReplaceAllString(painted, "") != plain {
			t.Errorf("%s: with the colours taken out, it is another picture", name)
		}
		if plain == painted {
			t.Errorf("%s: no colours", name)
		}
	}
}

// A trace comes from a file, too: nothing in it may be believed to be there.
func TestATraceWithoutItsRecordsIsDrawnAllTheSame(t *testing.T) {
	s, err := Load(storyScenario)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Trace.Events {
		e := &r.Trace.Events[i]
		e.Text, e.ID = e.Text+"\x1b[31m\n", e.ID*7
		e.State, e.Message, e.Write, e.Entry, e.Client = nil, nil, nil, nil, nil
		if i%2 == 0 {
			e.Node = "S\x00" + strings.Repeat("ö", 200)
		}
	}
	checkStyle(t, "diagram", Diagram(r.Trace, Style{ASCII: true}), Style{ASCII: true})
	checkStyle(t, "transcript", strings.Split(Transcript(r.Trace, Style{ASCII: true}), "\n"), Style{ASCII: true})
	Diagram(&trace.Trace{}, Style{})
	Transcript(&trace.Trace{}, Style{})
}

// picture runs a scenario and draws it.
func picture(t *testing.T, text string) string {
	t.Helper()
	s, err := Parse("test.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{Record: true})
	if err != nil || r.Failure != nil {
		t.Fatal(err, r.Failure)
	}
	return strings.Join(Diagram(r.Trace, Style{}), "\n")
}

func TestAPictureShowsClocksCutsLossesAndCrashes(t *testing.T) {
	got := picture(t, `# A bit of everything
nodes 5
clock S2 rate=1.5
timeout S1
until leader S1
connect A B
A: acquire door lease=1s
until A granted
cut S1 S2 | S3 S4 S5
B: acquire gate lease=1s
run 1s
heal
until converged
crash S2
run 500ms
restart S2
run 200ms
`)
	for _, want := range []string{
		"S2×1.5", "★t1", "░░┃░░", "✕", "█ A #1", "✂ S1 S2 | S3 S4 S5", "steps down", "S2 loses power",
		"S2 restarts with entries", "(own clock ", "heartbeats and replies", "Grant B gate",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the picture:\n%s", want, got)
		}
	}
}

// Every client opens a session before it can want anything. That is not told.
func TestAPictureDoesNotTellHowSessionsBegin(t *testing.T) {
	const lines = `# Sessions
nodes 3
config election=1s
timeout S1
until leader S1
%s
A: acquire door lease=1s
until A granted
B: acquire door lease=1s
run 2s
`
	for connect, want := range map[string]string{
		"": "", "connect A": "", "connect A B": "", "connect others=3": "3 other clients open sessions",
	} {
		got := picture(t, fmt.Sprintf(lines, connect))
		if !strings.Contains(got, want) {
			t.Errorf("%q: no %q in the picture:\n%s", connect, want, got)
		}
		sessions := 0
		for _, line := range strings.Split(got, "\n") {
			if strings.Contains(line, "session") || strings.Contains(line, "open") {
				sessions++
			}
		}
		if sessions > 1 || want == "" && sessions > 0 {
			t.Errorf("%q: %d rows about sessions:\n%s", connect, sessions, got)
		}
		for _, want := range []string{"Grant A", "█ A #1", "Grant B", "▓ B #2", "◆"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q: no %q in the picture:\n%s", connect, want, got)
			}
		}
	}
}

func TestAPictureTellsWhatIsExtendedAndWhatIsToldAgain(t *testing.T) {
	for name, want := range map[string][]string{
		"extend": {"A extends #1 by 2s → Extend #1", "A #1 has a new lease of 2s; A hears it at"},
		"extend-race": {
			"B wants to extend #2 by 2s", "B is refused: the Expire of #2 is in the log",
			"C extends #3 by 3s, again", "C is told again that vault #3 has a new lease",
		},
		"extend-never-creates": {"Extend #1 finds nothing to extend"},
		"once":                 {"A asks for door, again → Grant A", "A is told again that it holds #1"},
		"once-closed":          {"Grant A is done with: no-op", "A is told that this request is done with"},
		"evicted":              {"Grant A door: no such session, no-op", "A is told that its session is over"},
		"unlock-retry":         {"A releases door, again → bare Release", "A is told again that door is released"},
	} {
		s, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(s, Options{Record: true})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(Diagram(r.Trace, Style{Width: 200}), "\n")
		for _, want := range want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in the picture:\n%s", name, want, got)
			}
		}
	}
}

// Without numbers in the log a request is found by who asks for what.
func TestAPictureWithoutNumbersStillTellsWhoAsked(t *testing.T) {
	s, err := Load("late-release")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(s, Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(Diagram(r.Trace, Style{}), "\n")
	for _, want := range []string{"A asks for door → Grant A", "A releases door → Release #1", "B releases door → Release #2"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the picture:\n%s", want, got)
		}
	}
}

func TestAnElectionThatIsSteppedByHandIsInOrder(t *testing.T) {
	got := picture(t, `# By hand
nodes 3
config prevote=off
manual
timeout S1
deliver S1->S2 vote
deliver S2->S1 vote-reply
expect leader S1
propose S1 hello
deliver all
`)
	lines := strings.Split(got, "\n")
	for i, want := range []string{
		"all rules on", " event ", "S1 asks for votes and wins term 1", `S1 proposes → "hello"`, `committed: "hello"`,
	} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Fatalf("line %d should say %q:\n%s", i+1, want, got)
		}
	}
}
