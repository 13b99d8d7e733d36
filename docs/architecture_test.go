package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "ticketing"

// goTool runs the go command in the module's root and returns what it prints.
func goTool(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// A listed package is what go list says of one; its tests do not count.
type listed struct {
	ImportPath string
	Imports    []string // by itself
	Deps       []string // by whatever it imports, too
}

func (p listed) under(parent string) bool {
	return strings.HasPrefix(p.ImportPath+"/", module+"/"+parent+"/")
}

func packages(t *testing.T) []listed {
	t.Helper()
	var all []listed
	out := goTool(t, "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
	list := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		err := list.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// The packages form a line, not a web.
func TestImportsFollowTheTable(t *testing.T) {
	all := packages(t)
	raft := []string{"cmp", "errors", "fmt", "slices"}
	most := map[string][]string{
		module + "/raft": raft,
		module + "/fsm":  append([]string{"maps", "strconv", "strings", module + "/raft"}, raft...),
	}
	for _, p := range all {
		for _, i := range p.Imports {
			if allowed, ok := most[p.ImportPath]; ok && !slices.Contains(allowed, i) {
				t.Errorf("%s imports %s; it may import %v", p.ImportPath, i, allowed)
			}
			ours := p.under("cmd") && strings.HasPrefix(i, module+"/cmd/internal/") // the programs share it
			if !ours && strings.HasPrefix(i, module+"/cmd") || strings.HasPrefix(i, module+"/docs") {
				t.Errorf("%s imports %s, which is for nobody", p.ImportPath, i)
			}
		}
		delete(most, p.ImportPath)
	}
	for missing := range most {
		t.Errorf("there is no package %s", missing)
	}

	for _, rule := range []struct {
		parent string
		never  []string // nor what lies under them
	}{
		{"raft", []string{module + "/fsm", module + "/rpc", module + "/sim"}},
		{"fsm", []string{module + "/rpc", module + "/sim", module + "/raft/wal"}}, // fsm/trace, too
		{"rpc", []string{module + "/sim"}},
		{"sim", []string{module + "/rpc", "net/rpc", "net/http"}}, // it acts on paper
		{"cmd/lockd", []string{module + "/sim"}},
		{"cmd/lockctl", []string{module + "/sim"}},
		{"cmd/raftsim", []string{module + "/rpc"}},
	} {
		for _, p := range all {
			for _, d := range p.Deps {
				for _, never := range rule.never {
					if p.under(rule.parent) && (d == never || strings.HasPrefix(d, never+"/")) {
						t.Errorf("%s reaches %s; nothing in %s may", p.ImportPath, d, rule.parent)
					}
				}
			}
		}
	}
}

func TestTheModuleRequiresTwoOthersAndNoMore(t *testing.T) {
	var mod struct {
		Module  struct{ Path string }
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(goTool(t, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range mod.Require {
		got = append(got, fmt.Sprintf("%s indirect=%v", r.Path, r.Indirect))
	}
	want := []string{"github.com/google/go-cmp indirect=false", "golang.org/x/sync indirect=false"}
	if diff := cmp.Diff(want, got); diff != "" || mod.Module.Path != module {
		t.Errorf("module %s requires (-want +got):\n%s", mod.Module.Path, diff)
	}
}

// raft and fsm compute and do nothing else (house rule 1): a run depends on nothing but the inputs.
func TestRaftAndFsmArePure(t *testing.T) {
	world := newWorld()
	for _, name := range []string{"raft", "fsm"} { // in the order of their imports
		files, err := filepath.Glob(filepath.Join("..", name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", name, len(files), err)
		}
		sources := map[string]string{}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") {
				sources[file] = string(text)
			}
		}
		found, err := world.impurities(module+"/"+name, sources)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range found {
			t.Error(line)
		}
	}
}

// Each line has one thing wrong: what, and where.
const impure = `
goroutine               | func f() { go f() }
channel                 | type t struct { done chan int }
channel                 | func f(c <-chan int) {}
select                  | func f() { select {} }
import of sync          | import "sync"; var _ sync.Locker; type t sync.Mutex
import of sync/atomic   | import "sync/atomic"; type t atomic.Int64
import of time          | import "time"; type t time.Duration
import of math/rand     | import "math/rand"; func f() int { return rand.Int() }
import of math/rand/v2  | import r "math/rand/v2"; func f() int { return r.Int() }
import of log           | import "log"; func f() { log.Println() }
import of log/slog      | import "log/slog"; func f() { slog.Info("") }
import of os            | import "os"; func f() int { return os.Getpid() }
import of unsafe        | import _ "unsafe"
fmt.Println             | import "fmt"; func f() { fmt.Println() }
fmt.Printf              | import "fmt"; var F = fmt.Printf
println                 | func f() { println() }
an address              | import "fmt"; func f(p *int) string { return fmt.Sprintf("at %p", p) }
float                   | type t struct { x float64 }
float                   | func f(x []float32) {}
float                   | type t complex128
float                   | const half = 0.5
float                   | const milli = 1e-3
float                   | func f(n int) int { return int(1.5 * 2) * n }
global variable counter | var counter int
global variable table   | var table = map[string]int{}
global variable err     | var err error
global variable b       | import "errors"; var A, b = errors.New("a"), 3
global variable ErrX    | import "fmt"; var ErrX = fmt.Errorf("x")
global variable f       | var f = func() error { return nil }()
init                    | func init() {}
range over a map        | func f(m map[int]int) { for range m {} }
range over a map        | type m map[int]int; func f(x m) { for range x {} }
range over a map        | type t struct { m map[int]int }; func (x *t) Clones() { for range x.m {} }
range over a map        | func f[M ~map[int]int](m M) { for range m {} }
maps.Keys               | import "maps"; func f(m map[int]int) { for range maps.Keys(m) {} }
maps.All                | import "maps"; func f(m map[int]int) { for range maps.All(m) {} }
maps.Values             | import "maps"; func f(m map[int]int) { g(maps.Values(m)) }; func g(any) {}
maps.Values             | import "maps"; func f() { x := maps.Values[map[int]int]; _ = x }
`

// The checker itself must see each.
func TestTheCheckerSeesEachImpurity(t *testing.T) {
	world := newWorld()
	for line := range strings.Lines(strings.TrimSpace(impure)) {
		want, source, _ := strings.Cut(strings.TrimSpace(line), "|")
		want = strings.TrimSpace(want)
		found, err := world.impurities("p", map[string]string{"p.go": "package p; " + source})
		if err != nil {
			t.Errorf("%s\n%v", source, err)
			continue
		}
		sees := func(s string) bool { return strings.Contains(s, want) }
		if !slices.ContainsFunc(found, sees) {
			t.Errorf("%s\nthe checker does not see: %s. It sees %q", source, want, found)
		}
	}
}

func TestTheCheckerLetsWhatIsPurePass(t *testing.T) {
	found, err := newWorld().impurities("p", map[string]string{"p.go": `package p
		import ("errors"; "fmt"; "maps"; "slices")
		var ErrX = errors.New("x")
		var (
			ErrY = errors.New("y")
			ErrZ = errors.New("z")
		)
		var _ fmt.Stringer = t{}
		type t struct { m map[string]int }
		func (x t) String() string { return fmt.Sprintf("%d", 7/2) }
		func (x t) clone() t {
			c := t{map[string]int{}}
			for k, v := range x.m { c.m[k] = v }
			return c
		}
		func (x t) keys() []string { return slices.Sorted(maps.Keys(x.m)) }
		func f(s []int) { for range s {}; for range 3 {}; for range "abc" {} }
		func g(m map[int]int) map[int]int { clear(m); return maps.Clone(m) }
	`})
	if err != nil || len(found) > 0 {
		t.Errorf("%q, %v", found, err)
	}
}

// A world is what packages may import: the standard library, and the packages that were checked
// before.
type world struct {
	files    *token.FileSet
	standard types.Importer
	checked  map[string]*types.Package
}

func newWorld() *world {
	return &world{token.NewFileSet(), importer.Default(), map[string]*types.Package{}}
}

func (w *world) Import(path string) (*types.Package, error) {
	if p, ok := w.checked[path]; ok {
		return p, nil
	}
	return w.standard.Import(path)
}

// impurities lists what in a package, given as the texts of its files, is not pure.
func (w *world) impurities(path string, sources map[string]string) ([]string, error) {
	var files []*ast.File
	for name, text := range sources {
		file, err := parser.ParseFile(w.files, name, text, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
	}
	config := types.Config{Importer: w}
	p, err := config.Check(path, w.files, files, info)
	if err != nil {
		return nil, err
	}
	w.checked[path] = p
	v := &visitor{world: w, info: info, sorted: map[ast.Node]bool{}}
	for _, file := range files {
		for _, d := range file.Decls {
			v.decl(d)
			ast.Inspect(d, v.node)
		}
	}
	slices.Sort(v.found)
	return v.found, nil
}

type visitor struct {
	*world
	info     *types.Info
	function string            // whose body this is
	sorted   map[ast.Node]bool // calls whose result goes through slices.Sorted
	found    []string
}

func (v *visitor) report(n ast.Node, what string, args ...any) {
	at := v.files.Position(n.Pos()).String()
	v.found = append(v.found, at+": "+fmt.Sprintf(what, args...))
}

// decl looks at what stands at the top level of a file.
func (v *visitor) decl(d ast.Decl) {
	v.function = ""
	if f, ok := d.(*ast.FuncDecl); ok {
		v.function = f.Name.Name
		if f.Recv == nil && f.Name.Name == "init" {
			v.report(f, "init: nothing happens by being imported")
		}
	}
	g, ok := d.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range g.Specs {
		switch s := spec.(type) {
		case *ast.ImportSpec:
			v.imports(s)
		case *ast.ValueSpec:
			if g.Tok == token.VAR {
				v.globals(s)
			}
		}
	}
}

// A pure package computes with values. Whatever is not on this list can tell the time, draw, wait,
// or act.
var pureImports = []string{"cmp", "errors", "fmt", "maps", "slices", "strconv", "strings"}

func (v *visitor) imports(s *ast.ImportSpec) {
	path := strings.Trim(s.Path.Value, `"`)
	if _, ours := v.checked[path]; !ours && !slices.Contains(pureImports, path) {
		v.report(s, "import of %s", path)
	}
}

// globals lets error values pass, which nobody changes, and assertions about types, which are no
// variables.
func (v *visitor) globals(s *ast.ValueSpec) {
	for i, name := range s.Names {
		if name.Name == "_" {
			continue
		}
		if i < len(s.Values) {
			if call, ok := s.Values[i].(*ast.CallExpr); ok && v.names(call.Fun, "errors", "New") {
				continue
			}
		}
		v.report(name, "global variable %s", name.Name)
	}
}

// names reports whether an expression is one of some functions of a package.
func (v *visitor) names(e ast.Expr, pkg string, functions ...string) bool {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr: // instantiated
			e = x.X
			continue
		case *ast.ParenExpr:
			e = x.X
			continue
		case *ast.SelectorExpr:
			f, ok := v.info.Uses[x.Sel].(*types.Func)
			return ok && f.Pkg() != nil && f.Pkg().Path() == pkg &&
				slices.Contains(functions, f.Name())
		}
		return false
	}
}

func (v *visitor) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		v.report(n, "goroutine")
	case *ast.SelectStmt:
		v.report(n, "select")
	case *ast.ChanType:
		v.report(n, "channel type")
	case *ast.BasicLit:
		if n.Kind == token.STRING && strings.Contains(n.Value, "%p") {
			v.report(n, "an address is printed, which differs from run to run")
		}
	case *ast.RangeStmt:
		if v.overMap(n.X) && v.function != "clone" && v.function != "Clone" {
			v.report(n, "range over a map, in an order that differs from run to run")
		}
	case *ast.CallExpr:
		v.call(n)
	case *ast.SelectorExpr:
		if f, ok := v.info.Uses[n.Sel].(*types.Func); ok && f.Pkg() != nil {
			v.use(n, f)
		}
	}
	if e, ok := n.(ast.Expr); ok {
		v.float(e)
	}
	return true
}

// call marks the iterators that are sorted at once, and reports output that needs no import.
func (v *visitor) call(n *ast.CallExpr) {
	if v.names(n.Fun, "slices", "Sorted", "SortedFunc", "SortedStableFunc") {
		if inner, ok := n.Args[0].(*ast.CallExpr); ok {
			v.sorted[inner.Fun] = true
		}
	}
	if id, ok := n.Fun.(*ast.Ident); ok {
		if b, ok := v.info.Uses[id].(*types.Builtin); ok && strings.HasPrefix(b.Name(), "print") {
			v.report(n, "%s", b.Name())
		}
	}
}

// use reports functions of the allowed imports that act, or that hand out a map's order.
func (v *visitor) use(n *ast.SelectorExpr, f *types.Func) {
	pkg, name := f.Pkg().Path(), f.Name()
	if f.Signature().Recv() != nil { // a method of a value
		return
	}
	computes := name == "Errorf" || strings.HasPrefix(name, "Sprint") ||
		strings.HasPrefix(name, "Append") || strings.HasPrefix(name, "Sscan")
	if pkg == "fmt" && !computes {
		v.report(n, "fmt.%s reads or writes", name)
	}
	if v.names(n, "maps", "All", "Keys", "Values") && !v.sorted[n] {
		v.report(n, "maps.%s, in an order that differs from run to run", name)
	}
}

func (v *visitor) overMap(x ast.Expr) bool {
	t := v.info.TypeOf(x)
	if t == nil {
		return false
	}
	if p, ok := t.(*types.TypeParam); ok {
		t = p.Constraint().Underlying()
		if i := t.(*types.Interface); i.NumEmbeddeds() == 1 {
			t = i.EmbeddedType(0)
		}
		if u, ok := t.(*types.Union); ok {
			t = u.Term(0).Type()
		}
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// float reports each expression, constant or type that is a number with a fraction: their rounding
// depends on the machine.
func (v *visitor) float(e ast.Expr) {
	t := v.info.TypeOf(e)
	if t == nil {
		return
	}
	if b, ok := t.Underlying().(*types.Basic); ok && b.Info()&(types.IsFloat|types.IsComplex) != 0 {
		v.report(e, "float: %s", types.ExprString(e))
	}
}

// The line that the project is about. Without it these tests of the lock service, which know
// nothing of this one, must fail: one asks the table, one asks three servers.
func TestWithoutTheOneComparisonALateExpireRemovesAFreshLock(t *testing.T) {
	const line = "\t\texisted = existed && tenure.Token == e.Token\n"
	table, err := filepath.Abs("../fsm/table.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), line) != 1 {
		t.Fatalf("%s does not have this line once: %s", table, line)
	}
	dir := t.TempDir()
	without, overlay := filepath.Join(dir, "table.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {table: without}})
	if err != nil {
		t.Fatal(err)
	}
	mutant := strings.Replace(string(text), line, "", 1)
	for name, content := range map[string]string{without: mutant, overlay: string(replace)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	red := []string{"TestTheSpecification", "TestALateExpireDoesNotRemoveAFreshLock"}
	cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-overlay", overlay,
		"-run", "^("+strings.Join(red, "|")+")$", module+"/fsm")
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for _, name := range red {
		if !strings.Contains(string(out), "--- FAIL: "+name+" ") {
			t.Errorf("%s does not fail without the comparison (%v):\n%s", name, err, out)
		}
	}
}
