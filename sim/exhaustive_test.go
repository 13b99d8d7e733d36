package sim

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// walk is a space to try the search on: a place on a line, from which steps go to its double and to
// the next. A place above 40 leads nowhere.
type walk struct{ at, wrong int }

var _ space[walk, int] = walk{}

func (w walk) fingerprint() uint64 { return uint64(w.at) }
func (w walk) noted() uint8        { return uint8(w.at & 1) }

func (w walk) steps() []int {
	if w.at > 40 {
		return nil
	}
	return []int{2 * w.at, w.at + 1, w.at}
}

func (w walk) take(to int) (walk, bool) { return walk{to, w.wrong}, to != w.at }

func (w walk) problem() string {
	if w.at == w.wrong {
		return "it is wrong"
	}
	return ""
}

func TestASearchReachesEveryStateOnce(t *testing.T) {
	f, err := search[walk, int](t.Context(), walk{at: 1, wrong: -1}, 100)
	if err != nil || f.broken != "" || f.path != nil {
		t.Fatalf("broken %q by %v, error %v", f.broken, f.path, err)
	}
	// 1 to 41, and the doubles of 21 to 40. From each of 1 to 40 two steps go on, of which those
	// from 1 lead to the same.
	if f.states != 41+20 || f.taken != 80 || f.noted[0] != 20 {
		t.Errorf("%d states by %d steps, %d to odd places; want 61 by 80, 20", f.states, f.taken, f.noted[0])
	}
	if f.depth != 9 { // 1 2 4 8 9 18 19 38 39 78, for one
		t.Errorf("depth %d, want 9", f.depth)
	}
}

func TestASearchFindsAShortestWay(t *testing.T) {
	f, err := search[walk, int](t.Context(), walk{at: 1, wrong: 38}, 100)
	if err != nil || f.broken != "it is wrong" || f.last.at != 38 {
		t.Fatalf("broken %q at %d, error %v", f.broken, f.last.at, err)
	}
	if diff := cmp.Diff([]int{2, 4, 8, 9, 18, 19, 38}, f.path); diff != "" || f.depth != 7 {
		t.Errorf("depth %d, and another way:\n%s", f.depth, diff)
	}
}

func TestASearchEndsWhenItIsTooWideOrNobodyWaits(t *testing.T) {
	if _, err := search[walk, int](t.Context(), walk{at: 1, wrong: -1}, 20); !errors.Is(err, errTooMany) {
		t.Errorf("a search of 61 states with room for 20: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := search[walk, int](ctx, walk{at: 1, wrong: -1}, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("a search for nobody: %v", err)
	}
}
