package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// beRaftsim tells the tests' program that it is to be raftsim itself, where a real process is the point.
const beRaftsim = "TICKETING_BE_RAFTSIM"

func TestMain(m *testing.M) {
	if os.Getenv(beRaftsim) != "" {
		main()
	}
	os.Exit(m.Run())
}

// asRaftsim is a command in which the tests' program is raftsim.
func asRaftsim(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), beRaftsim+"=yes")
	return cmd
}

// must runs raftsim, which has to end with a code.
func must(t *testing.T, code int, args ...string) (out, errs string) {
	t.Helper()
	got, out, errs := try(args...)
	if got != code {
		t.Fatalf("raftsim %q: exit %d, want %d\n%s%s", args, got, code, out, errs)
	}
	return out, errs
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// searchFile is the results of a search of few seeds that still has several chunks.
func searchFile(t *testing.T) (path string, data []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "whole.jsonl")
	must(t, exitHeld, "explore", "-seeds", "1-110", "-faults", "mild", "-nodes", "3", "-out", path)
	return path, contents(t, path)
}

func TestShardsAreTheWholeAndNoTwoHaveASeedInCommon(t *testing.T) {
	last := ^uint64(0)
	for _, tt := range []struct{ from, to uint64 }{{1, 1}, {1, 7}, {5, 104}, {1, 20000}, {1, last}, {last - 11, last}} {
		for _, n := range []uint64{1, 2, 3, 7, 12, 100} {
			if n-1 > tt.to-tt.from {
				if _, _, err := (shard{1, n}).of(tt.from, tt.to); err == nil {
					t.Errorf("%d shards of %d-%d are accepted", n, tt.from, tt.to)
				}
				continue
			}
			next, least, most := tt.from, last, uint64(0)
			for i := uint64(1); i <= n; i++ {
				first, end, err := shard{i, n}.of(tt.from, tt.to)
				if err != nil || first != next || end < first {
					t.Fatalf("shard %d/%d of %d-%d is %d-%d, %v", i, n, tt.from, tt.to, first, end, err)
				}
				next, least, most = end+1, min(least, end-first), max(most, end-first)
			}
			if next != tt.to+1 || most-least > 1 {
				t.Errorf("%d shards of %d-%d end before %d; they differ by %d", n, tt.from, tt.to, next, most-least)
			}
		}
	}
}

func TestShardsMergedAreTheSearchInOnePiece(t *testing.T) {
	dir := t.TempDir()
	common := []string{"-seeds", "1-230", "-faults", "mild", "-nodes", "3"}
	var files []string
	for _, i := range []string{"3", "1", "2"} {
		file := filepath.Join(dir, i)
		must(t, exitHeld, append([]string{"explore", "-shard", i + "/3", "-out", file}, common...)...)
		files = append(files, file)
	}
	whole, _ := must(t, exitHeld, append([]string{"explore", "-json"}, common...)...)
	merged, _ := must(t, exitHeld, append([]string{"merge", "-json"}, files...)...)
	type report struct {
		Seeds, First, Last int64
		SimulatedUS        int64 `json:"simulated_us"`
		Events             int64
		Held               bool
		Counters           map[string]int64
		Unseen             []string
	}
	var want, got report
	if err := json.Unmarshal([]byte(whole), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(merged), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Seeds != 230 || got.Counters["elections"] == 0 || len(got.Unseen) == 0 {
		t.Errorf("in one piece, and merged:\n%s", diff)
	}
	text, _ := must(t, exitHeld, append([]string{"merge"}, files...)...)
	for _, part := range []string{"seeds 1-230, faults mild, 3 shards: 230 runs", "not yet:", "invariants held"} {
		if !strings.Contains(text, part) {
			t.Errorf("merge does not say %q:\n%s", part, text)
		}
	}
}

// Wherever a file is cut off, the same command goes on, and what it writes in the end has the bytes of a
// search that nobody disturbed.
func TestAResultsFileThatIsCutAnywhereIsGoneOnWith(t *testing.T) {
	path, want := searchFile(t)
	lines := bytes.SplitAfter(want, []byte("\n"))
	if len(lines) != 4 { // the header, two chunks, and nothing behind them
		t.Fatalf("%d lines:\n%s", len(lines), want)
	}
	header, first := len(lines[0]), len(lines[0])+len(lines[1])
	for _, tt := range []struct {
		size int
		says string
	}{
		{0, ""}, {1, "begins anew; dropped 1 bytes"}, {header - 1, "begins anew"}, {header, "goes on at seed 1\n"},
		{first - 1, "goes on at seed 1; dropped"}, {first, "goes on at seed 101\n"},
		{first + 40, "goes on at seed 101; dropped 40 bytes of a line that was cut off"},
		{len(want) - 1, "goes on at seed 101; dropped"}, {len(want), "through already"},
	} {
		if err := os.WriteFile(path, want[:tt.size], 0o644); err != nil {
			t.Fatal(err)
		}
		out, errs := must(t, exitHeld, "explore", "-seeds", "1-110", "-faults", "mild", "-nodes", "3", "-out", path)
		if !strings.Contains(errs, tt.says) || tt.says == "" && errs != "" || !strings.Contains(out, "seeds 1-110, faults mild: 110 runs") {
			t.Errorf("cut at %d of %d it says %q\n%s", tt.size, len(want), errs, out)
		}
		if got := contents(t, path); !bytes.Equal(got, want) {
			t.Errorf("cut at %d of %d it becomes\n%s\nand not\n%s", tt.size, len(want), got, want)
		}
	}
}

// What is left of a line need not be the beginning of the one that follows.
func TestHalfALineIsGoneHoweverLongItWas(t *testing.T) {
	path, want := searchFile(t)
	end := bytes.LastIndexByte(want[:len(want)-1], '\n') + 1
	if err := os.WriteFile(path, append(want[:end:end], strings.Repeat("x", 5000)...), 0o644); err != nil {
		t.Fatal(err)
	}
	_, errs := must(t, exitHeld, "explore", "-seeds", "1-110", "-faults", "mild", "-nodes", "3", "-out", path)
	if got := contents(t, path); !strings.Contains(errs, "dropped 5000 bytes") || !bytes.Equal(got, want) {
		t.Errorf("%s\n%s\nand not\n%s", errs, got, want)
	}
}

// A search that nobody but a real kill -9 can stop loses what it has not written, and nothing else.
func TestASearchSurvivesKill9(t *testing.T) {
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	search := func(file string) []string {
		return []string{"explore", "-seeds", "1-900", "-out", filepath.Join(dir, file)}
	}
	must(t, exitHeld, search("whole")...)
	kills := 0
	for _, enough := range []int{2, 5} { // lines, of the ten
		if killed(t, asRaftsim(program, search("cut")...), filepath.Join(dir, "cut"), enough) {
			kills++
		}
	}
	before := bytes.Count(contents(t, filepath.Join(dir, "cut")), []byte("\n"))
	if kills == 0 || before < 2 || before > 9 {
		t.Fatalf("it was killed %d times in its work, and has %d lines", kills, before)
	}
	_, errs := must(t, exitHeld, search("cut")...)
	if !strings.Contains(errs, "goes on at seed") {
		t.Errorf("it says %q", errs)
	}
	whole, _ := must(t, exitHeld, "merge", "-json", filepath.Join(dir, "whole"))
	cut, _ := must(t, exitHeld, "merge", "-json", filepath.Join(dir, "cut"))
	same := bytes.Equal(contents(t, filepath.Join(dir, "whole")), contents(t, filepath.Join(dir, "cut")))
	if diff := cmp.Diff(whole, cut); diff != "" || !same {
		t.Errorf("the files are the same: %v; merged, they differ:\n%s", same, diff)
	}
}

// killed starts a search and kills it once its file has some lines. It reports whether it was still at
// work then.
func killed(t *testing.T, search *exec.Cmd, file string, lines int) bool {
	t.Helper()
	if err := search.Start(); err != nil {
		t.Fatal(err)
	}
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-poll.C {
		if data, err := os.ReadFile(file); err == nil && bytes.Count(data, []byte("\n")) >= lines {
			break
		}
	}
	if err := search.Process.Kill(); err != nil {
		t.Logf("it had ended: %v", err)
	}
	return search.Wait() != nil && search.ProcessState.ExitCode() == -1
}

// A scheduler that starts the same shard twice does no harm: both write the same.
func TestTwoSearchesMayWriteTheSameFile(t *testing.T) {
	path, want := searchFile(t)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { try("explore", "-seeds", "1-110", "-faults", "mild", "-nodes", "3", "-out", path) })
	}
	both.Wait()
	if got := contents(t, path); !bytes.Equal(got, want) {
		t.Errorf("they wrote\n%s\nand not\n%s", got, want)
	}
}

// The seed that failed ends the file, with the command that runs it again.
func TestAFailureIsALineOfTheResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.jsonl")
	command := []string{"explore", "-seeds", "2-900", "-without", "expire-token", "-out", path}
	first, _ := must(t, exitBroken, command...)
	var failed *failureLine
	var want []byte
	for lines := bufio.NewScanner(bytes.NewReader(contents(t, path))); lines.Scan(); {
		line, err := decodeLine(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if line.Failed != nil {
			failed = line.Failed
			want = append(bytes.Clone(lines.Bytes()), '\n')
		}
	}
	if failed == nil || failed.Seed < 2 || cmp.Diff(failed.Violated, []string{"removal-meant"}) != "" {
		t.Fatalf("the failure is %+v", failed)
	}
	must(t, exitBroken, strings.Fields(failed.Replay)[1:]...)
	again, errs := must(t, exitBroken, command...)
	broken := func(s string) string { return s[strings.Index(s, "BROKEN"):] }
	if !strings.Contains(errs, "through already") || broken(first) != broken(again) {
		t.Errorf("%s\nfirst:\n%s\nagain:\n%s", errs, broken(first), broken(again))
	}
	merged, _ := must(t, exitBroken, "merge", path)
	if !strings.Contains(merged, "removal-meant: a removal") || !strings.Contains(merged, "again: "+failed.Replay) {
		t.Errorf("merged:\n%s", merged)
	}
	data := contents(t, path) // cut between the failure's line and that of its chunk
	cut := bytes.Index(data, want) + len(want)
	if err := os.WriteFile(path, data[:cut], 0o644); err != nil {
		t.Fatal(err)
	}
	if must(t, exitBroken, command...); !bytes.Equal(contents(t, path), data) {
		t.Errorf("after a cut in between:\n%s\nand not\n%s", contents(t, path), data)
	}
}

// A file in which somebody else's search fails where ours holds is not of this program.
func TestAFailureThatDoesNotComeAgainIsRefused(t *testing.T) {
	path, data := searchFile(t)
	lines := bytes.SplitAfter(data, []byte("\n"))
	failed := []byte(`{"failed":{"seed":110,"violated":["one-holder"],"replay":"raftsim replay -seed 110"}}` + "\n")
	forged := bytes.Join([][]byte{lines[0], lines[1], failed, lines[2]}, nil)
	if err := os.WriteFile(path, forged, 0o644); err != nil {
		t.Fatal(err)
	}
	_, errs := must(t, exitUsage, "explore", "-seeds", "1-110", "-faults", "mild", "-nodes", "3", "-out", path)
	if !strings.Contains(errs, "seed 110 failed when it was searched, and holds now") {
		t.Error(errs)
	}
}

func TestAnInterruptedSearchSaysHowToGoOn(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	path := filepath.Join(t.TempDir(), "the results.jsonl")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-seeds", "5-90000", "-nodes", "5"}, "raftsim explore -seeds 5-90000 -faults harsh -nodes 5\n"},
		{[]string{"-for", "1h", "-without", "gate"}, "raftsim explore -seeds 1- -for 1h0m0s -faults harsh -without gate\n"},
		{[]string{"-seeds", "1-90", "-shard", "2/3"}, "raftsim explore -seeds 31-60 -faults harsh\n"},
		{[]string{"-seeds", "1-90", "-shard", "2/3", "-out", path},
			"raftsim explore -seeds 1-90 -faults harsh -shard 2/3 -out '" + path + "'\n"},
	} {
		var out, errs bytes.Buffer
		code := run(ctx, append([]string{"explore"}, tt.args...), &out, &errs)
		_, command, _ := strings.Cut(out.String(), "go on with:\n  ")
		// A seed or two may be through before anybody looks whether to stop.
		got := cmp.Diff(command, tt.want) == ""
		if code != exitCut || !got && !strings.Contains(out.String(), " 1 runs") && !strings.Contains(out.String(), " 2 runs") {
			t.Errorf("%q: exit %d, it goes on with %q and not %q\n%s", tt.args, code, command, tt.want, out.String())
		}
	}
}

// The line of progress goes to a terminal and nowhere else.
func TestProgressIsForTerminals(t *testing.T) {
	search := []string{"explore", "-seeds", "1-100", "-faults", "mild", "-nodes", "3", "-out", filepath.Join(t.TempDir(), "piped")}
	var piped bytes.Buffer
	if run(context.Background(), search, &bytes.Buffer{}, &piped); piped.Len() != 0 {
		t.Errorf("into a pipe goes %q", piped.String())
	}
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("there is no script(1) here, which makes a terminal")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	search[len(search)-1] = filepath.Join(t.TempDir(), "shown")
	shown, err := asRaftsim(script, "-qec", quoted(program)+" "+strings.Join(search, " "), "/dev/null").CombinedOutput()
	if err != nil || !bytes.Contains(shown, []byte(" a second, ")) || !bytes.Contains(shown, []byte("s left;")) {
		t.Errorf("on a terminal: %v\n%q", err, shown)
	}
}
