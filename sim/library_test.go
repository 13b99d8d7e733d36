package sim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheLibraryIsSortedAndEveryScenarioHasATitle(t *testing.T) {
	var names []string
	for _, s := range Library() {
		names = append(names, s.Name)
		if s.Title == "" {
			t.Errorf("%s has no title", s.Name)
		}
	}
	if !slices.IsSorted(names) || !slices.Contains(names, storyScenario) {
		t.Errorf("the library is %q", names)
	}
}

func TestLoadTakesANameOrAFileAndHelpsWithAMisspeltName(t *testing.T) {
	if s, err := Load("late-expire"); err != nil || s.Name != "late-expire" {
		t.Errorf("by name: %v, %v", s, err)
	}
	file := filepath.Join(t.TempDir(), "mine.txt")
	if err := os.WriteFile(file, []byte("# Mine\nrun 1s\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := Load(file); err != nil || s.Name != "mine" {
		t.Errorf("by file: %v, %v", s, err)
	}
	for word, want := range map[string]string{
		"late-expyre":   `did you mean "late-expire"?`,
		"./missing.txt": "no such file",
	} {
		if _, err := Load(word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%q) says %v; want %s", word, err, want)
		}
	}
}

func TestAMalformedFileIsNamedWithItsLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.txt")
	if err := os.WriteFile(file, []byte("# Bad\nrun fast\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.Contains(err.Error(), "bad.txt:2:") {
		t.Errorf("Load says %v", err)
	}
}
