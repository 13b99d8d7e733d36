package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// Figure 2's six files, and what goes beyond.
var (
	figure2Files = strings.Fields("message.go log.go core.go durability.go election.go replication.go")
	beyondFiles  = strings.Fields("prevote.go checkquorum.go snapshot.go readindex.go transfer.go " +
		"membership.go backlog.go")
)

// Whoever reads Figure 2's files alone must see where they call something else, and where that is: the
// line names the file. A name that several functions have is not looked at.
func TestWhatFigure2CallsBeyondItselfIsMarked(t *testing.T) {
	sources := files(t, ".go")
	homes, places := map[string]string{}, token.NewFileSet()
	parsed := map[string]*ast.File{}
	for _, name := range slices.Concat(figure2Files, beyondFiles) {
		file, err := parser.ParseFile(places, name, sources["raft/"+name], 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed[name] = file
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			key, home := f.Name.Name, name
			if f.Recv != nil {
				key = "." + key
			}
			if _, several := homes[key]; several {
				home = ""
			}
			homes[key] = home
		}
	}
	calls := 0
	for _, name := range figure2Files {
		lines := strings.Split(sources["raft/"+name], "\n")
		ast.Inspect(parsed[name], func(n ast.Node) bool {
			called, at := callee(n)
			home := homes[called]
			if !slices.Contains(beyondFiles, home) {
				return true
			}
			calls++
			line := places.Position(at).Line
			if _, remark, _ := strings.Cut(lines[line-1], "//"); !strings.Contains(remark, home) {
				t.Errorf("raft/%s:%d calls %s, and does not say that it is in %s", name, line, called, home)
			}
			return true
		})
	}
	if calls < 15 {
		t.Errorf("only %d calls were found", calls)
	}
}

// callee is the name of what a call calls, a method's with a point before it; "" if this is no call.
func callee(n ast.Node) (name string, at token.Pos) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return "", 0
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name, f.Pos()
	case *ast.SelectorExpr:
		return "." + f.Sel.Name, f.Sel.Pos()
	}
	return "", 0
}
