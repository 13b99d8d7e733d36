package sim

import (
	"cmp"
	"container/heap"
	"slices"
	"testing"

	"ticketing/fsm/trace"
)

func TestTheQueueIsASortByTimeAndThenByScheduling(t *testing.T) {
	for seed := range uint64(200) {
		var q queue
		var pushed, popped []event
		order := uint64(0)
		n := below(scramble(seed), []int64{300, 3000}[seed%2])
		spread := []uint64{5, 100, 1_000_000}[seed%3]
		for i := range uint64(n) {
			bits := scramble(seed<<32 + i)
			if len(q) > 0 && bits%3 == 0 {
				popped = append(popped, q.pop())
				continue
			}
			order++
			// Nothing is scheduled for the past, and sometimes many things for the same moment.
			now := trace.Time(0)
			if len(popped) > 0 {
				now = popped[len(popped)-1].at
			}
			e := event{at: now + trace.Time(bits>>32%spread), order: order}
			pushed = append(pushed, e)
			q.push(e)
		}
		for len(q) > 0 {
			popped = append(popped, q.pop())
		}
		slices.SortFunc(pushed, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
		})
		if !slices.Equal(pushed, popped) {
			t.Fatalf("seed %d: %d events came out in another order than they sort", seed, len(pushed))
		}
	}
}

// A heap that looks at more than a node's own children goes wrong once in a hundred thousand heaps
// of this size, and then by little. This is one of them.
func TestAPopLooksAtANodesOwnChildrenOnly(t *testing.T) {
	const seed, events = 178848, 70
	var q queue
	for i := range uint64(events) {
		q.push(event{at: trace.Time(scramble(seed<<20+i) % 1000), order: i})
	}
	last := q.pop()
	for len(q) > 0 {
		e := q.pop()
		if e.before(last) {
			t.Fatalf("an event at %s came out after one at %s", e.at, last.at)
		}
		last = e
	}
}

// BenchmarkQueue is an event popped and another one scheduled, with forty in the queue; container
// is the same with container/heap.
func BenchmarkQueue(b *testing.B) {
	const standing = 40
	b.Run("ours", func(b *testing.B) {
		var q queue
		for i := range uint64(standing) {
			q.push(event{at: trace.Time(scramble(i) % 100), order: i})
		}
		for i := range uint64(b.N) {
			e := q.pop()
			q.push(event{at: e.at + trace.Time(scramble(i)%100), order: standing + i})
		}
	})
	b.Run("container", func(b *testing.B) {
		q := &containerQueue{}
		for i := range uint64(standing) {
			heap.Push(q, event{at: trace.Time(scramble(i) % 100), order: i})
		}
		for i := range uint64(b.N) {
			e := heap.Pop(q).(event)
			heap.Push(q, event{at: e.at + trace.Time(scramble(i)%100), order: standing + i})
		}
	})
}

// containerQueue is queue as container/heap wants it.
type containerQueue []event

func (q containerQueue) Len() int           { return len(q) }
func (q containerQueue) Less(i, j int) bool { return q[i].before(q[j]) }
func (q containerQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *containerQueue) Push(x any)        { *q = append(*q, x.(event)) }
func (q *containerQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
