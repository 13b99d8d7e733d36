package raft_test

import (
	"fmt"
	"runtime"
	"testing"

	"ticketing/raft"
)

// BenchmarkReplication is what three cores cost when network and disks cost nothing: a command of
// 64 bytes is proposed, written, sent, written, acknowledged, committed and applied on all three.
// The figures are for an entry on all servers together, in one goroutine. All commands share their
// bytes, so that only the package's own allocations count.
func BenchmarkReplication(b *testing.B) {
	for _, inFlight := range []int{1, 256} {
		b.Run(fmt.Sprint("inflight=", inFlight), func(b *testing.B) {
			command := make([]byte, 64)
			p := newPump(b)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; {
				if p.applied[0]+inFlight > 1<<16 { // a log without snapshots only grows; start over
					b.StopTimer()
					p = newPump(b)
					b.StartTimer()
				}
				n := min(inFlight, b.N-done)
				for range n {
					if _, _, err := p.cores[0].Propose(command); err != nil {
						b.Fatal(err)
					}
				}
				target := p.applied[0] + n
				p.run()
				if p.applied != [3]int{target, target, target} {
					b.Fatalf("applied %v, want %d each", p.applied, target)
				}
				done += n
			}
			b.StopTimer()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/entry")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/entry")
		})
	}
}

// BenchmarkBacklog is what a proposal costs a leader whose followers do not answer, by how many wait.
func BenchmarkBacklog(b *testing.B) {
	for _, waiting := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint("waiting=", waiting), func(b *testing.B) {
			p := newPump(b)
			for i := 0; b.Loop(); i++ {
				if i%waiting == 0 {
					b.StopTimer()
					p = newPump(b)
					for range waiting {
						p.propose(b)
					}
					b.StartTimer()
				}
				p.propose(b)
			}
		})
	}
}

func (p *pump) propose(b *testing.B) {
	if _, _, err := p.cores[0].Propose(make([]byte, 64)); err != nil {
		b.Fatal(err)
	}
}

// pump is the least that drives three cores.
type pump struct {
	cores   [3]*raft.Core
	queue   []raft.Message
	applied [3]int
}

// newPump returns a pump of which server 1 leads.
func newPump(b *testing.B) *pump {
	p := &pump{}
	for i := range p.cores {
		config := setup{batch: 256, window: 8, room: 1 << 30}.filled().config(raft.ServerID(i + 1))
		core, err := raft.New(config, raft.Durable{}, 0)
		if err != nil {
			b.Fatal(err)
		}
		p.cores[i] = core
	}
	p.cores[0].ElectionTimeout()
	p.run()
	if p.cores[0].Status().Role != raft.Leader {
		b.Fatal("no leader")
	}
	return p
}

// run takes and delivers until there is nothing left.
func (p *pump) run() {
	p.take(0)
	for head := 0; head < len(p.queue); head++ {
		m := p.queue[head]
		if err := p.cores[m.To-1].Receive(m); err != nil {
			panic(err)
		}
		p.take(int(m.To - 1))
	}
	p.queue = p.queue[:0]
}

func (p *pump) take(i int) {
	for {
		out := p.cores[i].Take()
		p.queue = append(p.queue, out.Messages...)
		p.applied[i] += len(out.Committed)
		if out.Write.Seq == 0 {
			return
		}
		p.cores[i].Saved(out.Write.Seq)
	}
}
