package rpc

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// logbook keeps what is logged, and refuses attributes that the package comment does not list.
type logbook struct {
	t       *testing.T
	allowed []string
	mu      sync.Mutex
	lines   []string
}

func newLogbook(t *testing.T) *logbook { return &logbook{t: t, allowed: attributes(t)} }

// attributes reads the list in the package comment.
func attributes(t *testing.T) (names []string) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "# What is logged")
	list, _, _ = strings.Cut(list, "// # ")
	for _, m := range regexp.MustCompile(`(?m)^//\t(\w+) `).FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	if len(names) < 5 {
		t.Fatalf("the package comment lists the attributes %q", names)
	}
	return names
}

// logger returns what writes into the book.
func (b *logbook) logger() *slog.Logger { return slog.New(bookHandler{b, nil}) }

// count is how many lines hold all of the words.
func (b *logbook) count(words ...string) (lines int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.lines {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			lines++
		}
	}
	return lines
}

func (b *logbook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}

// bookHandler writes a line as text: its words, then name=value.
type bookHandler struct {
	book  *logbook
	attrs []slog.Attr
}

func (h bookHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h bookHandler) Handle(_ context.Context, r slog.Record) error {
	line := []string{r.Level.String(), r.Message}
	all := slices.Clone(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		all = append(all, a)
		return true
	})
	for _, a := range all {
		if !slices.Contains(h.book.allowed, a.Key) {
			h.book.t.Errorf("%q has the attribute %s, which the package comment does not list",
				r.Message, a.Key)
		}
		line = append(line, fmt.Sprintf("%s=%v", a.Key, a.Value))
	}
	h.book.mu.Lock()
	defer h.book.mu.Unlock()
	h.book.lines = append(h.book.lines, strings.Join(line, " "))
	return nil
}

func (h bookHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bookHandler{h.book, slices.Concat(h.attrs, attrs)}
}

func (h bookHandler) WithGroup(string) slog.Handler { panic("nothing is logged in groups") }
