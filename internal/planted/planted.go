// Package planted runs programs over the project's sources with mistakes in them, for tests that ask
// whether a check can fail. The sources on the disk stay as they are: the go command is told to read
// others in their place.
package planted

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Mistake is a piece of a file's text, and what stands there instead. The file has it exactly once, and
// is named from the project's root.
type Mistake struct{ File, Is, Instead string }

// Run builds a program, which is the text of a main package, over the mistakes, and returns what it
// prints. It runs in the project's root.
func Run(t testing.TB, program string, args []string, mistakes ...Mistake) string {
	t.Helper()
	root, dir := root(t), t.TempDir()
	replace := map[string]string{}
	for i, m := range mistakes {
		path := filepath.Join(root, filepath.FromSlash(m.File))
		source := path
		if before, twice := replace[path]; twice {
			source = before
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), m.Is); n != 1 {
			t.Fatalf("%s has this %d times: %s", m.File, n, m.Is)
		}
		replace[path] = filepath.Join(dir, strconv.Itoa(i)+".go")
		write(t, replace[path], strings.Replace(string(text), m.Is, m.Instead, 1))
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list, main := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "main.go")
	write(t, list, string(overlay))
	write(t, main, program)
	cmd := exec.Command("go", append([]string{"run", "-overlay", list, main}, args...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func root(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
