package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"ticketing/cmd/internal/cluster"
	"ticketing/fsm/trace"
	"ticketing/sim"
)

// TestMain lets the tests' own program be the harness, and the servers that the harness makes of
// itself.
func TestMain(m *testing.M) {
	if os.Getenv("HARNESS_TEST_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// harness runs the program once; "" stands for that of the tests.
func harness(t *testing.T, binary string, args ...string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, cmp.Or(binary, os.Args[0]), args...)
	cmd.Env = append(os.Environ(), "HARNESS_TEST_MAIN=1")
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), string(text)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return 0, string(text)
}

// conclusive runs the program again if it says that it may have missed the moment: this machine has
// other things to do.
func conclusive(t *testing.T, binary string, args ...string) (code int, out string) {
	t.Helper()
	for range 4 {
		code, out = harness(t, binary, args...)
		if !strings.Contains(out, "INCONCLUSIVE") && !strings.Contains(out, "too late") {
			break
		}
		t.Logf("once more, after\n%s", out)
	}
	return code, out
}

// file writes a scenario.
func file(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "it.txt")
	text := "# A scenario\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The claim of the project, on three processes: a late Expire meets a fresh lock and leaves it
// alone, and it removes it when the leader or the table does without the token.
//
//spec:test Expire.Token
func TestTheLateExpireIsHarmlessOnRealProcessesAndNotWithoutTheToken(t *testing.T) {
	for name, c := range map[string]struct {
		overlay bool
		args    []string
		code    int
		want    []string
	}{
		"it holds": {false, []string{"late-expire"}, exitHeld, []string{
			"held    late-expire", "Expire door #1 -> Expired{false}, as #2 holds it",
			"until count expire.newer >= 1 within 50ms   -> it is",
		}},
		"without the rule": {false, []string{"-without", "expire-token", "late-expire"}, exitBroken, []string{
			"BROKEN  removal-meant", "Released and ENDS #2!", "WITHOUT expire-token",
			"again:  go run ./cmd/harness -without expire-token late-expire",
		}},
		"without the comparison": {true, []string{"late-expire"}, exitBroken, []string{
			"BROKEN  removal-meant", "Expired{true} and ENDS #2!",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := ""
			if c.overlay {
				var err error
				binary, err = cluster.BuildBinary(t.TempDir(), "./cmd/harness", overlay(t))
				if err != nil {
					t.Fatal(err)
				}
			}
			merged := filepath.Join(t.TempDir(), "trace")
			code, out := conclusive(t, binary, append([]string{"-trace", merged}, c.args...)...)
			for _, want := range c.want {
				if code != c.code || !strings.Contains(out, want) {
					t.Errorf("exit code %d, and it does not say %q:\n%s", code, want, out)
				}
			}
			checkKept(t, merged, c.code)
		})
	}
}

// checkKept looks for the story in the trace that was kept.
func checkKept(t *testing.T, merged string, code int) {
	t.Helper()
	f, err := os.Open(merged)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kept, err := trace.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := trace.Merge([]*trace.Trace{kept}); err != nil || len(again.Events) != len(kept.Events) {
		t.Errorf("merged once more it is another: %v", err)
	}
	c, events := newCounts(), map[trace.EventKind]int{}
	for i, e := range kept.Events {
		if e.ID != int64(i)+1 || e.Cause >= e.ID || i > 0 && e.At < kept.Events[i-1].At {
			t.Errorf("event %d is out of order: %+v", i+1, e)
		}
		c.take(e)
		events[e.Kind]++
	}
	if newer := c.of["expire.newer"]; newer != int64(1-code) || c.of["grant.granted"] != int64(2+code) {
		t.Errorf("%d Expires met a fresh lock; %v", newer, c.of)
	}
	if events[trace.KindCommand] != 3 || events[trace.KindViolation] != code || events[trace.KindProse] == 0 {
		t.Errorf("of the harness it has %v", events)
	}
}

// overlay is the table without the one comparison.
func overlay(t *testing.T) string {
	t.Helper()
	const guard = "\t\texisted = existed && tenure.Token == e.Token\n"
	table, err := filepath.Abs(filepath.Join("..", "..", "fsm", "table.go"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), guard); n != 1 {
		t.Fatalf("%s has the comparison %d times", table, n)
	}
	dir := t.TempDir()
	mutant, overlay := filepath.Join(dir, "table.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {table: mutant}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		mutant: strings.Replace(string(source), guard, "", 1), overlay: string(replace),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// possible are the scenarios of the library that real processes can do, and whether they end as in
// the simulator; docs/harness.md says why the others do not.
func possible() map[string]ending {
	return map[string]ending{
		"asymmetric-cut": same, "bridge": either, "bridge-without-checkquorum": either,
		"dueling-pre-candidates": same, "duplicate-expire": same, "flapping-link": either,
		"flapping-link-without-prevote": either, "ghost-lock": either, "ghost-race": either,
		"late-expire": same, "late-expire-new-leader": same, "late-expire-no-gate": same,
		"member-add": same, "member-add-unreachable": same, "member-learner": same, "member-read": same,
		"member-remove": same, "member-remove-leader": same, "member-removed-server": either,
		"member-removed-server-without-checkquorum": either, "member-rolling": same,
		"minority-partition": same, "pause-restart": same, "paused-holder": same, "read-index": same,
		"restart-follower": either, "slow-votes": either, "snapshot-catch-up": same,
		"snapshot-late-expire": same, "snapshot-swallows-extend": same, "transfer": same,
		"transfer-mid-storm": same, "two-grants": same, "vacuous": either,
	}
}

// impossible are the scenarios about members, snapshots, transfers and reads that real processes cannot
// do, and the line's word that is the reason.
func impossible() map[string]string {
	return map[string]string{
		"member-fallback":    "count members.unknown: the client library asks again",
		"member-higher-term": "node: a server starts with an empty disk",
		"member-own-term":    "count members.refused: the client library asks again",
		"member-too-early":   "config batch",
		"read-deposed":       "clock: the processes share", "stale-lease-read": "clock: the processes share",
		"read-new-leader":   `the kind "append"`,
		"snapshot-conflict": "node: a server starts with an empty disk",
		"snapshot-crash":    "config chunk", "snapshot-lost-chunk": "config chunk",
		"snapshot-duplicate": "drop: messages are bytes", "snapshot-idle": "in-flight",
		"snapshot-power-loss": "disk: the files", "snapshot-suffix": "manual",
		"snapshot-twice": "config chunk", "transfer-dead": "not-leader: the client library",
		"transfer-outrun": `the kind "append"`, "transfer-slow": `the kind "append"`,
		"transfer-stale": `the kind "transfer"`,
	}
}

func TestScenariosAboutMembersSnapshotsAndTransfersAreDoneOrRefusedForAReason(t *testing.T) {
	done := 0
	for _, s := range sim.Library() {
		family, _, _ := strings.Cut(s.Name, "-")
		if !slices.Contains([]string{"member", "read", "snapshot", "transfer", "stale"}, family) {
			continue
		}
		why, refused := impossible()[s.Name]
		_, can := possible()[s.Name]
		_, err := prepare(s)
		switch {
		case refused == can:
			t.Errorf("%s: it is in both tables or in none", s.Name)
		case refused && (err == nil || !strings.Contains(err.Error(), why)):
			t.Errorf("%s is refused as %v; expected %q", s.Name, err, why)
		case can:
			done++
		}
	}
	if done < 12 {
		t.Errorf("%d can be done", done)
	}
}

// An ending is that of a run on real processes, beside that of one in the simulator.
type ending int

const (
	same ending = iota
	other
	either // as it happens to run
)

func TestScenariosEndAsInTheSimulator(t *testing.T) {
	short := []string{
		"duplicate-expire", "member-add", "pause-restart", "snapshot-catch-up", "transfer", "two-grants",
	}
	long := os.Getenv("TICKETING_LONG") != ""
	ran := 0
	for _, s := range sim.Library() {
		want, can := possible()[s.Name]
		if _, err := prepare(s); (err == nil) != can {
			t.Errorf("%s: %v", s.Name, err)
		}
		if !can || !long && !slices.Contains(short, s.Name) {
			continue
		}
		ran++
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			r, err := sim.Run(s, sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			again := conclusive
			if want != same { // nor need it be conclusive
				again = harness
			}
			code, out := again(t, "", s.Name)
			// That both fail is no agreement: each expectation holds in the simulator.
			differs := code != exitHeld
			if !r.Held() || differs && want == same || !differs && want == other || code > exitBroken {
				t.Errorf("exit code %d, in the simulator it holds: %t\n%s", code, r.Held(), out)
			}
		})
	}
	if ran < len(short) {
		t.Errorf("%d scenarios were run", ran)
	}
}

func TestCutsDelaysTimesAndCrashesReachTheProcesses(t *testing.T) {
	code, out := conclusive(t, "", file(t,
		"nodes 3", "config election=600ms", "network delay=2ms", "timeout S2", "until leader S2 term=1",
		"at 5s expect leader S2 term=1", // nothing is so late
		"until S1 commit=1", "isolate S1", "propose S2 alone", "until S3 commit=2", "expect S1 last=1",
		"heal", "until S1 log=1,1 durable.log=1,1 commit=2", "hold S2->S3", "propose S2 held",
		"until S1 commit=3", "expect S3 last=2", "release S2->S3", "expect S3 last=3",
		"pause S3", "propose S2 paused", "until S2 commit=4", "expect S3 last=3", "resume S3",
		"expect S3 last=4", "crash S1", "restart S1", "expect S1 log=1,1,1,1", "beat S2",
		"expect converged within 2s", "isolate S1", "timeout S1", "until S1 role=pre-candidate term=1",
		"run 100ms", "expect S2 role=leader term=1", "expect S3 term=1",
	))
	if code != exitHeld || strings.Count(out, "\n") < 25 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for line := range strings.Lines(out) {
		if len(line) > 101 {
			t.Errorf("this line has %d columns: %s", len(line), line)
		}
	}
}

func TestALineThatWasPutOffFailsInItsOwnName(t *testing.T) {
	code, out := harness(t, "", file(t, "config election=1s", "at 50ms timeout S1", "at 60ms crash S1",
		"at 70ms beat S1", "until S2 term=9", "expect S1 term=9"))
	if code != exitBroken || !strings.Contains(out, "it.txt:5: that") || strings.Contains(out, "until") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// Left alone, these servers would not do it in this time.
func TestTimersRunOutWhenTheScenarioSaysSo(t *testing.T) {
	code, out := harness(t, "", file(t,
		"config election=5s heartbeat=2s", "timeout S2", "until leader S2 term=1 within 200ms",
		"until S2 commit=1 within 200ms", "until S1 last=1 within 500ms", "until S3 last=1 within 500ms",
		// A beat tells S3 of the commit only once the leader has heard that S3 has the entry.
		"run 200ms", "beat S2", "run 200ms", "beat S2", "run 200ms", "beat S2", "until converged within 1ms",
	))
	if code != exitHeld {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// What does not happen must not pass for harmless.
func TestARunInWhichTheInterestingThingDoesNotHappenSaysSo(t *testing.T) {
	name := file(t, "config election=1s", "timeout S1", "until count expire.newer >= 1 within 1ms")
	code, out := harness(t, "", name)
	out = strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		"INCONCLUSIVE", "it.txt:4: waited 1ms", "this run shows nothing", "again: go run ./cmd/harness",
	} {
		if code != exitBroken || !strings.Contains(out, want) {
			t.Errorf("exit code %d, and it does not say %q:\n%s", code, want, out)
		}
	}
}

func TestLinesThatProcessesCannotDoAreRefusedBeforeAnythingStarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	for line, want := range map[string]string{
		"manual":                            "manual",
		"node S1 term=3":                    "node",
		"clock S1 rate=2":                   "clock",
		"suspend S1":                        "suspend",
		"A: suspend":                        "suspend",
		"disk S1 reorder":                   "disk",
		"crash S1 writing":                  "writing",
		"crash S1 lost":                     "lost",
		"strike crash S1 for 1s":            "strike",
		"on elected strike crash it for 1s": "strike",
		"recover":                           "recover",
		"at 1s strike stall S1 for 1s":      "strike",
		"disk S1 sync=2ms..3ms":             "disk",
		"config batch=1":                    "batch",
		"read S1 local":                     "read local",
		"until S1 read=failed":              "read=failed",
		"expect count reads.failed = 1":     "reads.failed",
		"expect count members.refused = 1":  "members.refused",
		"expect count members.unknown = 0":  "members.unknown",
		"config chunk=10":                   "chunk",
		"link A->S1 delay=1ms":              "link",
		"deliver S1->S2":                    "deliver",
		"drop S1->S2":                       "drop",
		"at 1s disk S1 stall":               "disk",
		"crash S1 torn":                     "torn",
		"hold S1->S2 vote":                  `"vote"`,
		"A: release door token=0":           "token=0",
		"A: retry":                          "retry",
		"A: read door":                      "read",
		"A: write door token=0":             "token=",
		"A: write door takes=1s":            "takes=",
		"resource door mistake=strict":      "resource",
		"at 1s resource door restart":       "resource",
		"expect in-flight S1->S2":           "in-flight",
		"until count torn = 1":              "count torn",
		"until A late":                      "late",
		"expect vote-once violated":         "vote-once",
		"at 1s expect vote-once violated":   "vote-once",
	} {
		var out, errs bytes.Buffer
		name := file(t, "", line)
		code := run(t.Context(), []string{"-dir", dir, name}, &out, &errs)
		text := errs.String()
		if !strings.HasPrefix(text, name+":3: cannot be done on real processes: ") ||
			!strings.Contains(text, want) || code != exitUsage {
			t.Errorf("%s: exit code %d, %s%s", line, code, &out, text)
		}
		if _, err := os.Stat(dir); err == nil || out.Len() > 0 {
			t.Errorf("%s: it has begun all the same: %s", line, &out)
		}
	}
}

func TestWrongUsageSaysWhatToDo(t *testing.T) {
	for args, want := range map[string]string{
		"":                           "name one scenario",
		"late-expire vacuous":        "name one scenario",
		"-without gat late-expire":   `did you mean "gate"`,
		"late-expir":                 `did you mean "late-expire"`,
		file(t, "until leader S9"):   "it.txt:2",
		"-no-such-flag late-expire":  "-no-such-flag",
		"late-expire -without gate":  "behind the flags",
		filepath.Join("no", "file."): "no such file",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(args), &out, &errs)
		if code != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("harness %s: exit code %d, %s", args, code, &errs)
		}
	}
}

func TestTheListTellsOfEveryScenario(t *testing.T) {
	var out bytes.Buffer
	if code := run(t.Context(), []string{"-list"}, &out, &out); code != exitHeld {
		t.Fatal(out.String())
	}
	var can []string
	for line := range strings.Lines(out.String()) {
		if !strings.Contains(line, "cannot:") {
			can = append(can, strings.Fields(line)[0])
		}
	}
	var want []string
	for _, s := range sim.Library() {
		if _, ok := possible()[s.Name]; ok {
			want = append(want, s.Name)
		}
	}
	if d := diff.Diff(want, can); d != "" || len(can) < 10 {
		t.Errorf("(-possible +listed):\n%s", d)
	}
}

func TestAServerThatCannotStartIsNotTheScenariosFault(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	if code, out := harness(t, "", "-dir", dir, file(t, "config election=1s", "run 1ms")); code != exitHeld {
		t.Fatal(out)
	}
	// The directory has the traces of that run, which no server writes over.
	code, out := harness(t, "", "-dir", dir, file(t, "run 1ms"))
	if code != exitUsage || !strings.Contains(out, "server 1") || !strings.Contains(out, "trace") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if logs, err := filepath.Glob(filepath.Join(dir, "*.log")); err != nil || len(logs) != 3 {
		t.Errorf("of the servers %v is kept, %v", logs, err)
	}
}

func TestAServerThatEndsByItselfFailsTheRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	cmd := exec.Command(os.Args[0], "-dir", dir, file(t, "config election=1s", "run 20s"))
	cmd.Env = append(os.Environ(), "HARNESS_TEST_MAIN=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	server := 0
	for end := time.Now().Add(20 * time.Second); server == 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		server = processOf(filepath.Join(dir, "2"))
	}
	if server == 0 {
		t.Skipf("no process of server 2 is found: it takes Linux's /proc\n%s", &out)
	}
	if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	err := cmd.Wait()
	if !errors.As(err, &exit) || exit.ExitCode() != exitBroken ||
		!strings.Contains(out.String(), "S2 has ended by itself") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// processOf finds the server that stores in a directory and has stored something, 0 if none is found.
func processOf(dir string) int {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		return 0
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0
	}
	for _, name := range lines {
		line, err := os.ReadFile(name)
		if err == nil && slices.Contains(strings.Split(string(line), "\x00"), dir) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err == nil {
				return pid
			}
		}
	}
	return 0
}

// story makes a trace of term 1 from lines: each is a node and what it does.
func story(lines ...string) *trace.Trace {
	t := &trace.Trace{Header: trace.NewHeader()}
	for i, line := range lines {
		e := trace.Event{ID: int64(i) + 1, At: trace.Time(i), Node: line[:2]}
		r := &trace.EntryRecord{Term: 1}
		switch what := line[3:]; {
		case what == "start":
			e.Kind, e.State = trace.KindStart, &trace.StateRecord{Role: "follower"}
		case what == "leads":
			e.Kind, e.State = trace.KindState, &trace.StateRecord{Role: "leader", Term: 1}
		case strings.HasPrefix(what, "table"):
			e.Kind, e.Snapshot = trace.KindTable, &trace.SnapshotRecord{}
			fmt.Sscanf(what, "table %d", &e.Snapshot.Index)
		case strings.HasPrefix(what, "append"):
			fmt.Sscanf(what, "append %d %q meant %d", &r.Index, &r.Command, &r.Meant)
			e.Kind, e.Entry = trace.KindAppend, r
		default:
			fmt.Sscanf(what, "apply %d %q %s %s", &r.Index, &r.Command, &r.Result, &r.Hash)
			e.Kind, e.Entry = trace.KindApply, r
		}
		t.Events = append(t.Events, e)
	}
	return t
}

func TestEveryInvariantIsSeenToBreak(t *testing.T) {
	grant := `S1 apply 1 "- grant 10 a" Granted{1} h1`
	for want, lines := range map[string][]string{
		"": {"S1 start", "S2 start", "S1 leads", grant, `S2 apply 1 "- grant 10 a" Granted{1} h1`,
			`S1 append 2 "- expire 1 a" meant 1`, `S1 apply 2 "- expire 1 a" Expired{true} h2`,
			`S1 apply 3 "- grant 10 a" Granted{2} h3`, "S2 start", `S2 apply 1 "- grant 10 a" Granted{1} h1`,
			"S3 start", "S3 table 2", `S3 apply 3 "- grant 10 a" Granted{2} h3`},
		"state-machine-safety 4 behind a table": {"S1 start", grant, "S1 table 2",
			`S1 apply 2 "- expire 1 a" Expired{true} h2`},
		"election-safety 2": {"S1 leads", "S2 leads"},
		"one-holder 3":      {"S1 start", grant, `S1 apply 2 "- grant 10 a" Granted{2} h2`},
		"tokens-increase 3": {"S1 start", grant, `S1 apply 2 "- grant 10 b" Granted{1} h2`},
		"removal-meant 5": {"S1 start", grant, `S1 apply 2 "- release 1 a" Released h2`,
			`S1 apply 3 "- grant 10 a" Granted{2} h3`, `S1 apply 4 "- release 0 a" Released h4`,
			`S1 append 4 "- release 0 a" meant 1`}, // the leader's trace may be behind
		"state-machine-safety 4 the hash": {"S1 start", "S2 start", grant, `S2 apply 1 "- grant 10 a" Granted{1} h9`},
		"state-machine-safety 4 the command": {"S1 start", "S2 start", grant,
			`S2 apply 1 "- grant 11 a" Granted{1} h1`},
		"state-machine-safety 3 a gap": {"S1 start", grant, `S1 apply 3 "- grant 10 b" Granted{2} h1`},
		"state-machine-safety 3 twice": {"S1 start", grant, grant},
	} {
		s := story(lines...)
		broken := judgeTrace(s)
		if want == "" {
			if len(broken) > 0 {
				t.Errorf("nothing is wrong with it, but %v", broken)
			}
			continue
		}
		f := strings.Fields(want)
		if len(broken) != 1 || broken[0].Invariant != f[0] || fmt.Sprint(broken[0].Event-1) != f[1] {
			t.Errorf("%s: %v", want, broken)
			continue
		}
		if e := s.Events[broken[0].Event-1]; e.Kind != trace.KindViolation || e.Cause != broken[0].Event-1 {
			t.Errorf("%s: behind it stands %+v", want, e)
		}
	}
}
