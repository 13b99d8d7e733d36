package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files that are not one search, each seed once, are not added up.
func TestMergeRefusesWhatIsNotOneWholeSearch(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	shardOf := func(name, part string, more ...string) string {
		args := append([]string{"explore", "-seeds", "1-6", "-faults", "mild", "-shard", part, "-out", at(name)}, more...)
		must(t, exitHeld, args...)
		return at(name)
	}
	edited := func(name, of, from, to string) string {
		data := contents(t, of)
		changed := bytes.Replace(data, []byte(from), []byte(to), 1)
		if bytes.Equal(data, changed) {
			t.Fatalf("%s has no %q", of, from)
		}
		if err := os.WriteFile(at(name), changed, 0o644); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	one, two := shardOf("one", "1/2"), shardOf("two", "2/2")
	must(t, exitHeld, "merge", two, one)
	for _, tt := range []struct {
		files []string
		want  string
	}{
		{nil, "which files?"},
		{[]string{at("none")}, "reading results"},
		{[]string{one}, "shard 2/2, the seeds 4-6, is missing (1 of 2 are here); make it with:\n  raftsim explore -seeds 1-6 -faults mild -shard 2/2"},
		{[]string{one, two, shardOf("again", "2/2")}, "overlap: both have shard 2/2, the seeds 4-6"},
		{[]string{one, shardOf("third", "2/3")}, "differs from the first in the number of shards, 3 and not 2"},
		{[]string{one, shardOf("more", "2/2", "-seeds", "1-8")}, "in the seeds, 1-8 and not 1-6"},
		{[]string{one, shardOf("harsh", "2/2", "-faults", "harsh")}, "in the faults, harsh and not mild"},
		{[]string{one, shardOf("five", "2/2", "-nodes", "5")}, "in the number of servers (-nodes), 5 and not 0"},
		{[]string{one, shardOf("gateless", "2/2", "-without", "gate")}, "in the rules taken away (-without), [gate] and not []"},
		{[]string{one, edited("other", two, `"plans":"`, `"plans":"x`)}, "in the version of raftsim"},
		{[]string{one, edited("next", two, `"version":1`, `"version":2`)}, "version 2 of the format, and this raftsim reads version 1"},
		{[]string{one, edited("cut", two, "}}\n{", "}}\n\n{")}, "line 2: it is not a line of a search's results"},
		{[]string{one, edited("half", two, `{"chunk":{"from":4,"to":6`, `{"chunk":{"from":4,"to":5`)}, "it has the seeds 4-5 where 4-6 are next"},
		{[]string{one, edited("gap", two, `{"chunk":{"from":4`, `{"chunk":{"from":5`)}, "it has the seeds 5-6 where 4-6 are next"},
		{[]string{one, edited("unknown", two, `"commits"`, `"comits"`)}, `there is no counter "comits"`},
		{[]string{one, edited("trace", two, `raftsim search`, `raftsim trace`)}, "line 1: it does not begin like the results of a search"},
		{[]string{one, edited("odd", two, `"shard":2`, `"shard":3`)}, "there is no shard 3/2"},
	} {
		_, errs := must(t, exitUsage, append([]string{"merge"}, tt.files...)...)
		if !strings.Contains(errs, tt.want) {
			t.Errorf("merge %q says %q and not %q", tt.files, errs, tt.want)
		}
	}
	data := contents(t, two)
	if err := os.WriteFile(at("short"), data[:len(data)-9], 0o644); err != nil {
		t.Fatal(err)
	}
	_, errs := must(t, exitUsage, "merge", one, at("short"))
	want := "is not through: it ends before seed 4 of 4-6; go on with:\n  raftsim explore -seeds 1-6 -faults mild -shard 2/2 -out " + at("short")
	if !strings.Contains(errs, want) {
		t.Errorf("it says %q and not %q", errs, want)
	}
}

// A file that is not the results of this very search is left as it is.
func TestASearchDoesNotWriteOverWhatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes")
	if err := os.WriteFile(notes, []byte("a line without an end"), 0o644); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, "mine")
	must(t, exitHeld, "explore", "-seeds", "1-4", "-faults", "mild", "-out", mine)
	for _, tt := range []struct {
		args []string
		file string
		want string
	}{
		{[]string{"-seeds", "1-4"}, notes, "give another -out"},
		{[]string{"-seeds", "1-5", "-faults", "mild"}, mine, "differs in the seeds, 1-4 and not 1-5"},
		{[]string{"-seeds", "1-4", "-faults", "harsh"}, mine, "differs in the faults, mild and not harsh"},
		{[]string{"-seeds", "1-4", "-faults", "mild", "-shard", "1/2"}, mine, "the number of shards, 1 and not 2"},
		{[]string{"-seeds", "1-4"}, dir, "reading the results so far"},
		{[]string{"-seeds", "1-4"}, filepath.Join(dir, "no", "where"), "opening the results"},
		{[]string{"-seeds", "1-", "-for", "1s"}, mine, "give -seeds A-B"},
		{[]string{"-seeds", "1-4", "-shard", "5/4"}, mine, "expected I/N"},
		{[]string{"-seeds", "1-4", "-shard", "2"}, mine, "expected I/N"},
		{[]string{"-seeds", "1-4", "-shard", "1/5"}, mine, "fewer seeds than shards"},
	} {
		before, _ := os.ReadFile(tt.file)
		_, errs := must(t, exitUsage, append([]string{"explore", "-out", tt.file}, tt.args...)...)
		if after, _ := os.ReadFile(tt.file); !strings.Contains(errs, tt.want) || !bytes.Equal(before, after) {
			t.Errorf("%q says %q and not %q, and the file is now %q", tt.args, errs, tt.want, after)
		}
	}
}

// What has not happened is told, and with -require-all it is a failure.
func TestASearchThatHasNotSeenEnoughSaysSo(t *testing.T) {
	few := []string{"explore", "-seeds", "1-3", "-faults", "mild"}
	out, _ := must(t, exitHeld, few...)
	if !strings.Contains(out, "things that a search should see; not yet:\n") || strings.Contains(out, "NOT ENOUGH") {
		t.Error(out)
	}
	file := filepath.Join(t.TempDir(), "few")
	out, _ = must(t, exitBroken, append(few, "-require-all", "-out", file)...)
	if !strings.Contains(out, "NOT ENOUGH  -require-all, and ") {
		t.Error(out)
	}
	must(t, exitHeld, "merge", file)
	must(t, exitBroken, "merge", "-require-all", file)
	out, _ = must(t, exitBroken, append(few, "-require-all", "-json")...)
	if !strings.Contains(out, `"unseen": [`+"\n") || !strings.Contains(out, `"members.left"`) {
		t.Error(out)
	}
}

// A thousand harsh seeds see all of it; the rarest thing is there in one of some hundred.
func TestASearchThatHasSeenAllSaysSo(t *testing.T) {
	if os.Getenv("TICKETING_LONG") == "" {
		t.Skip("5,000 seeds; TICKETING_LONG=1 runs them")
	}
	out, _ := must(t, exitHeld, "explore", "-seeds", "1-5000", "-require-all")
	if !strings.Contains(out, "Seen             all ") {
		t.Error(out)
	}
}
