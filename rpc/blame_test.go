package rpc

import (
	"fmt"
	"io"
	"net/rpc"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/raft"
)

// vote asks a server for its vote, by one connection that stays open.
func vote(t *testing.T, k *rpc.Client, h Header) Status {
	t.Helper()
	var y RequestVoteReply
	if err := k.Call("Raft.RequestVote", &RequestVoteArgs{Header: h}, &y); err != nil {
		t.Fatal(err)
	}
	return y.Status
}

func header(cluster uint64, from, to raft.ServerID, term raft.Term) Header {
	return Header{Cluster: cluster, From: from, To: to, Term: term}
}

// What no correct peer sends is refused and counted each time, and logged once in a while. B29: what
// comes next by the same connection is served.
func TestEachFaultIsLoggedOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := loggedCluster(t)
		leader := c.leader()
		other := leader%3 + 1
		n, k := c.nodes[leader], c.rawCaller(t, "x", leader)
		term := termOf(n)
		for f, message := range map[fault]Header{
			unknownPeer:    header(1, 9, leader, 99),
			ownID:          header(1, leader, leader, 99),
			anotherCluster: header(2, other, leader, 99),
			anotherAddress: header(1, other, 6-leader-other, 99),
			malformed:      header(1, other, leader, 0),
		} {
			line := []string{
				"WARN refused a message", fmt.Sprint("node=", leader), "addr=x:1", "reason=" + f.String(),
			}
			for i := 1; i <= 100; i++ {
				if status := vote(t, k, message); status != Refused {
					t.Errorf("%s: the answer is %d", f, status)
				}
				if lines, counted := book.count(line...), n.blames.counts()[f]; lines != 1 ||
					counted != uint64(i) {
					t.Errorf("%s: after %d messages there are %d lines, %d counted", f, i, lines, counted)
				}
			}
			time.Sleep(blamePause)
			vote(t, k, message)
			if lines := book.count(line...); lines != 2 {
				t.Errorf("%s: later there are %d lines", f, lines)
			}
		}
		if after := termOf(n); after != term {
			t.Errorf("the term went from %d to %d", term, after)
		}
		if y := answered(t, acquire(k, 0, 1, "door", time.Minute)); y.Status != OK {
			t.Errorf("a proper request by the same connection is answered %+v", y)
		}
	})
}

func TestAConnectionWithoutARequestSaysWhatCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := bubbleCluster(t, 0), newLogbook(t)
		c.config.Log = book.logger()
		c.start(1, c.net.listen(name(1)))
		for _, g := range []struct{ sent, says string }{
			{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "it speaks HTTP"},
			{"\x16\x03\x01\x02\x00\x01\x00", "it speaks TLS"},
			{"\xf8\x10\x00\x00\x00\x00\x00\x00\x00", "is no request"}, // a length of 2^60
			{"\x05nonsense", "is no request"},
			{"", ""},
		} {
			lines := book.count("refused a connection")
			raw, err := c.net.dialer("x")(within(t), c.addrs[1])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(raw, g.sent); err != nil {
				t.Fatal(err)
			}
			raw.Close()
			synctest.Wait()
			want := 1
			if g.says == "" {
				want = 0
			}
			if got := book.count("refused a connection") - lines; got != want ||
				want > 0 && book.count("refused a connection", "addr=x:1", g.says) == 0 {
				t.Errorf("%q: %d lines:\n%s", g.sent, got, book)
			}
			time.Sleep(blamePause)
		}
		// After a request, too: it is no slip of the other side's.
		raw, err := c.net.dialer("x")(within(t), c.addrs[1])
		if err != nil {
			t.Fatal(err)
		}
		k := rpc.NewClient(raw)
		defer k.Close()
		if err := k.Call("Lock.Status", &StatusArgs{}, new(StatusReply)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(raw, "\xf8\x10\x00\x00\x00\x00\x00\x00\x00"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if book.count("refused a connection", errTooLong.Error()) != 1 {
			t.Errorf("no line says that a message was too long:\n%s", book)
		}
	})
}

// Two servers with one id take turns at a peer. One that only connects again does not.
func TestTwoServersWithOneIDAreFoundOut(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		n, other := c.nodes[leader], leader%3+1
		h := header(1, other, leader, 1) // of the current term, and refused politely
		if term := termOf(n); term != 1 {
			t.Fatalf("the term is %d", term)
		}
		for range 10 { // a new connection each time
			k := c.rawCaller(t, "x", leader)
			if status := vote(t, k, h); status != OK {
				t.Fatalf("the answer is %d", status)
			}
		}
		if k := n.blames.counts()[twoPlaces]; k > 0 {
			t.Errorf("one that connects anew is taken for two servers, %d times", k)
		}
		a, b := c.rawCaller(t, "x", leader), c.rawCaller(t, "y", leader)
		for range maxReturns {
			vote(t, a, h)
			vote(t, b, h)
		}
		if k := n.blames.counts()[twoPlaces]; k == 0 {
			t.Error("two servers with one id are not found out")
		}
	})
}

// A server in another one's place: two have each other's addresses mixed up.
func TestAnAnswerOfAnotherServerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := bubbleCluster(t, 0), newLogbook(t)
		c.config.Log = book.logger()
		server := rpc.NewServer()
		if err := server.RegisterName("Raft", liar{}); err != nil {
			t.Fatal(err)
		}
		l := c.net.listen(name(3))
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go server.ServeConn(conn)
			}
		}()
		c.start(1, c.net.listen(name(1)))
		c.start(2, c.net.listen(name(2)))
		defer l.Close()
		c.leader()
		time.Sleep(longest)
		if book.count("refused a message", "reason=wrong answer", "addr=n3:1") == 0 {
			t.Errorf("no line says that another server answers:\n%s", book)
		}
		k, err := Dial(within(t), []string{c.addrs[1], c.addrs[2]}, Options{Dial: c.net.dialer("A")})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		lock(t, k, "door", time.Minute)
	})
}

// liar answers as another server than the one that was asked.
type liar struct{}

func (liar) RequestVote(a *RequestVoteArgs, y *RequestVoteReply) error {
	*y = RequestVoteReply{OK, header(1, a.From%2+1, a.From, a.Term), raft.RequestVoteReply{}}
	return nil
}

func (liar) AppendEntries(a *AppendEntriesArgs, y *AppendEntriesReply) error {
	*y = AppendEntriesReply{OK, header(1, a.From%2+1, a.From, a.Term), raft.AppendEntriesReply{}}
	return nil
}

// A cluster goes through what clusters go through. The book refuses an attribute that the package
// comment does not list.
func TestLogsHaveTheAttributesThatAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book := loggedCluster(t)
		first := c.leader()
		k := c.client(t, "A")
		lock(t, k, "door", time.Minute)
		c.disks[first].hang()
		c.rawCaller(t, "A", first).Go("Lock.Acquire",
			&AcquireArgs{Key: "gate", LeaseMS: 60_000}, new(AcquireReply), nil)
		time.Sleep(4 * longest)
		second := c.leader()
		c.expects[first] = io.ErrShortWrite
		c.disks[first].set(func(d *disk) { d.fail = io.ErrShortWrite })
		c.disks[first].resume()
		<-c.nodes[first].Done()
		c.stop(first)
		c.expects[first] = nil
		c.restart(first)
		c.net.set(func(w *wire) { w.cut = true }, both(name(second), others(second)...)...)
		time.Sleep(4 * longest)
		c.net.set(func(w *wire) { w.cut = false }, both(name(second), others(second)...)...)
		c.leader()
		vote(t, c.rawCaller(t, "x", second), header(2, 9, 9, 9))
		lock(t, k, "hall", time.Minute)
		for _, said := range [][]string{
			{"INFO status", "role=leader", "term=", "leader="}, {"WARN refused a message", "reason="},
			{"WARN the disk hangs"}, {"ERROR stopped", "err="},
			{"WARN a peer does not answer", "peer=", "addr="}, {"INFO a peer answers again", "peer="},
		} {
			if book.count(said...) == 0 {
				t.Errorf("nothing like %q was logged", said)
			}
		}
	})
}
