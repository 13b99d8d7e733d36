package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"ticketing/sim"
)

const (
	defencesBegin = "<!-- defences:begin -->\n```text\n"
	defencesEnd   = "```\n<!-- defences:end -->\n"
)

var safeRow = regexp.MustCompile(`safe, (\d+) states`)

// The rows that are broken are searched anew each time, which is quick. Of those that are safe the
// page's numbers of states are believed, unless TICKETING_LONG is set: that takes a minute or more.
func TestTheDefenceTableIsWhatTheSearchFinds(t *testing.T) {
	name := filepath.Join(root, "docs", "defences.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), defencesBegin)
	table, after, ok2 := strings.Cut(rest, defencesEnd)
	if !ok1 || !ok2 {
		t.Fatal("docs/defences.md has no place for the table")
	}
	anew := *update || os.Getenv("TICKETING_LONG") != ""
	verdicts, searches := defences(t, table, anew)
	if searches < 54 {
		t.Errorf("only %d combinations were searched", searches)
	}
	want := sim.DefenceText(verdicts) + "\n" + sim.DefenceScope() + sim.DefenceWays(verdicts)
	if *update {
		text := before + defencesBegin + want + defencesEnd + after
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("docs/defences.md tells another table (run go test ./docs -run Defence -update):\n%s", diff)
	}
}

// defences returns the verdicts, all of them searched anew, or the safe ones as a table has them.
func defences(t *testing.T, table string, anew bool) (verdicts []sim.Verdict, searches int) {
	t.Helper()
	rows := strings.Split(table, "\n")
	all := sim.AllDefences()
	verdicts = make([]sim.Verdict, len(all))
	var group errgroup.Group
	group.SetLimit(2)
	for i, d := range all {
		if i+1 < len(rows) && !anew {
			if m := safeRow.FindStringSubmatch(rows[i+1]); m != nil {
				states, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				verdicts[i] = sim.Verdict{Defences: d, States: states}
				continue
			}
		}
		searches++
		group.Go(func() (err error) {
			verdicts[i], err = d.Search(t.Context())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return verdicts, searches
}
