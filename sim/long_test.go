package sim

import (
	"os"
	"testing"
)

// The tests have a short form, for every change, and a long one, for one that is to be kept.

func long() bool { return os.Getenv("TICKETING_LONG") != "" }

// wide is how many runs a test makes.
func wide(short, all uint64) uint64 {
	if long() {
		return all
	}
	return short
}

// some are those cases of a table that are named, or all in the long form: each costs a build of its
// own, of some two seconds.
func some[V any](t *testing.T, all map[string]V, names ...string) map[string]V {
	t.Helper()
	if long() {
		return all
	}
	few := map[string]V{}
	for _, name := range names {
		one, ok := all[name]
		if !ok {
			t.Fatalf("there is no case %q", name)
		}
		few[name] = one
	}
	return few
}
