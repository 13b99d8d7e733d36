package sim

import (
	"math/bits"

	"ticketing/fsm/trace"
)

// Randomness in a run is keyed, never streamed: each draw is a function of the seed and of what it
// is for. So a draw does not depend on how many came before it, and a run from which one message or
// one fault is taken away is the same run but for what follows from that. Replaying, shrinking and
// comparing two runs "with the same seed" rest on it.

// A stream says what a draw is for.
type stream uint64

const (
	streamElection  stream = iota + 1 // the nth election timeout of a server
	streamLoss                        // whether the nth message on a link is lost,
	streamDuplicate                   // duplicated,
	streamTail                        // slow,
	streamDelay                       // and how long it takes
	streamCopy                        // the same for its duplicate
	streamSync                        // how long the nth write of a disk takes
	streamPlan                        // the random search's plan: what happens when
	streamSector                      // whether a sector of the nth write survives a crash
	streamProgram                     // what a client of an experiment does in its nth tenure
	streamFile                        // how long the nth snapshot of a disk takes
	streamWander                      // by how much a clock's rate changes in its nth step
	streamTimer                       // how late an actor's nth timer is
	streamStrike                      // whom a fault is for that chooses by itself
	streamGuide                       // the guided search: which run is changed, and how
	streamFork                        // the seed of the nth other future
)

// draw returns 64 random bits for the nth use of a stream by an actor, towards a peer.
func draw(seed uint64, s stream, actor, peer, n uint64) uint64 {
	x := seed ^ uint64(s)*0x9e3779b97f4a7c15
	x = scramble(x ^ actor*0xd1342543de82ef95)
	return scramble(x ^ peer*0xaf251af3b0f025b5 ^ n*0xb564ef22ec7aece5)
}

// scramble is the finalizer of splitmix64 (Steele, Lea and Flood, 2014). Its constants, like those
// above, are frozen by a test: changing one changes every run.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below maps 64 random bits to 0 … n-1 by the high half of a product, which has no modulo's bias
// worth speaking of and no float.
func below(bits64 uint64, n int64) int64 {
	if n <= 0 {
		return 0
	}
	hi, _ := bits.Mul64(bits64, uint64(n))
	return int64(hi)
}

// chance reports whether an event with a probability in parts per million happens.
func chance(bits64 uint64, ppm int) bool { return below(bits64, 1_000_000) < int64(ppm) }

// between maps random bits to the range lo … hi, both included.
func between(bits64 uint64, lo, hi trace.Time) trace.Time {
	return lo + trace.Time(below(bits64, int64(hi-lo)+1))
}

// nameKey turns a name into an actor's number for draw, so that it does not depend on who else is
// there.
func nameKey(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return scramble(h)
}
