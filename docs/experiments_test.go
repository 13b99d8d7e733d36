package docs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A measured block is a command of docs/experiments.md and the figures that stand below it.
var measured = regexp.MustCompile(
	"(?m)^```sh\ngo run \\./cmd/raftsim experiment (\\w+) -seeds ([\\d-]+)( +# takes long)?\n```\n\n```text\n((?s:.*?))```$")

// measurement is one such block.
type measurement struct {
	name, seeds string
	before      string // of the block, what stands before the figures
	shown       string
	takesLong   bool
	picture     string // of the first of its name; "" for the others
}

func measurements(page string) (list []measurement) {
	drawn := map[string]bool{}
	for _, m := range measured.FindAllStringSubmatch(page, -1) {
		one := measurement{name: m[1], seeds: m[2], takesLong: m[3] != "", shown: m[4]}
		one.before = strings.TrimSuffix(m[0], m[4]+"```")
		if !drawn[one.name] {
			drawn[one.name] = true
			one.picture = "experiment-" + one.name + ".svg"
		}
		list = append(list, one)
	}
	return list
}

// again runs a command of the page once more, and returns what it prints and draws.
func (m measurement) again(t *testing.T, raftsim string) (said, drawn string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "picture.svg")
	out, err := exec.Command(raftsim, "experiment", m.name, "-seeds", m.seeds, "-svg", file).Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if err != nil {
		t.Errorf("experiment %s, seeds %s: %v, the page says that it held", m.name, m.seeds, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), string(text)
}

// What takes long is left to the long form; the same experiments stand on the page with fewer seeds.
func TestTheExperimentsGiveTheFiguresThatTheirPageShows(t *testing.T) {
	raftsim := buildRaftsim(t)
	name := filepath.Join(root, "docs", "experiments.md")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	page, ran := string(text), map[string]bool{}
	for _, m := range measurements(page) {
		if m.takesLong && os.Getenv("TICKETING_LONG") != "1" {
			continue
		}
		ran[m.name] = true
		said, drawn := m.again(t, raftsim)
		picture := filepath.Join(root, "docs", "pictures", m.picture)
		if *update {
			page = strings.Replace(page, m.before+m.shown, m.before+said, 1)
			if m.picture != "" {
				write(t, picture, drawn)
			}
			continue
		}
		if diff := cmp.Diff(m.shown, said); diff != "" {
			t.Errorf("experiment %s, seeds %s: the page shows other figures (-page +run):\n%s", m.name, m.seeds, diff)
		}
		if m.picture != "" {
			if committed, err := os.ReadFile(picture); err != nil || string(committed) != drawn {
				t.Errorf("%s is not the picture of seeds %s (%v)", picture, m.seeds, err)
			}
		}
	}
	if len(ran) != 3 {
		t.Errorf("of three experiments only %v were run", ran)
	}
	if *update {
		write(t, name, page)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestEveryBlockOfFiguresStandsBehindItsCommand(t *testing.T) {
	page := files(t, ".md")["docs/experiments.md"]
	list := measurements(page)
	if n := strings.Count(page, "```text\n"); n != len(list) || n < 3 {
		t.Errorf("%d blocks of figures, %d of them behind a command", n, len(list))
	}
	for _, m := range list {
		if m.picture != "" && !strings.Contains(page, "](pictures/"+m.picture+")") {
			t.Errorf("the page does not show %s", m.picture)
		}
	}
}

func TestAMeasuredBlockIsRecognised(t *testing.T) {
	const page = "```sh\ngo run ./cmd/raftsim experiment arms -seeds 1-9   # takes long\n```\n\n```text\na\n\nb\n```\n" +
		"\n```sh\ngo run ./cmd/raftsim experiment arms -seeds 1-2\n```\n\n```text\nc\n```\n"
	want := []measurement{
		{"arms", "1-9", page[:strings.Index(page, "a\n\nb")], "a\n\nb\n", true, "experiment-arms.svg"},
		{"arms", "1-2", page[strings.LastIndex(page, "```sh"):strings.Index(page, "c\n`")], "c\n", false, ""},
	}
	if diff := cmp.Diff(want, measurements(page), cmp.AllowUnexported(measurement{})); diff != "" {
		t.Error(diff)
	}
}
