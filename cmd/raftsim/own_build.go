package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// built is raftsim with the reader's package raft in it.
type built struct {
	dir    string            // temporary; remove deletes it
	path   string            // the program
	places *strings.Replacer // from where the compiler believes a file to be to where it is
	parts  string            // what gave way, in words
}

// compileError is what the compiler says of the reader's files.
type compileError struct{ dir, says string }

func (e compileError) Error() string {
	return fmt.Sprintf("%s does not compile:\n%s", e.dir, e.says)
}

// build makes raftsim anew. The go command is told to read the reader's files in place of ours;
// nothing in the source changes.
func (o *ownFlags) build(ctx context.Context) (b *built, err error) {
	root, err := o.root()
	if err != nil {
		return nil, err
	}
	r, err := o.replace(root)
	if err != nil {
		return nil, err
	}
	b = &built{parts: r.String()}
	if b.dir, err = os.MkdirTemp("", "raftsim"); err != nil {
		return nil, fmt.Errorf("building with %s: %w", o.dir, err)
	}
	b.path = filepath.Join(b.dir, "raftsim.exe") // the suffix means nothing where it is not needed
	if err := b.compile(ctx, o.dir, root, r); err != nil {
		b.remove()
		return nil, err
	}
	return b, nil
}

func (b *built) remove() { os.RemoveAll(b.dir) }

func (b *built) compile(ctx context.Context, dir, root string, r *replacement) error {
	overlay, err := b.overlay(root, r)
	if err != nil {
		return fmt.Errorf("building with %s: %w", dir, err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-overlay", overlay, "-o", b.path, "./cmd/raftsim")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("building with %s needs the go command, which is not in the path: %w", dir, err)
	case errors.As(err, &exit):
		return compileError{dir, b.compilerSays(out)}
	case err != nil:
		return fmt.Errorf("building with %s: %w", dir, err)
	}
	return nil
}

// overlay writes what the go command is to read instead of what.
func (b *built) overlay(root string, r *replacement) (string, error) {
	replace := map[string]string{}
	var places []string
	for name, path := range r.files {
		ours := filepath.Join(root, raftPackage, name)
		if path == "" {
			replace[ours] = ""
			continue
		}
		absolute, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		replace[ours] = absolute
		for _, said := range []string{ours, absolute} {
			places = append(places, said+":", path+":")
			// The compiler may name it from the root, where it is called.
			if short, err := filepath.Rel(root, said); err == nil {
				places = append(places, "."+string(filepath.Separator)+short+":", path+":", short+":", path+":")
			}
		}
	}
	places = append(places, root+string(filepath.Separator), "")
	b.places = strings.NewReplacer(places...)
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(b.dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

// compilerSays is the compiler's output with the reader's own names of files.
func (b *built) compilerSays(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	lines = slices.DeleteFunc(lines, func(l []byte) bool { return bytes.HasPrefix(l, []byte("# ")) })
	return b.places.Replace(string(bytes.Join(lines, []byte("\n"))))
}

// String says what gives way.
func (r *replacement) String() string {
	if r.whole {
		return "the whole of it, in place of ours"
	}
	var names []string
	for name := range r.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + "; the other files are ours"
}
