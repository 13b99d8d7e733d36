package faults

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"ticketing/cmd/internal/cluster"
	"ticketing/rpc"
)

// A leader stands still until its clients' leases are over, and then goes on as if nothing had
// been.
func TestALeaderThatStoodStillForALeaseDoesNoHarm(t *testing.T) {
	t.Parallel()
	s := start(t, cluster.Config{})
	old := s.leader()
	first := s.lock(s.dial("first"), "first", "door", lease)
	var door resource
	s.must(door.write(first.Token()))

	options := rpc.Options{Owner: "late", NoHints: true}
	late, err := rpc.Dial(within(t), []string{s.Addr(old)}, options)
	s.must(err)
	defer late.Close()
	s.must(late.Connect(within(t)))
	s.pause(old)
	// What is sent to it now waits in its socket until it goes on.
	ctx, cancel := context.WithTimeout(t.Context(), lease/2)
	defer cancel()
	if _, err := late.Lock(ctx, "gate", ages); !errors.Is(err, rpc.ErrUnknownOutcome) {
		t.Errorf("a request to a leader that stands still comes to %v", err)
	}
	s.leader(s.others(old)...)
	second := s.lock(s.dial("second", s.others(old)...), "second", "door", ages)
	isOver(t, first, second)
	s.must(door.write(second.Token()))
	if err := door.write(first.Token()); err == nil || door.late != 1 {
		t.Error("the resource takes a write with the first token, after one with the second")
	}

	s.must(s.Resume(old))
	s.leader()
	s.converge()
	select {
	case <-second.Done():
		t.Errorf("the second lock is over: %v", second.Err())
	default:
	}
	s.kept.add(second)
	s.judge()
	for token, tenure := range s.replay(s.readLog(old)) {
		if tenure.owner == "late" {
			t.Errorf("what was asked of a leader that stood still was done: token %d, %+v",
				token, tenure)
		}
	}
}

// isOver checks what the first of two holders knows when the second has been granted its lock. No
// packet told it: its servers stood still.
func isOver(t *testing.T, first, second *rpc.Lock) {
	t.Helper()
	select {
	case <-first.Done():
	case <-time.After(lease): // a timer may be late on a machine that is busy, but not by so much
		t.Errorf("token %d is granted, and the holder of token %d believes that it has the lock",
			second.Token(), first.Token())
	}
	if !errors.Is(first.Err(), rpc.ErrLost) || second.Token() <= first.Token() {
		t.Errorf("token %d: %v; then came token %d", first.Token(), first.Err(), second.Token())
	}
	if late := time.Since(first.Deadline()); late < 0 {
		t.Errorf("the first lock should last for %v yet", -late)
	}
}

// A client stands still between looking at its lock and writing, until its lease is over. Nothing
// that it could have done helps then; the token does. (curator#727, HBase.)
func TestAClientThatStoodStillForALeaseIsRefusedByTheResource(t *testing.T) {
	t.Parallel()
	s := start(t, cluster.Config{})
	s.leader()
	var door resource
	h := s.holder()
	h.says("holds 1")
	h.says("looked")
	h.goesOn()
	h.says("writes 1")
	s.must(door.write(1))
	h.says("looked")

	h.signal(syscall.SIGSTOP)
	h.goesOn() // it would write now, if it did not stand still
	next := s.lock(s.client, "test", "door", ages)
	if next.Token() <= 1 {
		t.Errorf("the next holder has token %d", next.Token())
	}
	s.must(door.write(next.Token()))
	h.signal(syscall.SIGCONT)
	h.says("writes 1")
	if err := door.write(1); err == nil {
		t.Error("the resource takes a write of a holder whose lease was over long ago")
	}
	for line := h.next(); line != fmt.Sprint("over: ", rpc.ErrLost); line = h.next() {
		// It may look once more before its timer gets its turn.
		switch line {
		case "looked":
			h.goesOn()
		case "writes 1":
			_ = door.write(1) // refused, or it is among the writes
		default:
			t.Fatalf("the holder says %q", line)
		}
	}
	if len(door.writes) != 2 || door.late == 0 {
		t.Errorf("writes with tokens %d were taken, %d refused", door.writes, door.late)
	}
	s.kept.add(next)
	s.judge()
}

// A follower stands still: its socket takes what is sent, and nothing is answered. The others must
// not wait for it.
func TestAPeerThatDoesNotAnswerDelaysNobody(t *testing.T) {
	t.Parallel()
	s := start(t, cluster.Config{})
	leader := s.leader()
	cycles := int(lasting(100, 2000))
	before := s.latency(cycles)
	silent := s.others(leader)[0]
	s.pause(silent)
	during := s.latency(cycles)
	t.Logf("an acquire takes %v with three servers, %v with one that is silent: %.2f times as long",
		before, during, float64(during)/float64(before))
	if during > election/3 {
		t.Errorf("with a peer that is silent an acquire takes %v", during)
	}
	s.must(s.Resume(silent))
	s.judge()
}

// latency is the median time that an acquire takes, of a lock that nobody else wants.
func (s *stage) latency(cycles int) time.Duration {
	s.t.Helper()
	var times []time.Duration
	for range cycles {
		begin := time.Now()
		lock := s.lock(s.client, "test", "mine", lease)
		times = append(times, time.Since(begin))
		_ = s.history.Unlock(within(s.t), "test", lock) // an answer that is lost costs one cycle
	}
	return median(times)
}
