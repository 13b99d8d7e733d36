package sim

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// The scenarios travel inside the program, so that their names work from any directory.
//
//go:embed scenarios/*.txt
var scenarioFiles embed.FS

// Library returns the scenarios that the program carries, sorted by name. That they parse is
// tested; one that does not is a mistake in the program.
func Library() []*Scenario {
	files, err := fs.Glob(scenarioFiles, "scenarios/*.txt")
	if err != nil {
		panic("sim: the library's pattern is malformed: " + err.Error())
	}
	var library []*Scenario
	for _, file := range files {
		text, err := scenarioFiles.ReadFile(file)
		if err != nil {
			panic("sim: a scenario of the library cannot be read: " + err.Error())
		}
		s, err := Parse(path.Base(file), string(text))
		if err != nil {
			panic("sim: a scenario of the library is malformed: " + err.Error())
		}
		library = append(library, s)
	}
	// The files are sorted with their .txt, by which a-b.txt comes before a.txt.
	slices.SortFunc(library, func(a, b *Scenario) int { return strings.Compare(a.Name, b.Name) })
	return library
}

// Load returns a scenario of the library by its name, or reads one from a file. A name has neither
// a dot nor a slash in it; a library's name wins over a file's.
func Load(nameOrFile string) (*Scenario, error) {
	if !strings.ContainsAny(nameOrFile, "./\\") {
		if text, err := scenarioFiles.ReadFile("scenarios/" + nameOrFile + ".txt"); err == nil {
			return Parse(nameOrFile+".txt", string(text))
		}
	}
	text, err := os.ReadFile(nameOrFile)
	if err == nil {
		return Parse(nameOrFile, string(text))
	}
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(nameOrFile, "./\\") {
		var names []string
		for _, s := range Library() {
			names = append(names, s.Name)
		}
		return nil, fmt.Errorf("no scenario %q, and no file of that name%s", nameOrFile, Nearest(nameOrFile, names))
	}
	return nil, fmt.Errorf("reading a scenario: %w", err)
}
