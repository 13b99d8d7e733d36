package trace

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBatchesOfSeveralNodesStandWholeInOneFile(t *testing.T) {
	var file bytes.Buffer
	r := NewRecorder(&file, func(err error) { t.Error(err) })
	var nodes sync.WaitGroup
	for n := range 3 {
		name := fmt.Sprintf("S%d", n+1)
		nodes.Go(func() {
			r.Open([]string{"S1", "S2", "S3"}, 7)
			for range 100 {
				r.Record([]Event{{Node: name, Kind: KindWake}, {Node: name, Kind: KindState, Cause: 1}})
			}
		})
	}
	nodes.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	run, err := Read(&file)
	if err != nil || len(run.Events) != 600 {
		t.Fatalf("%d events, %v", len(run.Events), err)
	}
	if h := run.Header; !h.Real || h.Cluster != 7 || len(h.Nodes) != 3 {
		t.Errorf("the header is %+v", h)
	}
	var last Time
	for i, e := range run.Events {
		cause := int64(i % 2 * i) // of the second in a batch, the first
		torn := i%2 == 1 && e.Node != run.Events[i-1].Node
		if e.ID != int64(i)+1 || e.Cause != cause || e.At < last || torn {
			t.Fatalf("the %dth event is %+v", i+1, e)
		}
		last = e.At
	}
	if now := Time(time.Now().UnixMicro()); now-last > Time(time.Minute.Microseconds()) || last > now {
		t.Errorf("the last event is at %d, now it is %d", last, now)
	}
}

// full is a file that takes some lines and then no more.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestAFileThatFailsEndsTheRecordingAndSaysSoOnce(t *testing.T) {
	told := 0
	r := NewRecorder(&full{1000}, func(err error) {
		told++
		if !errors.Is(err, errFull) {
			t.Error(err)
		}
	})
	r.Open([]string{"S1"}, 1)
	for range 1000 {
		r.Record([]Event{{Node: "S1", Kind: KindWake}})
	}
	if err := r.Close(); !errors.Is(err, errFull) || told != 1 {
		t.Errorf("told %d times, closing says %v", told, err)
	}
}

// hung is a file that takes nothing, and when it is closed fails.
type hung chan struct{}

func (h hung) Write([]byte) (int, error) { <-h; return 0, errFull }

func TestAFileThatHangsHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, told := make(hung), 0
		r := NewRecorder(file, func(err error) {
			told++
			if !errors.Is(err, errSlow) {
				t.Error(err)
			}
		})
		r.Open([]string{"S1"}, 1)
		start := time.Now()
		for range 2*maxWaiting + 1 { // the goroutine may have taken some before it hung
			r.Record([]Event{{Node: "S1", Kind: KindWake}})
		}
		if took := time.Since(start); took != 0 || told != 1 {
			t.Errorf("it took %v, and was told %d times", took, told)
		}
		if err := r.Close(); !errors.Is(err, errSlow) || time.Since(start) != closing {
			t.Errorf("closing takes %v and says %v", time.Since(start), err)
		}
		close(file)
		synctest.Wait()
		if told != 1 {
			t.Errorf("it was told %d times", told)
		}
	})
}
