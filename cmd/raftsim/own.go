package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ownFlags say whose package raft runs: the reader's, in place of ours.
type ownFlags struct {
	dir string // of the reader's files; "" for ours
	src string // the root of our module, which is built anew around them
}

func (o *ownFlags) define(f *flag.FlagSet) {
	f.StringVar(&o.dir, "raft", "", "with your own package raft, or some of its files, from `DIR`")
	f.StringVar(&o.src, "src", "", "where raftsim's source is, for -raft, if not in this `DIR` or above")
}

// words are the flags again, for a command that somebody is to type.
func (o *ownFlags) words() string {
	words := ""
	if o.dir != "" {
		words += " -raft " + quoted(o.dir)
	}
	if o.src != "" {
		words += " -src " + quoted(o.src)
	}
	return words
}

const (
	modulePath  = "ticketing"
	raftPath    = modulePath + "/raft"
	raftPackage = "raft"
)

// root finds the source of raftsim, which is built anew.
func (o *ownFlags) root() (string, error) {
	if o.src != "" {
		if !isRoot(o.src) {
			return "", misuse("-src %s: there is no go.mod of the module %s in it", o.src, modulePath)
		}
		return filepath.Abs(o.src)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for raftsim's source: %w", err)
	}
	for ; !isRoot(dir); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return "", misuse("-raft builds raftsim anew and needs its source, which is neither in this directory " +
				"nor above it; go there, or say where it is with -src DIR")
		}
	}
	return dir, nil
}

func isRoot(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == "module "+modulePath {
			return true
		}
	}
	return false
}

// source is some Go files of one package: what each of them declares, and what the others take of
// package raft.
type source struct {
	declares map[string][]string // names by file
	uses     map[string]bool     // of package raft
}

// readSource reads the files of one directory, without its tests. A file that is no Go counts as
// one that declares nothing: the compiler says more about it than can be said here.
func (s *source) read(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return fmt.Errorf("reading %s: %w", dir, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading %s: %w", dir, err)
		}
		name := filepath.Base(path)
		s.declares[name] = nil
		file, _ := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if file == nil {
			continue
		}
		for _, d := range file.Decls {
			s.declares[name] = append(s.declares[name], declared(d)...)
		}
		s.addUses(file)
	}
	return nil
}

// declared are the names at the top level, of methods with their type's in front.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		of := d.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if id, ok := of.(*ast.Ident); ok {
			return []string{id.Name + "." + d.Name.Name}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "_" })
}

func (s *source) addUses(file *ast.File) {
	imports := false
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		imports = imports || err == nil && path == raftPath
	}
	if !imports {
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := sel.X.(*ast.Ident); ok && of.Name == raftPackage {
			s.uses[sel.Sel.Name] = true
		}
		return true
	})
}

// used are the names of package raft that raftsim is made with, sorted: what a package in place of
// ours must have.
func used(root string) ([]string, error) {
	all := source{declares: map[string][]string{}, uses: map[string]bool{}}
	for _, top := range []string{"fsm", "sim", filepath.Join("cmd", "raftsim")} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			return all.read(path)
		})
		if err != nil {
			return nil, fmt.Errorf("reading raftsim's source: %w", err)
		}
	}
	var names []string
	for name := range all.uses {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// replacement says which of our files of package raft give way, and to what.
type replacement struct {
	whole   bool              // all of ours give way
	files   map[string]string // name in the package: where it is; "" for one that is not there
	missing []string          // of what a whole package would need
}

// replace compares the reader's files with ours. If they declare all that raftsim uses of the
// package, they are the package. If not, each replaces ours of the same name, and one of another
// name is added.
func (o *ownFlags) replace(root string) (*replacement, error) {
	ours, theirs := source{declares: map[string][]string{}, uses: map[string]bool{}}, source{declares: map[string][]string{}, uses: map[string]bool{}}
	if err := ours.read(filepath.Join(root, raftPackage)); err != nil {
		return nil, err
	}
	info, err := os.Stat(o.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, misuse("-raft %s: there is no such directory", o.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.dir, err)
	}
	if err := theirs.read(o.dir); err != nil {
		return nil, err
	}
	if len(theirs.declares) == 0 {
		return nil, misuse("-raft %s: there is no Go file in it (tests do not count)", o.dir)
	}
	names, err := used(root)
	if err != nil {
		return nil, err
	}
	r := &replacement{files: map[string]string{}}
	have := map[string]bool{}
	for file, declares := range theirs.declares {
		r.files[file] = filepath.Join(o.dir, file)
		for _, name := range declares {
			have[name] = true
		}
	}
	r.missing = slices.DeleteFunc(names, func(name string) bool { return have[name] })
	r.whole = len(r.missing) == 0
	if !r.whole {
		return r, r.checkTwice(&ours, &theirs)
	}
	for file := range ours.declares {
		if r.files[file] == "" {
			r.files[file] = ""
		}
	}
	return r, nil
}

// checkTwice refuses files that are neither a whole package nor in the place of some of ours.
func (r *replacement) checkTwice(ours, theirs *source) error {
	home := map[string]string{}
	for file, names := range ours.declares {
		for _, name := range names {
			if _, replaced := r.files[file]; !replaced {
				home[name] = file
			}
		}
	}
	var twice []string
	for file, names := range theirs.declares {
		for _, name := range names {
			if at := home[name]; at != "" && name != "init" {
				twice = append(twice, fmt.Sprintf("%s declares %s, and so does ours in %s", r.files[file], name, at))
			}
		}
	}
	if len(twice) == 0 {
		return nil
	}
	slices.Sort(twice)
	return misuse("%s. A file replaces ours of the same name. All of ours give way to a package that has "+
		"everything that raftsim uses; this one has no %s", twice[0], strings.Join(r.missing, ", "))
}
