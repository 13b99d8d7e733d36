package docs_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/sim"
)

var update = flag.Bool("update", false, "write the story into README.md")

const (
	storyBegin = "<!-- story:begin -->\n```text\n"
	storyEnd   = "```\n<!-- story:end -->\n"
)

// splitStory cuts a page into what stands before its story, the story, and what stands behind it.
func splitStory(page string) (before, story, after string, found bool) {
	before, rest, ok1 := strings.Cut(page, storyBegin)
	story, after, ok2 := strings.Cut(rest, storyEnd)
	return before, story, after, ok1 && ok2
}

func TestTheReadmeShowsTheStoryThatTheProgramTells(t *testing.T) {
	want, held, err := sim.Story(sim.Style{ASCII: true, Width: 118})
	if err != nil || !held {
		t.Fatalf("the story: held %v, error %v", held, err)
	}
	want = strings.TrimRight(want, "\n") + "\n"
	name := filepath.Join(root, "README.md")
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, story, after, found := splitStory(string(page))
	if !found {
		t.Fatal("README.md has no place for the story")
	}
	if *update {
		page = []byte(before + storyBegin + want + storyEnd + after)
		if err := os.WriteFile(name, page, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, story); diff != "" {
		t.Errorf("README.md tells another story (run go test ./docs -run Story -update):\n%s", diff)
	}
}

func TestAPageWithoutAStoryIsNoticed(t *testing.T) {
	before, story, after, found := splitStory("a\n" + storyBegin + "b\n" + storyEnd + "c\n")
	if before != "a\n" || story != "b\n" || after != "c\n" || !found {
		t.Errorf("split into %q, %q, %q, %v", before, story, after, found)
	}
	without := []string{"a\n", storyEnd + storyBegin, storyBegin + "b\n", "b\n" + storyEnd}
	for _, page := range without {
		if _, _, _, found := splitStory(page); found {
			t.Errorf("found a story in %q", page)
		}
	}
}
