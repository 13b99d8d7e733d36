package docs_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ticketing/internal/planted"
)

// A removal is what a chapter invites its reader to do: to take a rule away and see what comes of it.
type removal struct {
	page     string
	mistake  planted.Mistake
	scenario string
	breaks   string // the end of the scenario says this then
}

// A removal stands in a block of its own: a file, the lines that go, those that come, and a command with
// a remark.
var (
	diffBlock = regexp.MustCompile("(?ms)^```diff\n(.*?)^```$")
	diffRun   = regexp.MustCompile(`^go run ./cmd/raftsim run (\S+) +# (.+)$`)
)

func removals(page, text string) (list []removal, err error) {
	for _, block := range diffBlock.FindAllStringSubmatch(text, -1) {
		lines := strings.Split(strings.TrimSpace(block[1]), "\n")
		run := diffRun.FindStringSubmatch(lines[len(lines)-1])
		if run == nil || len(lines) < 3 {
			return nil, fmt.Errorf("%s: a block must end with a command and its remark:\n%s", page, block[1])
		}
		r := removal{page: page, scenario: run[1], breaks: run[2]}
		r.mistake.File = lines[0]
		for _, line := range lines[1 : len(lines)-1] {
			switch line[:min(1, len(line))] {
			case "-":
				r.mistake.Is += line[1:] + "\n"
			case "+":
				r.mistake.Instead += line[1:] + "\n"
			default:
				return nil, fmt.Errorf("%s: neither goes nor comes: %q", page, line)
			}
		}
		list = append(list, r)
	}
	return list, nil
}

// shownRemovals reads all chapters. Each of what is built must have one at least.
func shownRemovals(t *testing.T) (list []removal) {
	t.Helper()
	for page, text := range files(t, ".md") {
		if path.Dir(page) != "docs/beyond" {
			continue
		}
		found, err := removals(page, text)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 && path.Base(page) != "joint-consensus.md" {
			t.Errorf("%s takes no rule away", page)
		}
		list = append(list, found...)
	}
	slices.SortFunc(list, func(a, b removal) int {
		return strings.Compare(a.page+a.scenario, b.page+b.scenario)
	})
	if len(list) < 5 {
		t.Fatalf("only %d rules are taken away", len(list))
	}
	return list
}

// The whole takes a minute and more: without TICKETING_LONG each piece is looked up, and one is carried out.
func TestARuleThatAChapterTakesAwayIsMissed(t *testing.T) {
	for i, r := range shownRemovals(t) {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(r.mistake.File)))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), r.mistake.Is); n != 1 {
			t.Errorf("%s: %s has this %d times:\n%s", r.page, r.mistake.File, n, r.mistake.Is)
			continue
		}
		if i > 0 && os.Getenv("TICKETING_LONG") == "" {
			continue
		}
		t.Run(r.scenario, func(t *testing.T) {
			t.Parallel()
			got := planted.Run(t, runner, []string{r.scenario}, r.mistake)
			if !strings.Contains(got, "held false") || !strings.Contains(got, r.breaks) {
				t.Errorf("%s says %q, and it came to:\n%s", r.page, r.breaks, got)
			}
		})
	}
}

func TestARemovalMustHaveItsForm(t *testing.T) {
	const run = "go run ./cmd/raftsim run bridge   # it breaks\n"
	for _, c := range []struct{ block, want string }{
		{"raft/a.go\n-\tone\n-\ttwo\n+\tthree\n" + run, ""},
		{"raft/a.go\n-\tone\n" + run, ""},
		{"raft/a.go\n-\tone\n", "must end with a command"},
		{"raft/a.go\n-\tone\ngo run ./cmd/raftsim run bridge\n", "must end with a command"},
		{run, "must end with a command"},
		{"raft/a.go\n\tone\n" + run, "neither goes nor comes"},
	} {
		var problems []string
		list, err := removals("page", "before\n```diff\n"+c.block+"```\nafter\n")
		if err != nil {
			problems = append(problems, err.Error())
		} else if len(list) != 1 || !strings.HasPrefix(list[0].mistake.Is, "\tone\n") {
			problems = append(problems, fmt.Sprintf("read as %+v", list))
		}
		wantProblem(t, c.block, problems, c.want)
	}
}
