package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reader takes one command apart, word by word. It keeps its first error; from then on there are no
// words left and what its methods return has no meaning. So a parse function reads as the grammar
// of its line, and only its caller looks at the error.
type reader struct {
	p         *parser
	left      []string
	usage     string // how the command is written
	scheduled bool   // the command stands behind "at"
	err       error
}

// fail reports what is wrong and what was expected instead.
func (r *reader) fail(expected, format string, args ...any) {
	r.stop(fmt.Sprintf(format, args...) + "; expected " + expected)
}

// unknown is fail for a misspelt name: it says which known ones look like it.
func (r *reader) unknown(what, word, expected string, known []string) {
	r.stop(fmt.Sprintf("no %s %q; expected %s%s", what, word, expected, Nearest(word, known)))
}

func (r *reader) stop(problem string) {
	if r.err == nil {
		r.err = errors.New(problem)
	}
	r.left = nil
}

// next takes the next word.
func (r *reader) next() string {
	if len(r.left) == 0 {
		r.fail(r.usage, "the line ends too soon")
		return ""
	}
	word := r.left[0]
	r.left = r.left[1:]
	return word
}

// peek is the next word, "" at the end of the line.
func (r *reader) peek() string {
	if len(r.left) == 0 {
		return ""
	}
	return r.left[0]
}

// end checks that no word is left over.
func (r *reader) end() {
	word := r.peek()
	switch {
	case strings.HasPrefix(word, "#"):
		r.comment(word)
	case word != "":
		r.fail(r.usage, "%q is too much", word)
	}
}

// comment refuses what is probably a comment behind a command.
func (r *reader) comment(word string) {
	r.fail("a comment to have a line of its own", "%q does not belong to the command", word)
}

// options maps the options of a line, "try" or with a value "lease=", to what takes the value.
type options map[string]func(value string)

// options reads options in any order, each at most once, up to the end of the line or "within",
// which belongs to the command around a condition.
func (r *reader) options(known options) {
	seen := map[string]bool{}
	for len(r.left) > 0 && r.peek() != "within" {
		word := r.next()
		key, value, valued := strings.Cut(word, "=")
		if valued {
			key += "="
		}
		take, ok := known[key]
		switch {
		case !ok && strings.HasPrefix(word, "#"):
			r.comment(word)
		case !ok:
			keys := slices.Sorted(maps.Keys(known))
			r.unknown("option", key, oneOf(keys), keys)
		case seen[key]:
			r.fail(r.usage, "%q stands twice", key)
		default:
			seen[key] = true
			take(value)
		}
	}
}
