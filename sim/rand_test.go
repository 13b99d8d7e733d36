package sim

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ticketing/fsm/trace"
)

// Every seed that anyone has written down rests on these values.
func TestDrawsAreFrozen(t *testing.T) {
	want := []uint64{
		0x7e3bddb6c6803ccd, 0x16b9c6699f90e656, 0x4d6c0b7f3c15a038, 0x2b2d12ea02ae7e8a,
		0xb82106dc2424ffbe, 0x8cc59d7b14ea58ec, 0x6b985c687097f850, 0xfd3538787cc4ace5,
		0x33a06c2e7156f43e, 0x905c5f63bc8a876, 0x94e7e3a3cc5571a0, 0xd65822041b7faa69,
		0xc91e5bbce5613a6b, 0xa8dc051b600d0d09, 0x833f25d9de15de24, 0x86e9f4a2d0cc991,
	}
	var got []uint64
	for i := range uint64(16) {
		got = append(got, draw(i/2, stream(i%8+1), i, 16-i, i*i))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("draws have changed, and with them every run of every seed (-want +got):\n%s", diff)
	}
}

func TestNamesKeysAreFrozen(t *testing.T) {
	got := []uint64{nameKey("A"), nameKey("resource")}
	if diff := cmp.Diff([]uint64{0x1fcd1ac07bb30c63, 0xf095da41607ab154}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A draw that did not depend on one of these would be the same for two servers, or for ever.
func TestDrawsDependOnAllThatTheyAreFor(t *testing.T) {
	base := draw(1, streamDelay, 2, 3, 4)
	for what, other := range map[string]uint64{
		"seed":    draw(2, streamDelay, 2, 3, 4),
		"stream":  draw(1, streamCopy, 2, 3, 4),
		"actor":   draw(1, streamDelay, 3, 3, 4),
		"peer":    draw(1, streamDelay, 2, 2, 4),
		"ordinal": draw(1, streamDelay, 2, 3, 5),
		"order":   draw(1, streamDelay, 3, 2, 4),
	} {
		if other == base {
			t.Errorf("another %s gives the same draw", what)
		}
	}
}

func TestBelowIsInRangeAndEven(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 10, 1_000_000, 1 << 40} {
		for i := range uint64(10_000) {
			if k := below(scramble(i), n); k < 0 || k >= n {
				t.Fatalf("below(%d) is %d", n, k)
			}
		}
		if k := below(1<<64-1, n); k != n-1 {
			t.Errorf("the greatest draw below %d is %d", n, k)
		}
	}
	if k := below(1<<64-1, 0); k != 0 {
		t.Errorf("below 0 is %d, want 0", k)
	}
	// 7 does not divide 2^64. With 700,000 draws a share strays by 300 from 100,000 in one of three
	// runs, and by 1,500 never.
	var share [7]int
	for i := range uint64(700_000) {
		share[below(draw(1, streamLoss, 1, 2, i), 7)]++
	}
	for k, n := range share {
		if n < 98_500 || n > 101_500 {
			t.Errorf("%d was drawn %d times in 700,000", k, n)
		}
	}
}

func TestBetweenReachesBothEndsAndNoFurther(t *testing.T) {
	seen := map[trace.Time]bool{}
	for i := range uint64(1000) {
		seen[between(scramble(i), 5, 8)] = true
	}
	if diff := cmp.Diff(map[trace.Time]bool{5: true, 6: true, 7: true, 8: true}, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChanceIsInPartsPerMillion(t *testing.T) {
	hits := 0
	for i := range uint64(1_000_000) {
		if chance(draw(1, streamTail, 1, 2, i), 1000) {
			hits++
		}
		if chance(scramble(i), 0) || !chance(scramble(i), 1_000_000) {
			t.Fatal("0 happened, or 1,000,000 did not")
		}
	}
	if hits < 850 || hits > 1150 {
		t.Errorf("1,000 in a million happened %d times in a million", hits)
	}
}
