package docs_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// project is what documentation may refer to.
type project struct {
	files     map[string]bool // by path from the root, directories as well
	docs      map[string]string
	rules     map[string]bool
	families  map[string]bool // the words before the dot of rule ids
	scenarios map[string]bool
	symbols   map[string]map[string]bool // by package: Name and Type.Member
}

var (
	fence      = regexp.MustCompile("(?m)^ {0,3}```[^\n]*\n(?s:.*?)\n {0,3}```$")
	link       = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	code       = regexp.MustCompile("`([^`\n]+)`")
	lineNumber = regexp.MustCompile(`\.(go|txt|md|html):\d+|#L\d+`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	ruleID     = regexp.MustCompile(`^([A-Z][A-Za-z]*)\.([A-Za-z0-9]+)$`)
	symbol     = regexp.MustCompile(`^(raft|fsm|sim|trace)\.([A-Z]\w*(?:\.\w+)?)$`)
	filePath   = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+$`)
	ranByName  = regexp.MustCompile(
		`raftsim run (?:-(?:trace|color|ascii) |-\w+ [^-\s]\S* )*([a-z0-9][\w.-]*)`)
	byName = regexp.MustCompile("[Ss]cenario `([^`]+)`")
)

// anchors returns the names that a page's headings can be linked by.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		title := strings.ToLower(link.ReplaceAllString(m[1], ""))
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return r
			}
			return -1
		}, title)
		for n, free := 1, name; ; n++ {
			if !found[free] {
				found[free] = true
				break
			}
			free = name + "-" + strconv.Itoa(n)
		}
	}
	return found
}

// pageProblems says what a page refers to that is not there, or that will not stay.
func (p *project) pageProblems(name, text string) (problems []string) {
	report := func(format string, args ...any) {
		problems = append(problems, name+": "+fmt.Sprintf(format, args...))
	}
	for _, m := range lineNumber.FindAllString(text, -1) {
		report("%q points at a line by its number; name a symbol or a rule", m)
	}
	for _, names := range []*regexp.Regexp{ranByName, byName} {
		for _, m := range names.FindAllStringSubmatch(text, -1) {
			if !p.scenarios[m[1]] && !strings.HasSuffix(m[1], ".txt") {
				report("there is no scenario %q", m[1])
			}
		}
	}
	prose := fence.ReplaceAllString(text, "")
	for _, m := range link.FindAllStringSubmatch(prose, -1) {
		if problem := p.linkProblem(name, m[1]); problem != "" {
			report("%s", problem)
		}
	}
	for _, m := range code.FindAllStringSubmatch(prose, -1) {
		if problem := p.codeProblem(m[1]); problem != "" {
			report("%s", problem)
		}
	}
	return problems
}

func (p *project) linkProblem(from, to string) string {
	if strings.Contains(to, "://") {
		return ""
	}
	file, anchor, _ := strings.Cut(to, "#")
	target := path.Join(path.Dir(from), file)
	if file == "" {
		target = from
	}
	if !p.files[target] {
		return fmt.Sprintf("the link to %q leads nowhere", to)
	}
	if anchor != "" && !anchors(p.docs[target])[anchor] {
		return fmt.Sprintf("the link to %q: no heading there has this name", to)
	}
	return ""
}

// codeProblem looks at words set as code: a symbol, a rule and a file must exist.
func (p *project) codeProblem(words string) string {
	if m := symbol.FindStringSubmatch(words); m != nil && !p.symbols[m[1]][m[2]] {
		return fmt.Sprintf("there is no %s", words)
	}
	if m := ruleID.FindStringSubmatch(words); m != nil && p.families[m[1]] && !p.rules[words] {
		return fmt.Sprintf("there is no rule %s", words)
	}
	isFile := filePath.MatchString(words) && path.Ext(words) != ""
	if isFile && !p.files[path.Clean(words)] {
		return fmt.Sprintf("there is no file %s", words)
	}
	return ""
}

// symbolsIn finds what a package's files declare: top-level names, fields and methods.
func symbolsIn(t *testing.T, sources map[string]string, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for name, source := range sources {
		if path.Dir(name) != dir {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			declare(found, d)
		}
	}
	return found
}

func declare(found map[string]bool, d ast.Decl) {
	if f, ok := d.(*ast.FuncDecl); ok {
		name := f.Name.Name
		if f.Recv != nil {
			of := f.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if id, ok := of.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
		found[name] = true
		return
	}
	for _, s := range d.(*ast.GenDecl).Specs {
		switch s := s.(type) {
		case *ast.ValueSpec:
			for _, n := range s.Names {
				found[n.Name] = true
			}
		case *ast.TypeSpec:
			found[s.Name.Name] = true
			ast.Inspect(s.Type, func(n ast.Node) bool {
				if f, ok := n.(*ast.Field); ok {
					for _, field := range f.Names {
						found[s.Name.Name+"."+field.Name] = true
					}
				}
				return true
			})
		}
	}
}

func readProject(t *testing.T) *project {
	t.Helper()
	p := &project{
		files: map[string]bool{".": true}, docs: files(t, ".md"),
		rules: map[string]bool{}, families: map[string]bool{},
		scenarios: map[string]bool{}, symbols: map[string]map[string]bool{},
	}
	for name := range files(t, "") {
		for ; name != "."; name = path.Dir(name) {
			p.files[name] = true
		}
	}
	p.files[".ci/run"] = true
	for _, r := range readRules(t) {
		p.rules[r.id] = true
		family, _, _ := strings.Cut(r.id, ".")
		p.families[family] = true
	}
	for name := range files(t, ".txt") {
		if scenario, ok := strings.CutPrefix(name, "sim/scenarios/"); ok {
			p.scenarios[strings.TrimSuffix(scenario, ".txt")] = true
		}
	}
	sources := files(t, ".go")
	for _, dir := range []string{"raft", "fsm", "sim"} {
		p.symbols[dir] = symbolsIn(t, sources, dir)
	}
	p.symbols["trace"] = symbolsIn(t, sources, "fsm/trace")
	return p
}

func TestDocumentationRefersToWhatIsThere(t *testing.T) {
	p := readProject(t)
	for name, text := range p.docs {
		for _, problem := range p.pageProblems(name, text) {
			t.Error(problem)
		}
	}
}

func TestDocumentationMustReferToWhatIsThere(t *testing.T) {
	const page = "# The title, it's\n\n## Twice\n\n## Twice\n\n```text\n# no heading\n```\n"
	p := &project{
		files:     map[string]bool{"docs/a.md": true, "docs/b.md": true, "raft/log.go": true},
		docs:      map[string]string{"docs/b.md": page},
		rules:     map[string]bool{"AE.1": true},
		families:  map[string]bool{"AE": true},
		scenarios: map[string]bool{"late": true},
		symbols:   map[string]map[string]bool{"raft": {"Core": true, "Core.Take": true}},
	}
	for _, c := range []struct{ text, want string }{
		{"see log.go:12", "points at a line"},
		{"see [it](../raft/log.go#L12)", "points at a line"},
		{"see [it](b.md#the-title-its), [it](b.md#twice-1), [it](../raft/log.go)", ""},
		{"see [it](https://go.dev/nowhere)", ""},
		{"see [it](c.md)", `"c.md" leads nowhere`},
		{"see [it](b.md#title)", "no heading there has this name"},
		{"see [it](b.md#no-heading)", "no heading there has this name"},
		{"see [it](#there)\n\n# Here", "no heading there has this name"},
		{"```text\n[it](c.md)\n```", ""},
		{"`raft.Core.Take` keeps `AE.1` in `raft/log.go`", ""},
		{"`raft.Core.Took`", "there is no raft.Core.Took"},
		{"`AE.9`", "there is no rule AE.9"},
		{"`raft/lag.go`", "there is no file raft/lag.go"},
		{"`raftsim run -seed 4 late` and scenario `late`", ""},
		{"```sh\ngo run ./cmd/raftsim run -seed 4 never\n```", `there is no scenario "never"`},
		{"`raftsim run -trace -without gate never`", `there is no scenario "never"`},
		{"`raftsim run -trace -json FILE late`, `raftsim run mine.txt`", ""},
		{"the scenario `never`", `there is no scenario "never"`},
	} {
		wantProblem(t, c.text, p.pageProblems("docs/a.md", c.text), c.want)
	}
}

const longestReadme = 120

func TestTheReadmeIsShort(t *testing.T) {
	text := files(t, ".md")["README.md"]
	if n := strings.Count(text, "\n"); n == 0 || n > longestReadme {
		t.Errorf("README.md has %d lines, want 1 to %d", n, longestReadme)
	}
}

// A shown command is a line of a block that begins with ```sh.
type shown struct {
	args []string
	exit int // what it ends with, from a remark "# exits with N" behind it
}

var (
	shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	exitsWith  = regexp.MustCompile(`# .*exits with (\d+)`)
)

func shownCommands(text string) (list []shown) {
	for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
		for _, line := range strings.Split(block[1], "\n") {
			words, _, _ := strings.Cut(line, "#")
			args := strings.Fields(words)
			if len(args) == 0 {
				continue
			}
			s := shown{args: args}
			if m := exitsWith.FindStringSubmatch(line); m != nil {
				s.exit, _ = strconv.Atoi(m[1])
			}
			list = append(list, s)
		}
	}
	return list
}

// runElsewhere looks for a command among the lines of ci. What stands there is run by .ci/run, or by
// the test of cmd/lockd that does what docs/operations.md says.
func runElsewhere(s shown, ci string) error {
	said := strings.Join(s.args, " ")
	for line := range strings.Lines(ci) {
		if strings.TrimSuffix(strings.Join(strings.Fields(line), " "), " &") == strings.TrimSuffix(said, " &") {
			return nil
		}
	}
	return fmt.Errorf("%s: .ci/run has no such line, nor has docs/operations.md", said)
}

// runShown runs a command in dir. What begins with "go run ./cmd/raftsim" is given to the program
// at raftsim; all else must be run elsewhere, where ci is what is run there.
func runShown(s shown, raftsim, dir, ci string) error {
	said := strings.Join(s.args, " ")
	args, ok := strings.CutPrefix(said+" ", "go run ./cmd/raftsim ")
	if !ok {
		return runElsewhere(s, ci)
	}
	cmd := exec.Command(raftsim, strings.Fields(args)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", said, err)
	}
	if got := cmd.ProcessState.ExitCode(); got != s.exit {
		return fmt.Errorf("%s: exited with %d, want %d; it said:\n%s", said, got, s.exit, out)
	}
	return nil
}

// buildRaftsim compiles the program into a temporary directory.
func buildRaftsim(t *testing.T) string {
	t.Helper()
	raftsim := filepath.Join(t.TempDir(), "raftsim")
	goTool(t, "build", "-buildvcs=false", "-o", raftsim, "./cmd/raftsim")
	return raftsim
}

func TestCommandsInTheReadmeRun(t *testing.T) {
	ci, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	raftsim, dir := buildRaftsim(t), t.TempDir()
	pages := files(t, ".md")
	for _, block := range shellBlock.FindAllStringSubmatch(pages["docs/operations.md"], -1) {
		ci = append(ci, block[1]...)
	}
	commands := shownCommands(pages["README.md"])
	if len(commands) == 0 {
		t.Error("README.md shows no command")
	}
	for _, s := range commands {
		if err := runShown(s, raftsim, dir, string(ci)); err != nil {
			t.Error(err)
		}
	}
}

func TestAShownCommandMustRun(t *testing.T) {
	raftsim, dir := buildRaftsim(t), t.TempDir()
	for _, c := range []struct{ line, ci, want string }{
		{"go run ./cmd/raftsim list", "", ""},
		{"go run ./cmd/raftsim lisst   # wrong, and exits with 2", "", ""},
		{"go run ./cmd/raftsim lisst", "", "exited with 2, want 0"},
		{"go run ./cmd/raftsim list   # exits with 1", "", "exited with 0, want 1"},
		{"go run ./cmd/nothing", "", ".ci/run has no such line"},
		{"go run ./cmd/lockd -dev", "go run ./cmd/lockd -dev &\n", ""},
		{"go test ./...", "go test ./...\n", ""},
		{"go test ./...", "# go test ./...\n", ".ci/run has no such line"},
	} {
		commands := shownCommands("```sh\n# first\n\n" + c.line + "\n```\n")
		if len(commands) != 1 {
			t.Errorf("%q: found %d commands, want 1", c.line, len(commands))
			continue
		}
		var problems []string
		if err := runShown(commands[0], raftsim, dir, c.ci); err != nil {
			problems = append(problems, err.Error())
		}
		wantProblem(t, c.line, problems, c.want)
	}
}
