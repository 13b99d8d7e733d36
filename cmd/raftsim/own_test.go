package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
	"ticketing/sim"
)

const ourRaft = "../../raft"

// answering is where a server answers a candidate: the mistakes of these tests are put there.
const answering = "func (c *Core) receiveRequestVote(m Message, r RequestVote) {\n"

// planted makes a directory with one of our files in which a piece of text, which it has once, is
// another.
func planted(t *testing.T, file, was, is string) (dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ourRaft, file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), was); n != 1 {
		t.Fatalf("%s has %q %d times", file, was, n)
	}
	dir = t.TempDir()
	store(t, filepath.Join(dir, file), strings.Replace(string(text), was, is, 1))
	return dir
}

func store(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// copied makes a directory with all of our package.
func copied(t *testing.T) (dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(ourRaft, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		store(t, filepath.Join(dir, filepath.Base(path)), string(text))
	}
	return dir
}

// twoVotes gives a vote to everybody who asks.
func twoVotes(t *testing.T) string {
	return planted(t, "election.go", "if c.votedFor != 0 && c.votedFor != m.From {", "if false {")
}

func TestFilesThatDoNotCompileAreShownWithTheirOwnLines(t *testing.T) {
	t.Parallel()
	other := planted(t, "snapshot.go", "func (c *Core) FirstIndex() Index {", "func (c *Core) FirstPlace() Index {")
	for _, tt := range []struct {
		name, dir string
		want      []string
	}{
		{"a type", planted(t, "election.go", answering, answering+"\tc.votedFr = 3\n"), []string{"/election.go:73:4: c.votedFr undefined"}},
		{"the syntax", planted(t, "election.go", answering, answering+"\tif {\n"), []string{"/election.go:73:5: syntax error"}},
		{"a method of another name", other, []string{"FirstIndex undefined", ".go:"}},
	} {
		for _, command := range []string{"explore", "replay -seed 1", "grade", "shrink -seed 1", "run"} {
			if tt.name != "a type" && command != "explore" {
				continue
			}
			args := append(strings.Fields(command), "-raft", tt.dir)
			if command == "run" {
				args = append(args, "election")
			}
			code, out, errs := try(args...)
			if code != exitUsage || out != "" || !strings.Contains(errs, "does not compile") {
				t.Errorf("%s, %s: exit %d\n%s%s", tt.name, command, code, out, errs)
			}
			for _, want := range tt.want {
				if strings.HasPrefix(want, "/") {
					want = tt.dir + want
				}
				if !strings.Contains(errs, want) || strings.Contains(errs, "# ticketing") {
					t.Errorf("%s, %s: it does not say %q:\n%s", tt.name, command, want, errs)
				}
			}
		}
	}
}

// The compiler names a file from the root, from where it is called, and not as its owner does.
func TestAPlaceIsNamedAsItsOwnerNamesIt(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b := &built{dir: t.TempDir()}
	if _, err := b.overlay(root, &replacement{files: map[string]string{"log.go": "../../mine/log.go"}}); err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]string{
		"./mine/log.go:3:4: no":          "../../mine/log.go:3:4: no",
		root + "/mine/log.go:3":          "../../mine/log.go:3",
		root + "/raft/log.go:3":          "../../mine/log.go:3",
		"raft/log.go:3: no":              "../../mine/log.go:3: no",
		root + "/raft/core.go:161 +0x1d": "raft/core.go:161 +0x1d",
	} {
		if got := b.places.Replace(said); got != want {
			t.Errorf("%q becomes %q, want %q", said, got, want)
		}
	}
}

// searched is what explore -json says.
type searched struct {
	Seeds    int64
	Held     bool
	Counters map[string]int64
	Events   int64
	Violated []string
	Crashed  []struct {
		Seed  uint64
		Kind  crashKind
		Says  string
		Event *struct{ ID int64 }
		Stack []string
		Once  bool
	}
}

func exploreJSON(t *testing.T, want int, args ...string) (s searched) {
	t.Helper()
	code, out, errs := try(append([]string{"explore", "-json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != want {
		t.Fatalf("exit %d, want %d; %v\n%s%s", code, want, err, out, errs)
	}
	return s
}

// The whole package replaces ours, and a copy of it finds what ours does.
func TestACopyOfOursFindsWhatOursDoes(t *testing.T) {
	t.Parallel()
	ours := exploreJSON(t, exitHeld, "-seeds", "1-60")
	renamed := copied(t)
	files, err := filepath.Glob(filepath.Join(renamed, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := "my" + filepath.Base(file)
		if err := os.Rename(file, filepath.Join(renamed, name)); err != nil {
			t.Fatal(err)
		}
	}
	for what, dir := range map[string]string{
		"all files, of other names": renamed, "one file": planted(t, "election.go", answering, "// A comment.\n"+answering),
	} {
		theirs := exploreJSON(t, exitHeld, "-seeds", "1-60", "-raft", dir)
		if diff := cmp.Diff(ours, theirs, cmp.Comparer(func(a, b []string) bool { return slices.Equal(a, b) })); !theirs.Held || theirs.Seeds != 60 ||
			!maps.Equal(ours.Counters, theirs.Counters) || ours.Events != theirs.Events {
			t.Errorf("%s (-ours +theirs):\n%s", what, diff)
		}
	}
}

// What came to no end is told with the seed, the event and the line, and the other seeds count as if
// nothing had been.
func TestAPanicDoesNotHarmTheRestOfTheSearch(t *testing.T) {
	t.Parallel()
	dir := planted(t, "election.go", answering, answering+`	say("a word of the reader's")
	if c.currentTerm == 7 {
		var logs []Entry
		logs[c.currentTerm] = Entry{}
	}
`)
	store(t, filepath.Join(dir, "say.go"), "package raft\n\nimport \"fmt\"\n\nfunc say(s string) { fmt.Println(s) }\n")
	found := exploreJSON(t, exitBroken, "-seeds", "1-8", "-raft", dir)
	crashed := map[uint64]bool{}
	for i, c := range found.Crashed {
		crashed[c.Seed] = true
		if c.Kind != crashPanic || !strings.Contains(c.Says, "index out of range [7] with length 0") || c.Once {
			t.Errorf("seed %d: %+v", c.Seed, c)
		}
		if i == 0 && (c.Event == nil || c.Event.ID < 100) || !strings.Contains(strings.Join(c.Stack, "\n"), dir+"/election.go:76") {
			t.Errorf("seed %d: in event %+v, at %q", c.Seed, c.Event, c.Stack)
		}
	}
	var events int64
	grants := 0
	for seed := uint64(1); seed <= 8; seed++ {
		r, err := sim.Search{Faults: "harsh"}.Run(seed, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !crashed[seed] {
			events += r.Steps
			grants += int(r.Count("grant.granted"))
		}
	}
	if len(crashed) == 0 || len(crashed) == 8 || found.Held || found.Seeds != 8 || found.Events != events ||
		found.Counters["grant.granted"] != int64(grants) {
		t.Errorf("%d crashed; %d events and %d Grants of the others, counted %d and %d", len(crashed), events, grants,
			found.Events, found.Counters["grant.granted"])
	}
	_, out, _ := try("explore", "-seeds", "1-8", "-raft", dir)
	for _, part := range []string{
		"PANIC   seed 2: runtime error: index out of range", "raft.(*Core).receiveRequestVote", "the steps that led to it:",
		"receive vote", "at the same place: seeds 3", "again: raftsim replay -seed 2 -faults harsh -raft " + dir, "seeds came to no end",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("it does not say %q:\n%s", part, out)
		}
	}
	code, out, errs := try("replay", "-seed", "2", "-raft", dir)
	if code != exitBroken || !strings.Contains(out, "PANIC   the run: runtime error") ||
		!strings.Contains(errs, "a word of the reader's\n") || strings.Contains(errs, "goroutine") {
		t.Errorf("its replay: exit %d\n%s%s", code, out, errs)
	}
}

// searchOf is a search with little patience.
func searchOf(t *testing.T, dir string, from, to uint64) *ownFindings {
	t.Helper()
	flags := searchFlags{faults: "harsh", own: ownFlags{dir: dir}}
	b, err := flags.own.build(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer b.remove()
	search := sim.Search{From: from, To: to, Faults: "harsh"}
	s := ownSearch{Search: search, shared: &flags, b: b, bounds: bounds{time.Second, 200 << 20}, jobs: 1}
	f, err := s.explore(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWhatComesToNoEndIsToldAsWhatItIs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, mistake, says string
		kind                crashKind
	}{
		{"a loop", "\tfor i := 0; c.currentTerm == 7; i++ {\n\t\tif i < 0 {\n\t\t\tbreak\n\t\t}\n\t}\n", "no event for 1s", crashLoop},
		{"memory", "\tfor all := [][]byte(nil); c.currentTerm == 7; {\n\t\tall = append(all, make([]byte, 1<<16))\n\t}\n",
			"more than 200 MB are allocated", crashMemory},
		{"a recursion", "\tif c.currentTerm == 7 {\n\t\tc.receiveRequestVote(m, r)\n\t}\n", "recursion without end", crashMemory},
		{"an exit", "\tif c.currentTerm == 7 {\n\t\tquit(3)\n\t}\n", "exit status 3", crashExit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := planted(t, "election.go", answering, answering+tt.mistake)
			store(t, filepath.Join(dir, "more.go"), "package raft\n\nimport \"os\"\n\nfunc quit(code int) { os.Exit(code) }\n")
			f := searchOf(t, dir, 1, 2)
			if f.Seeds != 2 || f.Count("grant.granted") == 0 || len(f.crashes) != 1 {
				t.Fatalf("%d seeds, %d Grants, %d crashes; want one that ends and one that does not",
					f.Seeds, f.Count("grant.granted"), len(f.crashes))
			}
			c := f.crashes[0]
			if c.seed != 2 || c.kind != tt.kind || !strings.Contains(c.says, tt.says) || c.last == nil || len(c.steps) == 0 || c.once {
				t.Errorf("seed %d: %+v", c.seed, c.crash)
			}
			if tt.kind != crashExit && !strings.Contains(strings.Join(c.frames, "\n"), dir+"/election.go:7") {
				t.Errorf("it does not say where: %q", c.frames)
			}
		})
	}
}

// Code that keeps something from one run to the next is told so: its failure does not come again.
func TestAFailureThatDoesNotComeAgainIsToldAsThat(t *testing.T) {
	t.Parallel()
	dir := planted(t, "election.go", answering, "var calls int\n\n"+answering+"\tif calls++; calls == 100 {\n\t\tpanic(\"enough\")\n\t}\n")
	f := searchOf(t, dir, 1, 6)
	if len(f.crashes) != 1 || !f.crashes[0].once || f.crashes[0].says != "enough" || f.Seeds != 6 {
		t.Fatalf("%d seeds, %+v", f.Seeds, f.crashes)
	}
	var text strings.Builder
	f.crashes[0].write(&text, "seed")
	if !strings.Contains(text.String(), "does not do the same each time") {
		t.Error(text.String())
	}
}

// A search does not wait for ever for code that is broken in every run.
func TestASearchInWhichNothingEndsIsGivenUp(t *testing.T) {
	t.Parallel()
	dir := planted(t, "election.go", answering, answering+"\tpanic(\"always\")\n")
	code, out, errs := try("explore", "-seeds", "1-1000", "-raft", dir)
	if code != exitBroken || !strings.Contains(out, "given up after 100 seeds") || !strings.Contains(out, "PANIC   seed 1: always") ||
		!strings.Contains(out, "seeds 2, 3, 4") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

// The whole way: found, replayed, shrunk, drawn.
func TestAServerThatVotesTwiceIsFoundReplayedAndShrunk(t *testing.T) {
	t.Parallel()
	dir := twoVotes(t)
	code, out, errs := try("explore", "-seeds", "1-60", "-raft", dir)
	_, again, found := strings.Cut(out, "again: raftsim ")
	again, shorter, both := strings.Cut(again, "\nshorter: raftsim ")
	if code != exitBroken || !found || !both || !strings.Contains(out, "BROKEN  vote-once") {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	code, replayed, errs := try(strings.Fields(again)...)
	if code != exitBroken || !strings.Contains(replayed, out[strings.Index(out, "BROKEN"):]) || !strings.Contains(replayed, "asks for votes") {
		t.Errorf("%s: exit %d\n%s%s", again, code, replayed, errs)
	}
	file := filepath.Join(t.TempDir(), "short.txt")
	if code, out, errs := try(append(strings.Fields(shorter), "-o", file)...); code != exitHeld ||
		!strings.Contains(errs, "again: raftsim run -raft "+dir) {
		t.Fatalf("%s: exit %d\n%s%s", shorter, code, out, errs)
	}
	if code, out, _ := try("run", "-raft", dir, file); code != exitBroken || !strings.Contains(out, "vote-once is broken") {
		t.Errorf("the short one: exit %d\n%s", code, out)
	}
	if code, out, _ := try("run", file); code != exitHeld {
		t.Errorf("the short one with ours: exit %d\n%s", code, out)
	}
	if code, _, errs := try("shrink", "-raft", dir, "vacuous"); code != exitUsage || !strings.Contains(errs, "nothing to shrink") {
		t.Errorf("what holds: exit %d, %s", code, errs)
	}
}

func TestGradeSaysWhatHoldsAndWhatComesNext(t *testing.T) {
	t.Parallel()
	code, out, errs := try("grade", "-raft", copied(t), "-seeds", "1-20")
	if code != exitHeld || strings.Count(out, " ok ") != len(chapters())+1 || !strings.Contains(out, "all of it holds") {
		t.Errorf("a copy of ours: exit %d\n%s%s", code, out, errs)
	}
	for _, tt := range []struct {
		name, dir string
		want      []string
	}{
		{"two votes", twoVotes(t), []string{" 1  NO  elections", "BROKEN  vote-once", "go on with 1, elections", "    NO  search"}},
		{"no snapshot arrives", planted(t, "snapshot.go", "func (c *Core) receiveInstallSnapshot(m Message, s InstallSnapshot) {\n",
			"func (c *Core) receiveInstallSnapshot(m Message, s InstallSnapshot) {\n\tif s.Done {\n\t\treturn\n\t}\n"),
			[]string{" 1  ok  elections", " 6  NO  snapshots", "FAILED  snapshot-catch-up.txt:", "go on with 6, snapshots"}},
	} {
		code, out, errs := try("grade", "-raft", tt.dir, "-seeds", "1-20")
		for _, want := range tt.want {
			if code != exitBroken || !strings.Contains(out, want) {
				t.Errorf("%s: exit %d, %q\n%s%s", tt.name, code, want, out, errs)
			}
		}
	}
	var report struct {
		Held     bool
		Broken   []string
		Chapters []struct {
			Chapter string
			Held    bool
		}
	}
	code, out, _ = try("grade", "-json", "-raft", twoVotes(t), "-seeds", "1-2") // in which nothing breaks
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitBroken || report.Held || len(report.Chapters) != len(chapters()) ||
		report.Chapters[0].Held || !report.Chapters[1].Held || !slices.Contains(report.Broken, "vote-once") {
		t.Errorf("%v, %+v", err, report)
	}
}

// The page names all that a package in place of ours must have, and all that ours can be asked.
func TestThePageNamesWhatAPackageMustHave(t *testing.T) {
	text, err := os.ReadFile("../../docs/your-own-raft.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := used("../..")
	if err != nil || len(names) < 30 {
		t.Fatalf("%d names, %v", len(names), err)
	}
	for m := range reflect.TypeFor[*raft.Core]().Methods() {
		names = append(names, m.Name)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("it does not name %s", name)
		}
	}
}

// No scenario is in two of them.
func TestTheChaptersNameScenariosThatThereAre(t *testing.T) {
	seen := map[string]bool{}
	for _, ch := range chapters() {
		for _, name := range ch.scenarios {
			if _, err := sim.Load(name); err != nil || seen[name] {
				t.Errorf("%s: %s, %v", ch.name, name, err)
			}
			seen[name] = true
		}
	}
	for _, name := range []string{"election", "figure-8", "power-loss", "transfer", "member-rolling", "snapshot-crash"} {
		if !seen[name] {
			t.Errorf("%s is in no chapter", name)
		}
	}
}

func TestFilesThatCannotReplaceOursAreRefused(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	clash := filepath.Join(dir, "clash")
	if err := os.Mkdir(clash, 0o755); err != nil {
		t.Fatal(err)
	}
	store(t, filepath.Join(clash, "mine.go"), "package raft\n\ntype Core struct{}\n")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"explore", "-raft", filepath.Join(dir, "none")}, "there is no such directory"},
		{[]string{"explore", "-raft", empty}, "no Go file"},
		{[]string{"explore", "-raft", clash}, "mine.go declares Core, and so does ours in core.go"},
		{[]string{"explore", "-raft", clash, "-src", dir}, "no go.mod of the module ticketing"},
		{[]string{"explore", "-raft", clash, "-out", filepath.Join(dir, "out")}, "-shard and -out"},
		{[]string{"explore", "-raft", clash, "-guided"}, "-guided, -coverage and -check-determinism"},
		{[]string{"explore", "-raft", clash, "-coverage"}, "leave them away"},
		{[]string{"explore", "-raft", clash, "-check-determinism"}, "leave them away"},
		{[]string{"grade"}, "-raft DIR"},
		{[]string{"worker"}, "by itself"},
	} {
		code, _, errs := try(tt.args...)
		if code != exitUsage || !strings.Contains(errs, tt.want) {
			t.Errorf("%q: exit %d, %q; want %q", tt.args, code, errs, tt.want)
		}
	}
	ours, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	right := planted(t, "election.go", answering, "// A comment.\n"+answering)
	t.Chdir(dir)
	code, _, errs := try("explore", "-seeds", "1-2", "-raft", right)
	if code != exitUsage || !strings.Contains(errs, "-src DIR") {
		t.Errorf("far from the source: exit %d, %s", code, errs)
	}
	if code, _, errs := try("explore", "-seeds", "1-2", "-raft", right, "-src", ours); code != exitHeld {
		t.Errorf("with -src: exit %d, %s", code, errs)
	}
}

// A search that is stopped may be about to start a worker: there is none then, and none to wait for.
func TestAWorkerThatDoesNotStartLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		ctx        context.Context
	}{
		{"stopped", self, stopped},
		{"no such program", filepath.Join(t.TempDir(), "none"), t.Context()},
	} {
		h := &hand{b: &built{path: c.path}, bounds: usualBounds()}
		if o, crash, err := h.ask(c.ctx, job{}); o != nil || crash != nil || err == nil {
			t.Errorf("%s: ask returned %v, %v, %v", c.name, o, crash, err)
		}
		if err := h.end(); err != nil {
			t.Errorf("%s: end: %v", c.name, err)
		}
	}
}
