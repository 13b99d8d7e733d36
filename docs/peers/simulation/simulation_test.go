//go:build unix

package simulation

import (
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"ticketing/sim"
)

// seconds is how long a cluster is simulated at a time: logs without snapshots only grow.
const seconds = 600

// rate is how many lock operations a second there are, if any.
const rate = 20

// scenario is ours: three servers, and with operations five clients that together take or give back
// a lock so often. Their requests and answers are messages, too, which etcd's loop does not have.
func scenario(t testing.TB, operations bool) *sim.Scenario {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# A cluster and its lock table\nnodes %d\n", servers)
	if operations {
		fmt.Fprint(&b, "connect A B C D E\n")
		for i := range seconds * rate {
			client, do := string(rune('A'+i%5)), "acquire own%d lease=2s"
			if i/5%2 == 1 {
				do = "release own%d"
			}
			fmt.Fprintf(&b, "%s: "+do+"\nrun 50ms\n", client, i%5)
		}
	} else {
		fmt.Fprintf(&b, "run %ds\n", seconds)
	}
	s, err := sim.Parse("ours", b.String())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ours runs the scenario with all invariants watched, and returns how many commands came to something.
func ours(t testing.TB, s *sim.Scenario) int64 {
	t.Helper()
	r, err := sim.Run(s, sim.Options{MaxSteps: 1 << 40})
	if err != nil || !r.Held() {
		t.Fatal(err, r)
	}
	return r.Count("grant.granted") + r.Count("release.released")
}

// theirs runs as long a time, and returns how many commands the first server has applied.
func theirs(t testing.TB, operations bool) int64 {
	t.Helper()
	e, err := newEtcd(1)
	if err != nil {
		t.Fatal(err)
	}
	command := make([]byte, 40) // about as long as one of ours
	for i := range int64(seconds * rate) {
		if err := e.advance(i * second / rate); err != nil {
			t.Fatal(err)
		}
		if operations {
			if err := e.propose(command); err != nil {
				t.Fatal(err)
			}
		}
	}
	return int64(e.applied[0])
}

// What is measured is what is meant: both sides commit nearly all of what they are asked for, and
// nothing without being asked.
func TestBothSidesDoTheWork(t *testing.T) {
	for _, operations := range []bool{false, true} {
		got := []int64{ours(t, scenario(t, operations)), theirs(t, operations)}
		for i, n := range got {
			if most := int64(seconds * rate); operations && (n < most*9/10 || n > most) || !operations && n != 0 {
				t.Errorf("operations %v: side %d has carried out %d commands", operations, i, n)
			}
		}
	}
}

func BenchmarkIdle(b *testing.B)      { compare(b, false) }
func BenchmarkTwentyOps(b *testing.B) { compare(b, true) }

// compare lets both have turns, and counts the time on a core: the machine may have other things to do.
func compare(b *testing.B, operations bool) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as raftsim has it; for both
	s := scenario(b, operations)
	var we, they time.Duration
	for b.Loop() {
		start := coreTime(b)
		ours(b, s)
		middle := coreTime(b)
		theirs(b, operations)
		we += middle - start
		they += coreTime(b) - middle
	}
	hours := float64(b.N) * seconds / 3600
	b.ReportMetric(hours/we.Seconds(), "ours-hours/s")
	b.ReportMetric(hours/they.Seconds(), "etcd-hours/s")
	b.ReportMetric(they.Seconds()/we.Seconds(), "times-etcd")
}

func coreTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
