package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ticketing/cmd/internal/cluster"
	"ticketing/cmd/internal/history"
	"ticketing/raft"
	"ticketing/rpc"
)

// Times. Leases are at least four election timeouts, since servers take none that are shorter.
const (
	election = 300 * time.Millisecond
	longest  = 2 * election // an election timeout is shorter than this
	lease    = 1300 * time.Millisecond
	ages     = 10 * time.Minute // a lease that does not end during a test
	patience = 30 * time.Second // after which something hangs
)

// stage is a cluster and what was seen of it.
type stage struct {
	*cluster.Cluster
	t       *testing.T
	client  *rpc.Client
	history *history.Recorder
	kept    *keep
	stopped bool
}

// start starts three servers, which are stopped when the test ends.
func start(t *testing.T, config cluster.Config) *stage {
	t.Helper()
	config.Binary, config.Election = os.Getenv(binaryEnv), election
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	c, err := cluster.Start(within(t), config)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{Cluster: c, t: t, history: history.NewRecorder(), kept: &keep{}}
	t.Cleanup(s.stop)
	s.client = s.dial("test")
	return s
}

func (s *stage) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	if err := s.Stop(); err != nil {
		s.t.Error(err)
	}
	if s.t.Failed() {
		for _, id := range s.IDs() {
			lines := strings.Split(strings.TrimSpace(s.Log(id)), "\n")
			last := lines[max(0, len(lines)-12):]
			s.t.Logf("the log of server %d ends:\n%s", id, strings.Join(last, "\n"))
		}
	}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// dial returns a client that knows of some servers, of all if none are named. It should know of no
// server that stands still: who waits there for a long lease waits for a part of that.
func (s *stage) dial(owner string, ids ...raft.ServerID) *rpc.Client {
	s.t.Helper()
	addrs := s.Addrs()
	if len(ids) > 0 {
		addrs = nil
	}
	for _, id := range ids {
		addrs = append(addrs, s.Addr(id))
	}
	client, err := rpc.Dial(within(s.t), addrs, rpc.Options{Owner: owner})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

// lock takes a lock, and the test does not go on without it.
func (s *stage) lock(client *rpc.Client, name, key string, lease time.Duration) *rpc.Lock {
	s.t.Helper()
	for ctx := within(s.t); ; {
		lock, err := s.history.Lock(ctx, client, name, key, lease)
		if err == nil {
			return lock
		}
		if ctx.Err() != nil || !errors.Is(err, rpc.ErrUnknownOutcome) {
			s.t.Fatal(err)
		}
	}
}

// goesOn takes a lock and gives it back: a cluster that can do that goes on. The client knows of
// some servers only, as dial says: one that is cut off may believe that it leads.
func (s *stage) goesOn(ids ...raft.ServerID) {
	s.t.Helper()
	client := s.dial("between", ids...)
	defer client.Close()
	lock := s.lock(client, "between", "between", lease)
	_ = s.history.Unlock(within(s.t), "between", lock) // its answer may be lost like any other
}

// await waits until clients have got so many more locks.
func (s *stage) await(more int) {
	s.t.Helper()
	granted := func() (n int) {
		for _, o := range s.history.Operations() {
			if o.Granted() {
				n++
			}
		}
		return n
	}
	before := granted()
	eventually(s.t, fmt.Sprintf("%d more locks are granted", more), func() bool {
		return granted() >= before+more && s.kept.any() // which is one in twenty
	})
}

// eventually asks again and again, of real processes.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); !is(); <-again.C {
		if time.Now().After(end) {
			t.Fatalf("it is not so in time: %s", what)
		}
	}
}

// status asks a server; of one that does not answer soon it knows nothing.
func (s *stage) status(id raft.ServerID) rpc.StatusReply {
	ctx, cancel := context.WithTimeout(context.Background(), election)
	defer cancel()
	reply, err := s.client.Status(ctx, s.Addr(id))
	if err != nil {
		return rpc.StatusReply{}
	}
	return reply
}

// agreed returns the leader that all of some servers follow in one term, 0 if there is none.
func (s *stage) agreed(ids ...raft.ServerID) raft.ServerID {
	var first rpc.StatusReply
	for i, id := range ids {
		now := s.status(id)
		if i == 0 {
			first = now
		}
		if now.Leader == "" || now.Leader != first.Leader || now.Term != first.Term {
			return 0
		}
	}
	for _, id := range ids {
		if s.Addr(id) == first.Leader {
			return id
		}
	}
	return 0
}

// leader waits until some servers, all if none are named, agree on one of them.
func (s *stage) leader(ids ...raft.ServerID) (leader raft.ServerID) {
	s.t.Helper()
	if len(ids) == 0 {
		ids = s.IDs()
	}
	eventually(s.t, fmt.Sprintf("servers %d agree on a leader", ids), func() bool {
		leader = s.agreed(ids...)
		return leader != 0
	})
	return leader
}

// others are the servers that are not this one.
func (s *stage) others(not raft.ServerID) (ids []raft.ServerID) {
	for _, id := range s.IDs() {
		if id != not {
			ids = append(ids, id)
		}
	}
	return ids
}

// pause has a server stand still. A signal takes a moment to arrive: until the server does not
// answer any more, it may go on.
func (s *stage) pause(id raft.ServerID) {
	s.t.Helper()
	s.must(s.Pause(id))
	eventually(s.t, fmt.Sprintf("server %d stands still", id), func() bool {
		return s.status(id).ID == 0
	})
}

// makeLead has elections until a server leads.
func (s *stage) makeLead(id raft.ServerID) {
	s.t.Helper()
	for now := s.leader(); now != id; now = s.leader() {
		s.pause(now)
		s.leader(s.others(now)...)
		s.must(s.Resume(now))
	}
}

// elections counts how often somebody became leader.
func (s *stage) elections() (n int) {
	for _, id := range s.IDs() {
		n += strings.Count(s.Log(id), "role=leader")
	}
	return n
}

// must is for what the stage is made of, not for what is tested.
func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// endsBadly waits until a server has ended by itself, with code 1 and a line that says why.
func (s *stage) endsBadly(id raft.ServerID, why string) {
	s.t.Helper()
	select {
	case <-s.Exited(id):
	case <-time.After(patience):
		s.t.Fatalf("server %d does not end; its log:\n%s", id, s.Log(id))
	}
	var exit *exec.ExitError
	if err := s.ExitError(id); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		s.t.Errorf("server %d ends with %v, not with code 1", id, err)
	}
	said := s.Log(id)
	said = said[strings.LastIndex(said, "\nlockd:")+1:]
	for _, want := range []string{"has stopped by itself", why, "mend the cause"} {
		if !strings.Contains(said, want) {
			s.t.Errorf("server %d does not say %q but %q", id, want, said)
		}
	}
	s.t.Logf("server %d: %s", id, strings.TrimSpace(said))
}

// keepHistory leaves the history where somebody wants it.
func (s *stage) keepHistory() {
	s.t.Helper()
	dir := os.Getenv(historyEnv)
	if dir == "" {
		return
	}
	name := strings.ReplaceAll(s.t.Name(), "/", "-") + ".jsonl"
	file, err := os.Create(filepath.Join(dir, name))
	s.must(err)
	s.must(errors.Join(history.Write(file, s.history.Operations()), file.Close()))
}
