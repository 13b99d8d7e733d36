package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A lockRow is one row of a table in locks.md: its first cell, what it says, and what shows it.
type lockRow struct {
	id    string
	cells []string
	shown []string
}

var (
	tableRow    = regexp.MustCompile(`(?m)^\| (.+) \|$`)
	testName    = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	hazardNames = regexp.MustCompile(`[Hh]azards? (\d+(?:(?:, | and )\d+)*)`)
	schedule    = regexp.MustCompile(`\bL(0[1-9]|1\d)\b`)
)

// lockRows reads the rows of the table below a heading.
func lockRows(page, heading string) (rows []lockRow) {
	_, rest, _ := strings.Cut(page, "\n## "+heading+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	for _, m := range tableRow.FindAllStringSubmatch(rest, -1) {
		cells := strings.Split(m[1], " | ")
		if strings.HasPrefix(cells[0], "-") || cells[len(cells)-1] == "Shown by" {
			continue
		}
		r := lockRow{id: cells[0], cells: cells}
		for _, name := range code.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			r.shown = append(r.shown, name[1])
		}
		rows = append(rows, r)
	}
	return rows
}

// A showing is what can stand in a row: tests and scenarios, each with what its comments speak of.
type showing struct {
	names   map[string]bool
	sources map[string]string // of tests and scenarios, by file
}

func readShowing(t *testing.T, root string) showing {
	t.Helper()
	s := showing{map[string]bool{}, map[string]string{}}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		scenario := filepath.Base(filepath.Dir(name)) == "scenarios" && filepath.Ext(name) == ".txt"
		if err != nil || d.IsDir() || !scenario && !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s.sources[filepath.ToSlash(name)] = string(text)
		if scenario {
			s.names[strings.TrimSuffix(filepath.Base(name), ".txt")] = true
		}
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			s.names[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lockProblems says what is missing from the page, or is not where the page says.
func lockProblems(page string, s showing) (problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	ids := map[string]bool{}
	for heading, width := range map[string]int{"Hazards": 4, "Reports": 4, "Schedules": 3} {
		for _, r := range lockRows(page, heading) {
			if len(r.cells) != width || ids[r.id] {
				report("%s: the row of %s has not %d cells, or is there twice", heading, r.id, width)
			}
			ids[r.id] = true
			if len(r.shown) == 0 {
				report("%s: nothing shows %s", heading, r.id)
			}
			for _, name := range r.shown {
				if !s.names[name] {
					report("%s: %s is said to be shown by %s, which is not there", heading, r.id, name)
				}
			}
		}
	}
	for n := 1; n <= 40; n++ {
		if !ids[strconv.Itoa(n)] {
			report("Hazards: there is no row %d", n)
		}
	}
	if n := len(lockRows(page, "Reports")); n < 45 {
		report("Reports: only %d rows", n)
	}
	for file, text := range s.sources {
		for _, m := range hazardNames.FindAllStringSubmatch(text, -1) {
			for _, number := range regexp.MustCompile(`\d+`).FindAllString(m[1], -1) {
				if !ids[number] {
					report("%s speaks of hazard %s, of which the page has no row", file, number)
				}
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// Every hazard, report and schedule of locks.md is shown by something that exists, and none of the
// forty is missing. The schedules are named where they are shown, too.
func TestEveryHazardAndReportIsShownBySomething(t *testing.T) {
	page, err := os.ReadFile("locks.md")
	if err != nil {
		t.Fatal(err)
	}
	s := readShowing(t, "..")
	if len(s.names) < 300 {
		t.Fatalf("only %d tests and scenarios were found", len(s.names))
	}
	for _, problem := range lockProblems(string(page), s) {
		t.Error(problem)
	}
	named := map[string]bool{}
	for file, text := range s.sources {
		if !strings.HasSuffix(file, "/locks_test.go") {
			for _, id := range schedule.FindAllString(text, -1) {
				named[id] = true
			}
		}
	}
	for _, r := range lockRows(string(page), "Schedules") {
		if !named[r.id] {
			t.Errorf("no test and no scenario names %s", r.id)
		}
	}
}

// And it can fail.
func TestAPageOfHazardsMustBeWhole(t *testing.T) {
	page, err := os.ReadFile("locks.md")
	if err != nil {
		t.Fatal(err)
	}
	s := readShowing(t, "..")
	for _, c := range []struct{ old, new, want string }{
		{"| 17 | ", "| 17b | ", "Hazards: there is no row 17"},
		{"| 17 | ", "| 17b | ", "speaks of hazard 17"},
		{"`withdrawn` |\n| 5", "`withdrawal` |\n| 5", "4 is said to be shown by withdrawal"},
		{"`TestAnOwnerIsALabelAndNoRight` |", "somebody |", "nothing shows 7"},
		{"`TestAClientIsOneHolder`", "`TestAClientIsTwoHolders`", "8 is said to be shown by TestAClientIsTwoHolders"},
		{"| redisson#3636 |", "| |", "Reports: the row of"},
		{"`TestDoneIsClosedOnce` |", "a look |", "nothing shows kubernetes#23731"},
		{"\n| L05 |", "\n| L04 |", "the row of L04"},
	} {
		if strings.Count(string(page), c.old) < 1 {
			t.Errorf("the page does not have %q", c.old)
		}
		problems := lockProblems(strings.Replace(string(page), c.old, c.new, 1), s)
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%q for %q is not noticed: %q", c.new, c.old, problems)
		}
	}
}
