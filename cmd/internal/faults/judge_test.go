package faults

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"ticketing/cmd/internal/history"
	"ticketing/fsm"
	"ticketing/raft"
	"ticketing/raft/wal"
)

// converge waits until all servers have carried out the same and there is no more of it, and returns
// the last entry.
func (s *stage) converge() (last raft.Index) {
	s.t.Helper()
	eventually(s.t, "all servers have the same table, and nothing is on its way", func() bool {
		first := s.status(s.IDs()[0])
		for _, id := range s.IDs() {
			now := s.status(id)
			if now.ID != id || now.Term != first.Term || now.Hash != first.Hash ||
				now.Last != first.Last || now.Commit != now.Last || now.Applied != now.Last {
				return false
			}
		}
		last = raft.Index(first.Last)
		return last > 0
	})
	return last
}

// tally is what a judgement was about. What has not happened was not tested.
type tally struct {
	granted, released, refused, unknown, kept, expired, elections int
}

// judge ends the stage: the servers converge and are stopped, and what clients were told is held
// against the tables and the logs.
func (s *stage) judge() tally {
	s.t.Helper()
	eventually(s.t, "all short leases are over", func() bool { return len(s.shared()) == 0 })
	last := s.converge()
	s.judgeTables()
	s.stop()
	s.keepHistory()
	all := s.history.Operations()
	if err := history.CheckTokens(all); err != nil {
		s.t.Error(err)
	}
	// A leader hands over before it stops, and the next one may begin its term with an entry that not
	// all have before they stop as well.
	begun := func(e raft.Entry) bool { return e.Index > last && len(e.Command) == 0 }
	first := s.IDs()[0]
	log := slices.DeleteFunc(s.readLog(first), begun)
	for _, id := range s.others(first) {
		if diff := cmp.Diff(log, slices.DeleteFunc(s.readLog(id), begun)); diff != "" {
			s.t.Fatalf("the logs of servers %d and %d differ:\n%s", first, id, diff)
		}
	}
	n := s.judgeLog(all, s.replay(log))
	n.kept, n.elections = len(s.kept.locks), s.elections()
	s.t.Logf("%+v", n)
	return n
}

// shared returns the keys that are held for a short time.
func (s *stage) shared() (keys []string) {
	ctx, cancel := context.WithTimeout(context.Background(), lease)
	defer cancel()
	list, err := s.client.List(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	for _, lock := range list {
		if lock.LeaseMS < uint32(ages.Milliseconds()) {
			keys = append(keys, lock.Key)
		}
	}
	return keys
}

// judgeTables looks for each lock that must still be there, in the table of each server.
func (s *stage) judgeTables() {
	s.t.Helper()
	for _, id := range s.IDs() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		list, _, err := s.client.ListLocal(ctx, s.Addr(id))
		cancel()
		s.must(err)
		got := map[string]fsm.Token{}
		for _, lock := range list {
			got[lock.Key] = lock.Token
		}
		for key, token := range s.kept.locks {
			if got[key] != token {
				s.t.Errorf("%q was granted with token %d for %v; on server %d it has token %d",
					key, token, ages, id, got[key])
			}
		}
	}
}

// readLog reads a stopped server's log. That all servers had applied all of theirs was seen before.
func (s *stage) readLog(id raft.ServerID) []raft.Entry {
	s.t.Helper()
	name := fnv.New64a()
	name.Write([]byte("harness")) // the -cluster that the servers were given, as lockd counts it
	store, durable, err := wal.Open(s.Dir(id), wal.Options{Cluster: name.Sum64() | 1, Server: id})
	s.must(err)
	s.must(store.Close())
	return durable.Entries
}

// span is a tenure as the log tells it.
type span struct {
	key, owner string
	end        fsm.Kind // Release or Expire; Noop while it lasts
	by         string   // the owner of the Release that has ended it; "" is the service
}

// replay reads a log with a rule of its own: a Grant takes a free key and the next token, a Release
// or an Expire ends the tenure that it names. A request that is in the log again does nothing, and
// neither does one that its client has closed.
func (s *stage) replay(log []raft.Entry) map[fsm.Token]span {
	s.t.Helper()
	spans, holder, tokens := map[fsm.Token]span{}, map[string]fsm.Token{}, fsm.Token(0)
	type request struct {
		client fsm.ClientID
		seq    uint64
	}
	granted, lowest := map[request]bool{}, map[fsm.ClientID]uint64{}
	for _, entry := range log {
		e, err := fsm.Decode(entry.Command)
		s.must(err)
		q := request{e.Client, e.Seq}
		lowest[q.client] = max(lowest[q.client], e.Lowest)
		again := q.client != 0 && (granted[q] || q.seq < lowest[q.client])
		token, held := holder[e.Key]
		switch {
		case e.Kind == fsm.Grant && !held && !again:
			granted[q] = true
			tokens++
			holder[e.Key] = tokens
			spans[tokens] = span{key: e.Key, owner: e.Owner}
		case (e.Kind == fsm.Release || e.Kind == fsm.Expire) && held && e.Token == token:
			delete(holder, e.Key)
			ended := spans[token]
			ended.end, ended.by = e.Kind, e.Owner
			spans[token] = ended
		}
	}
	return spans
}

// judgeLog holds what clients were told against the tenures of the log.
func (s *stage) judgeLog(all []history.Operation, spans map[fsm.Token]span) tally {
	s.t.Helper()
	var n tally
	asked := map[fsm.Token]bool{} // somebody has asked for its end
	for _, o := range all {
		asked[o.Token] = asked[o.Token] || o.Kind == history.Release
	}
	var wrong []string
	for _, o := range all {
		tenure, found := spans[o.Token]
		switch {
		case o.Outcome == history.Unknown:
			n.unknown++
		case o.Outcome == history.Held:
			n.refused++
		case o.Granted():
			n.granted++
			if !found || tenure.key != o.Key || tenure.owner != o.Client ||
				tenure.end == fsm.Release && !asked[o.Token] {
				wrong = append(wrong, fmt.Sprintf("%+v was acknowledged; it is %+v", o, tenure))
			}
			if tenure.end == fsm.Expire {
				n.expired++
			}
		case o.Outcome == history.OK:
			n.released++
			if tenure.end != fsm.Release || tenure.by != o.Client {
				wrong = append(wrong, fmt.Sprintf("%+v was confirmed; it is %+v", o, tenure))
			}
		case tenure.end == fsm.Noop: // NotHeld
			wrong = append(wrong, fmt.Sprintf("%+v was answered; it is %+v", o, tenure))
		}
	}
	for _, line := range wrong[:min(len(wrong), 5)] {
		s.t.Error(line)
	}
	if len(wrong) > 5 {
		s.t.Errorf("… and %d more that are not as the log has them", len(wrong)-5)
	}
	return n
}

// median is the middle of some times.
func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
