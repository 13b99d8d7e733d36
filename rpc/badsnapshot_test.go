package rpc

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/rpc"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// tableOf writes a table with so many locks, and as many tokens given out.
func tableOf(locks int) []byte {
	var table fsm.Table
	for i := range locks {
		table.Apply(1, fsm.Envelope{Command: fsm.Command{
			Kind: fsm.Grant, Key: fmt.Sprintf("jobs/%07d", i), LeaseMS: 3_600_000,
		}})
	}
	return table.Encode()
}

func snapshotOf(data []byte) *raft.Snapshot {
	return &raft.Snapshot{LastIncludedIndex: 9, LastIncludedTerm: 5, Data: data, Members: raft.Configuration{
		{ID: 1, Voter: true}, {ID: 2, Voter: true}, {ID: 3, Voter: true},
	}}
}

// offer sends a snapshot to server 1 in two parts, as server 2 does that leads. It returns the answer
// to the last part that is answered.
func offer(t *testing.T, c *cluster, h Header, s *raft.Snapshot) (y *InstallSnapshotReply) {
	t.Helper()
	k := c.rawCaller(t, "n2", 1)
	half := len(s.Data) / 2
	for i, data := range [][]byte{s.Data[:half], s.Data[half:]} {
		args := &InstallSnapshotArgs{h, raft.InstallSnapshot{
			LastIncludedIndex: s.LastIncludedIndex, LastIncludedTerm: s.LastIncludedTerm, Members: s.Members,
			Offset: uint64(i * half), Data: data, Done: i == 1,
		}}
		y = new(InstallSnapshotReply)
		select {
		case call := <-k.Go("Raft.InstallSnapshot", args, y, make(chan *rpc.Call, 1)).Done:
			if call.Error != nil {
				t.Logf("the answer to part %d is %v", i, call.Error)
			}
		case <-time.After(longest):
			t.Errorf("part %d is not answered", i)
		}
	}
	return y
}

// A leader's snapshot that is none ends the server with a word that says why, before anything of it
// counts; what no correct leader sends is refused. The first case is one that is right.
func TestALeadersSnapshotThatIsWrongDoesNoHarm(t *testing.T) {
	good := tableOf(3)
	hash := bytes.LastIndexByte(good[:len(good)-1], ' ') + 1
	toCome, later := snapshotOf(good), bytes.Replace(good, []byte("table 1 "), []byte("table 2 "), 1)
	toCome.LastIncludedTerm = 51
	for name, o := range map[string]offered{
		"right":                {snapshotOf(good), 1, 0, "", 0},
		"of another cluster":   {snapshotOf(good), 2, 0, "", anotherCluster},
		"of a term to come":    {toCome, 1, 0, "", malformed},
		"of a later version":   {snapshotOf(later), 1, 0, `is not "table 1"`, 0},
		"cut off":              {snapshotOf(good[:hash-7]), 1, 0, "it is cut off", 0},
		"with another hash":    {snapshotOf(append(slices.Clone(good[:hash]), "77\n"...)), 1, 0, "the hash", 0},
		"with bytes behind it": {snapshotOf(append(slices.Clone(good), 0)), 1, 0, "1 bytes follow", 0},
		"with other tokens":    {snapshotOf(good), 1, 1000, "it is another cluster's", 0},
		"of nothing":           {snapshotOf(nil), 1, 0, "it is cut off", 0},
	} {
		t.Run(name, func(t *testing.T) {
			o.test(t, name == "right")
		})
	}
}

// offered is a snapshot that a leader of a cluster offers to a server with a floor.
type offered struct {
	*raft.Snapshot
	cluster uint64
	floor   fsm.Token
	says    string // the server as it ends; "" if it goes on
	refused fault  // then: as what it counts the message
}

func (o offered) test(t *testing.T, right bool) {
	synctest.Test(t, func(t *testing.T) {
		c, book := bubbleCluster(t, 0), newLogbook(t)
		c.config.Log, c.config.TokenFloor = book.logger(), o.floor
		c.start(1, c.net.listen(name(1)))
		n := c.nodes[1]
		y := offer(t, c, header(o.cluster, 2, 1, 50), o.Snapshot)
		synctest.Wait()
		kept := c.disks[1].durable.Snapshot
		if right {
			if index, _ := applied(n); !y.Installed || kept == nil || index != o.LastIncludedIndex {
				t.Errorf("it is answered %+v, and entries up to %d are applied", y, index)
			}
			return
		}
		if y.Installed || kept != nil || len(c.disks[1].kept) > 0 {
			t.Errorf("it is answered %+v; on the disk is %v", y, kept)
		}
		if o.says == "" {
			if y.Status != Refused || n.blames.counts()[o.refused] == 0 || n.Err() != nil {
				t.Errorf("it is answered %+v, and counted %v; %v", y, n.blames.counts(), n.Err())
			}
			return
		}
		<-n.Done()
		err := n.Err()
		if err == nil || !strings.Contains(err.Error(), "refusing a leader's snapshot") ||
			!strings.Contains(err.Error(), o.says) {
			t.Errorf("it ends with %v", err)
		}
		delete(c.nodes, 1)
		c.restart(1) // with what it had
	})
}

// Parts that do not fit are answered with the place that is next, and nothing of them is kept; the
// right ones make a snapshot of what has come.
func TestPartsOfASnapshotAtWrongPlacesAreNotPutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleCluster(t, 0)
		c.start(1, c.net.listen(name(1)))
		n, s, k := c.nodes[1], snapshotOf(tableOf(3)), c.rawCaller(t, "n2", 1)
		end := uint64(len(s.Data))
		for _, step := range []struct {
			offset, from, to uint64
			done             bool
			status           Status
			next             uint64
		}{
			{7, 7, end, true, OK, 0},             // its beginning is missing
			{0, 0, 20, false, OK, 20},            // the first
			{0, 0, 20, false, OK, 20},            // again
			{19, 19, end, true, OK, 20},          // it overlaps
			{21, 21, end, true, OK, 20},          // it leaves one out
			{1 << 63, 20, end, true, Refused, 0}, // it is beyond what a snapshot may have
			{20, 20, 20, false, Refused, 0},      // it has nothing, and there is more to come
			{20, 20, end, true, OK, 0},           // the last
		} {
			var y InstallSnapshotReply
			err := k.Call("Raft.InstallSnapshot", &InstallSnapshotArgs{
				header(1, 2, 1, 50), raft.InstallSnapshot{
					LastIncludedIndex: s.LastIncludedIndex, LastIncludedTerm: s.LastIncludedTerm,
					Members: s.Members, Offset: step.offset, Data: s.Data[step.from:step.to], Done: step.done,
				},
			}, &y)
			last := step.next == 0 && step.offset == 20 && step.done
			if err != nil || y.Status != step.status || y.Installed != last || !last && y.Offset != step.next {
				t.Errorf("%+v is answered %+v, %v", step, y, err)
			}
		}
		if got := n.blames.counts()[malformed]; got != 2 || n.Err() != nil {
			t.Errorf("%d messages are counted as malformed; %v", got, n.Err())
		}
		if index, _ := applied(n); index != s.LastIncludedIndex {
			t.Errorf("entries up to %d are applied", index)
		}
	})
}

// A part is much smaller than the longest message. One that is larger is not even read, whoever
// sends it; what it was is said, and the server goes on.
func TestAPartOfASnapshotThatIsTooLargeIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := bubbleCluster(t, 0), newLogbook(t)
		c.config.Log = book.logger()
		c.start(1, c.net.listen(name(1)))
		n, k, y := c.nodes[1], c.rawCaller(t, "n2", 1), new(InstallSnapshotReply)
		if status := vote(t, k, header(1, 2, 1, 1)); status != OK {
			t.Fatalf("a small message is answered %d", status)
		}
		err := k.Call("Raft.InstallSnapshot", &InstallSnapshotArgs{
			header(1, 2, 1, 50), raft.InstallSnapshot{
				LastIncludedIndex: 9, LastIncludedTerm: 5, Members: snapshotOf(nil).Members,
				Data: make([]byte, maxMessage),
			},
		}, y)
		synctest.Wait()
		if err == nil || y.Status == OK || book.count("WARN", errTooLong.Error()) != 1 {
			t.Errorf("it is answered %+v, %v; the server says:\n%s", y, err, book)
		}
		if s := coreStatus(n); s.Term >= 50 || n.Err() != nil {
			t.Errorf("the server is at %+v, %v", s, n.Err())
		}
		y = offer(t, c, header(1, 2, 1, 50), snapshotOf(tableOf(3)))
		if !y.Installed {
			t.Errorf("by a new connection a right one is answered %+v", y)
		}
	})
}

// What a server finds on its disk is not believed either.
func TestAServerDoesNotStartFromASnapshotThatIsWrong(t *testing.T) {
	good := tableOf(3)
	for name, bad := range map[string]struct {
		durable raft.Durable
		floor   fsm.Token
		says    string
	}{
		"right":             {raft.Durable{HardState: raft.HardState{Term: 5}, Snapshot: snapshotOf(good)}, 0, ""},
		"of a term to come": {raft.Durable{HardState: raft.HardState{Term: 4}, Snapshot: snapshotOf(good)}, 0, "term 5"},
		"cut off":           {raft.Durable{HardState: raft.HardState{Term: 5}, Snapshot: snapshotOf(good[:40])}, 0, "cut off"},
		"with other tokens": {raft.Durable{HardState: raft.HardState{Term: 5}, Snapshot: snapshotOf(good)}, 4, "floor is 4"},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, "127.0.0.1:0")
			n, err := Start(Config{
				ID: 1, Cluster: 1, TokenFloor: bad.floor, Log: slog.New(slog.DiscardHandler),
				Addrs: map[raft.ServerID]string{1: "127.0.0.1:1", 2: "127.0.0.1:2", 3: "127.0.0.1:3"},
			}, &disk{}, bad.durable, l)
			if err == nil {
				err = n.Stop()
			} else {
				l.Close()
			}
			if (err == nil) != (bad.says == "") || err != nil && !strings.Contains(err.Error(), bad.says) {
				t.Errorf("it says %v", err)
			}
		})
	}
}
