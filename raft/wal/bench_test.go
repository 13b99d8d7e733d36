package wal

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ticketing/raft"
)

// batch makes a write of n entries with commands of 64 bytes.
func batch(seq uint64, first raft.Index, n int) raft.Write {
	w := raft.Write{Seq: seq, HardState: raft.HardState{Term: 1, VotedFor: 1}}
	command := make([]byte, 64)
	for i := range n {
		e := raft.Entry{Index: first + raft.Index(i), Term: 1, Command: command}
		w.Entries = append(w.Entries, e)
	}
	return w
}

// unsynced is a directory in which nothing waits for the disk.
type unsynced struct{ osDir }

type unsyncedFile struct{ file }

func (d unsynced) Open(name string, create bool) (file, error) {
	f, err := d.osDir.Open(name, create)
	return unsyncedFile{f}, err
}

func (unsynced) Sync() error { return nil }

func (unsyncedFile) Sync() error { return nil }

// A Save is as fast as the disk's fsync, whatever is in it. What it costs besides is what it costs
// without.
func BenchmarkSave(b *testing.B) {
	dir := func(b *testing.B) directory { return osDir(b.TempDir()) }
	paper := func(b *testing.B) directory { return unsynced{osDir(b.TempDir())} }
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) { saveAll(b, dir(b), n) })
		b.Run(fmt.Sprintf("entries=%d/nosync", n), func(b *testing.B) { saveAll(b, paper(b), n) })
	}
}

func saveAll(b *testing.B, dir directory, n int) {
	l, _, err := open(dir, Options{Cluster: 1, Server: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.SetBytes(recordSize(batch(1, 1, n)))
	seq, next := uint64(0), raft.Index(1)
	for b.Loop() {
		seq++
		if err := l.Save(batch(seq, next, n)); err != nil {
			b.Fatal(err)
		}
		next += raft.Index(n)
	}
}

// The records are made on paper, where a sync costs nothing, and read from files.
func BenchmarkOpen(b *testing.B) {
	const entries = 100_000
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("entries=%d/perRecord=%d", entries, n), func(b *testing.B) {
			dir := b.TempDir()
			data := appendHeader(nil, header{version, 1, 1, 1, 0})
			for next := 1; next <= entries; next += n {
				at, synced := int64(len(data)), int64(len(data))
				if next == 1 {
					synced = 0
				}
				w := batch(1, raft.Index(next), min(n, entries-next+1))
				data = appendRecord(data, 1, at, synced, w)
			}
			f, err := osDir(dir).Open(segmentName(1), true)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := f.WriteAt(data, 0); err != nil {
				b.Fatal(err)
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				l, d, err := Open(dir, Options{Cluster: 1, Server: 1})
				if err != nil || len(d.Entries) != entries {
					b.Fatal(len(d.Entries), err)
				}
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(entries)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// What a snapshot of 100 MB costs, and what it costs the Saves that go on beside it: their median
// and their 99th percentile, with it and without.
func BenchmarkSaveSnapshot(b *testing.B) {
	const size = 100 << 20
	l, _, err := Open(b.TempDir(), Options{Cluster: 1, Server: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.SetBytes(size)
	s, seq := snapshotOf(1, 1, size), uint64(0)
	save := func(times []time.Duration) []time.Duration {
		seq++
		before := time.Now()
		if err := l.Save(batch(seq, raft.Index(seq), 1)); err != nil {
			b.Fatal(err)
		}
		return append(times, time.Since(before))
	}
	var alone, beside []time.Duration
	for range 500 {
		alone = save(alone)
	}
	for b.Loop() {
		s.LastIncludedIndex++
		done := make(chan error)
		go func() { done <- l.SaveSnapshot(s) }()
		for going := true; going; {
			select {
			case err := <-done:
				if going = false; err != nil {
					b.Fatal(err)
				}
			default:
				beside = save(beside)
			}
		}
	}
	for name, times := range map[string][]time.Duration{"alone": alone, "beside": beside} {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds()), name+"-p50-µs")
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), name+"-p99-µs")
	}
}
