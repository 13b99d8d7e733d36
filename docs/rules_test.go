package docs_test

import (
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the module's root, seen from this directory.
const root = ".."

// A rule is a line of rules.txt.
type rule struct {
	id     string
	noHome string // why no code implements it, "" for a rule that has a home
}

var ruleLine = regexp.MustCompile(
	`^(\S+)  (\S.*\.)  \(source: ([^()]+)\)(?: \(no home: ([^()]+)\))?$`)

// parseRules reads rules.txt and says what is wrong with its form.
func parseRules(text string) (rules []rule, problems []string) {
	seen := map[string]bool{}
	for n, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := ruleLine.FindStringSubmatch(line)
		switch {
		case m == nil:
			problems = append(problems, fmt.Sprintf("line %d is not of the form that is given above", n+1))
		case seen[m[1]]:
			problems = append(problems, fmt.Sprintf("line %d: %s is there twice", n+1, m[1]))
		default:
			seen[m[1]] = true
			rules = append(rules, rule{m[1], m[4]})
		}
	}
	return rules, problems
}

// A marker is a "//spec:KIND ID" comment.
type marker struct {
	kind, id string
	at       token.Position
	prose    string // what the same comment says above it
}

func (m marker) inTest() bool { return strings.HasSuffix(m.at.Filename, "_test.go") }

var markerLine = regexp.MustCompile(`^//spec:(rule|test|bug) (\S+)$`)

// markersIn finds the markers of a Go file, and those that are not written as a marker is.
func markersIn(name, source string) (markers []marker, problems []string, err error) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments)
	if err != nil {
		return nil, nil, err
	}
	for _, group := range file.Comments {
		var prose strings.Builder
		marked := false
		for _, c := range group.List {
			at := set.Position(c.Pos())
			m := markerLine.FindStringSubmatch(c.Text)
			switch {
			case m != nil:
				marked = true
				markers = append(markers, marker{m[1], m[2], at, prose.String()})
			case strings.HasPrefix(strings.TrimLeft(c.Text, "/ "), "spec:"):
				report("%s: %q is not //spec:rule ID or //spec:test ID", at, c.Text)
			case marked && strings.HasPrefix(c.Text, "// "):
				report("%s: prose stands below a marker, which comes last", at)
			default:
				prose.WriteString(strings.TrimPrefix(c.Text, "//"))
			}
		}
	}
	return markers, problems, nil
}

// sentence is three words or more and an end.
var sentence = regexp.MustCompile(`\S+\s+\S+\s+\S.*[.?!]["”)]*(\s|$)`)

// ruleProblems compares the rules with the markers.
func ruleProblems(rules []rule, markers []marker) (problems []string) {
	homes, tests := map[string][]string{}, map[string]int{}
	known := map[string]bool{}
	for _, r := range rules {
		known[r.id] = true
	}
	for _, m := range markers {
		if m.kind == "bug" {
			continue
		}
		if problem := m.problem(known); problem != "" {
			problems = append(problems, fmt.Sprintf("%s: %s", m.at, problem))
		}
		if m.kind == "rule" {
			homes[m.id] = append(homes[m.id], m.at.String())
		} else {
			tests[m.id]++
		}
	}
	for _, r := range rules {
		problems = append(problems, r.problems(homes[r.id], tests[r.id])...)
	}
	return problems
}

// problem says what is wrong with a marker, "" if it is well.
func (m marker) problem(known map[string]bool) string {
	switch {
	case !known[m.id]:
		return fmt.Sprintf("there is no rule %s in docs/rules.txt", m.id)
	case m.kind == "rule" && m.inTest():
		return fmt.Sprintf("a test is not the home of rule %s", m.id)
	case m.kind == "test" && !m.inTest():
		return fmt.Sprintf("this is not a test of rule %s", m.id)
	case m.kind == "rule" && !sentence.MatchString(m.prose):
		return fmt.Sprintf("rule %s is not explained in the comment above its marker", m.id)
	}
	return ""
}

// problems says what a rule lacks, or has too much of.
func (r rule) problems(homes []string, tests int) (list []string) {
	report := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if r.noHome != "" {
		if len(homes) > 0 {
			report("rule %s has a home at %s, docs/rules.txt says that it has none", r.id, homes[0])
		}
		return list
	}
	switch len(homes) {
	case 0:
		report("rule %s has no home", r.id)
	case 1:
	default:
		report("rule %s has %d homes: %s", r.id, len(homes), strings.Join(homes, ", "))
	}
	if tests == 0 {
		report("rule %s has no test", r.id)
	}
	return list
}

var dottedString = regexp.MustCompile(`"([A-Z][A-Za-z]*)\.([A-Za-z0-9]+)"`)

// namedRules finds the ids that a Go file writes as strings: what a trace may name. A string is
// taken for an id if it has the first word of one.
func namedRules(source string, rules []rule) []string {
	families := map[string]bool{}
	for _, r := range rules {
		family, _, dotted := strings.Cut(r.id, ".")
		families[family] = families[family] || dotted
	}
	var ids []string
	for _, m := range dottedString.FindAllStringSubmatch(source, -1) {
		if families[m[1]] {
			ids = append(ids, m[1]+"."+m[2])
		}
	}
	return ids
}

// files returns the text of the files below the root with a suffix, by their path from there.
func files(t *testing.T, suffix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".") && path != root
		if d.IsDir() && (hidden || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, suffix) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, path)
		found[filepath.ToSlash(short)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func readRules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile("rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	rules, problems := parseRules(string(text))
	for _, p := range problems {
		t.Errorf("docs/rules.txt: %s", p)
	}
	return rules
}

func TestEveryRuleHasOneHomeProseAndATest(t *testing.T) {
	var markers []marker
	for name, source := range files(t, ".go") {
		found, problems, err := markersIn(name, source)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Error(p)
		}
		markers = append(markers, found...)
	}
	slices.SortFunc(markers, func(a, b marker) int {
		return cmp.Compare(a.at.String(), b.at.String())
	})
	for _, p := range ruleProblems(readRules(t), markers) {
		t.Error(p)
	}
}

func TestEveryRuleThatATraceNamesIsInTheList(t *testing.T) {
	rules := readRules(t)
	for name, source := range files(t, ".go") {
		if !strings.HasPrefix(name, "sim/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, id := range namedRules(source, rules) {
			if !slices.ContainsFunc(rules, func(r rule) bool { return r.id == id }) {
				t.Errorf("%s names rule %q, which is not in docs/rules.txt", name, id)
			}
		}
	}
}

// What follows shows that each of the checks above can fail.

func TestTheRuleFileMustHaveItsForm(t *testing.T) {
	const good = "A.1  It is so.  (source: ours)\n"
	for _, c := range []struct{ text, want string }{
		{"A.1 It is so.  (source: ours)", "line 1 is not of the form"},
		{"A.1  It is so.", "line 1 is not of the form"},
		{"A.1  It is so  (source: ours)", "line 1 is not of the form"},
		{"A.1  It is so.  (source: ours) (no home: )", "line 1 is not of the form"},
		{good + good, "line 2: A.1 is there twice"},
		{"# prose\n\n" + good, ""},
		{"A.1  It is so.  (source: ours) (no home: not built)", ""},
	} {
		_, problems := parseRules(c.text)
		wantProblem(t, c.text, problems, c.want)
	}
}

func TestAMarkerMustBeKnownExplainedAndInItsPlace(t *testing.T) {
	const (
		home  = "package p\n\n// It is done as the rule says.\n//\n//spec:rule A.1\nfunc f() {}\n"
		proof = "package p\n\n//spec:test A.1\nfunc TestF() {}\n"
	)
	one := []rule{{id: "A.1"}}
	for _, c := range []struct {
		about       string
		rules       []rule
		code, tests string
		want        string
	}{
		{"all is well", one, home, proof, ""},
		{"an animal is not looked at", one, home, proof + "\n//spec:bug B.7\n", ""},
		{"no home", one, "package p\n", proof, "rule A.1 has no home"},
		{"two homes", one, home + "\n// Once more, and again.\n//\n//spec:rule A.1\n", proof, "rule A.1 has 2 homes"},
		{"no test", one, home, "package p\n", "rule A.1 has no test"},
		{"unknown", nil, home, "package p\n", "there is no rule A.1"},
		{"unknown in a test", nil, "package p\n", proof, "there is no rule A.1"},
		{"no prose", one, "package p\n\n//spec:rule A.1\nfunc f() {}\n", proof, "rule A.1 is not explained"},
		{"not a sentence", one, "package p\n\n// f\n//\n//spec:rule A.1\nfunc f() {}\n", proof, "rule A.1 is not explained"},
		{"prose below", one, home + "\n//spec:rule A.1\n// It is done.\n", proof, "prose stands below a marker"},
		{"home in a test", one, "package p\n", home, "a test is not the home of rule A.1"},
		{"test in the code", one, home + proof[len("package p\n"):], "package p\n", "this is not a test of rule A.1"},
		{"a space too many", one, home, proof + "\n// spec:test A.1\n", "is not //spec:rule ID"},
		{"two ids", one, home, proof + "\n//spec:test A.1 A.2\n", "is not //spec:rule ID"},
		{"an exception", []rule{{"A.1", "not built"}}, "package p\n", "package p\n", ""},
		{"an exception that is none", []rule{{"A.1", "not built"}}, home, proof, "rule A.1 has a home"},
	} {
		var markers []marker
		var problems []string
		for name, source := range map[string]string{"p.go": c.code, "p_test.go": c.tests} {
			found, wrong, err := markersIn(name, source)
			if err != nil {
				t.Fatal(err)
			}
			markers, problems = append(markers, found...), append(problems, wrong...)
		}
		wantProblem(t, c.about, append(problems, ruleProblems(c.rules, markers)...), c.want)
	}
}

func TestARuleThatATraceNamesIsFound(t *testing.T) {
	got := namedRules(`r := "A.9"; file := "A.1/x"; other := "B.1"`, []rule{{id: "A.1"}, {id: "B"}})
	if !slices.Equal(got, []string{"A.9"}) {
		t.Errorf("found %q, want A.9 alone", got)
	}
}

// wantProblem checks that one of the problems says what is wanted, or that there are none.
func wantProblem(t *testing.T, about string, problems []string, want string) {
	t.Helper()
	says := func(p string) bool { return strings.Contains(p, want) }
	if want == "" && len(problems) > 0 || want != "" && !slices.ContainsFunc(problems, says) {
		t.Errorf("%s: found %q, want %q", about, problems, want)
	}
}
