package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

func TestGarbageOnThePortDoesNoHarm(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	k := c.client(t, "A")
	garbage := []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		strings.Repeat("\x00", 5000),
		"\xf8\x10\x00\x00\x00\x00\x00\x00\x00",      // a length of 2^60
		"\xfc\x3f\xff\xff\xff" + "and so it begins", // one of a gigabyte
		strings.Repeat("\xff\x80 nonsense", 1000),
	}
	for id, addr := range c.addrs {
		for _, g := range garbage {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(conn, g) // it may be closed already
			if tcp := conn.(*net.TCPConn); err == nil && tcp.CloseWrite() == nil {
				_, _ = io.Copy(io.Discard, conn) // until the server closes it
			}
			conn.Close()
		}
		if _, err := k.Status(within(t), addr); err != nil {
			t.Errorf("server %d: %v", id, err)
		}
	}
	lock(t, k, "door", time.Minute)
}

func TestMessagesFromStrangersAreRefused(t *testing.T) {
	c := newCluster(t, "", 1, 2, 3)
	k := c.client(t, "")
	leader := c.leader()
	before, err := k.Status(within(t), c.addrs[leader])
	if err != nil {
		t.Fatal(err)
	}
	client, err := rpc.Dial("tcp", c.addrs[leader])
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	other := leader%3 + 1
	for name, h := range map[string]Header{
		"from a stranger":     {Cluster: 1, From: 9, To: leader, Term: 99},
		"from itself":         {Cluster: 1, From: leader, To: leader, Term: 99},
		"to another server":   {Cluster: 1, From: other, To: 6 - leader - other, Term: 99},
		"of another cluster":  {Cluster: 2, From: other, To: leader, Term: 99},
		"with an unborn term": {Cluster: 1, From: other, To: leader},
	} {
		var y RequestVoteReply
		err := client.Call("Raft.RequestVote", &RequestVoteArgs{h, raft.RequestVote{}}, &y)
		if err != nil || y.Status != Refused {
			t.Errorf("a message %s: %+v, %v", name, y, err)
		}
	}
	after, err := k.Status(within(t), c.addrs[leader])
	if err != nil || after.Term != before.Term {
		t.Errorf("the term went from %d to %d, %v", before.Term, after.Term, err)
	}
}

func TestRequestsThatAreWrongSayWhy(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, _ raft.ServerID) {
		k := c.client(t, "A")
		for name, try := range map[string]struct {
			key   string
			lease time.Duration
		}{
			"no key":             {"", time.Minute},
			"a line break":       {"a\nb", time.Minute},
			"a long key":         {strings.Repeat("x", 256), time.Minute},
			"a short lease":      {"door", c.lease() - time.Millisecond},
			"no lease":           {"door", 0},
			"a lease of a month": {"door", 30 * 24 * time.Hour},
		} {
			if _, err := k.Lock(within(t), try.key, try.lease); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestACloseEndsWhatWaits(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		a, b := c.client(t, "A"), c.client(t, "B")
		held := lock(t, a, "door", time.Minute)
		waits := make(chan error)
		go func() {
			_, err := b.Lock(within(t), "door", time.Minute)
			waits <- err
		}()
		synctest.Wait()
		if k := callers(c.nodes[leader]); k != 1 {
			t.Fatalf("%d wait at the leader", k)
		}
		b.Close()
		if err := <-waits; !errors.Is(err, ErrClosed) {
			t.Errorf("the waiting Lock returned %v", err)
		}
		if _, err := b.Lock(within(t), "other", time.Minute); !errors.Is(err, ErrClosed) {
			t.Errorf("a Lock after Close returned %v", err)
		}
		a.Close()
		<-held.Done()
		if err := held.Err(); !errors.Is(err, ErrClosed) {
			t.Errorf("the held lock ended with %v", err)
		}
	})
}

func TestNoServerIsNoLeader(t *testing.T) {
	noGoroutineStays(t)
	l := listen(t, "127.0.0.1:0")
	l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := Dial(ctx, []string{l.Addr().String()}, Options{})
	if !errors.Is(err, ErrNoLeader) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it returned %v", err)
	}
}

// The reply to one call leaves alone what it does not carry. That is why every call gets its own.
func TestGobLeavesAloneWhatIsZero(t *testing.T) {
	y := AcquireReply{Status: OK, Token: 4}
	a, b := net.Pipe()
	server := rpc.NewServer()
	if err := server.RegisterName("Lock", refuser{}); err != nil {
		t.Fatal(err)
	}
	go server.ServeConn(b)
	client := rpc.NewClient(a)
	defer client.Close()
	if err := client.Call("Lock.Acquire", &AcquireArgs{}, &y); err != nil {
		t.Fatal(err)
	}
	if y.Token != 4 || y.Status != OK {
		t.Errorf("a reused reply holds %+v; then replies could be reused after all", y)
	}
}

type refuser struct{}

func (refuser) Acquire(*AcquireArgs, *AcquireReply) error { return nil }

// A handler that waits hears of its caller's leaving in that moment, not when it writes.
func TestAReadErrorTellsThatTheCallerHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		server := rpc.NewServer()
		if err := server.RegisterName("Lock", sleeper{ctx}); err != nil {
			t.Fatal(err)
		}
		start, served := time.Now(), make(chan time.Duration)
		go func() {
			server.ServeConn(newConn(b, time.Second, cancel))
			served <- time.Since(start)
		}()
		client := rpc.NewClient(a)
		call := client.Go("Lock.Acquire", &AcquireArgs{}, new(AcquireReply), nil)
		time.Sleep(100 * time.Millisecond) // the bubble's time
		client.Close()
		<-call.Done
		if took := <-served; took != 100*time.Millisecond {
			t.Errorf("the handler heard of it after %v", took)
		}
	})
}

type sleeper struct{ ctx context.Context }

func (s sleeper) Acquire(*AcquireArgs, *AcquireReply) error {
	select {
	case <-s.ctx.Done():
	case <-time.After(time.Hour):
	}
	return nil
}

func TestMessagesThatAreTooLongDoNotPass(t *testing.T) {
	long := func(n uint64) string {
		return "\xf8" + string(binary.BigEndian.AppendUint64(nil, n))
	}
	body := strings.Repeat("x", maxMessage)
	for _, c := range []struct {
		name, stream string
		want         bool
	}{
		{"short ones", "\x03abc\x00\x01a", true},
		{"a length of two bytes", "\xff\x80" + body[:128] + "\x01a", true},
		{"the longest", long(maxMessage) + body, true},
		{"one byte more", long(maxMessage + 1), false},
		{"the end of the numbers", long(1<<64 - 1), false},
		{"a length of nine bytes", "\xf7", false},
		{"one behind another", "\x01a" + long(maxMessage+1), false},
		{"the most definitions", strings.Repeat("\x7f\x01"+body[:126], maxDefinitions/127) + "\x01a\x01x", true},
		{"one definition more", strings.Repeat("\x7f\x01"+body[:126], maxDefinitions/127+1), false},
		{"one with a long id", long(maxDefinitions+1) + "\xfe\x01\x01" + body[:100], false},
		{"an id that is longer than its message", "\x02\xf8\x01\x01", false},
	} {
		for _, step := range []int{1, 7, 1 << 21} {
			var f frames
			pass := true
			for s := c.stream; pass && s != ""; s = s[min(step, len(s)):] {
				pass = f.pass([]byte(s[:min(step, len(s))]))
			}
			if pass != c.want {
				t.Errorf("%s, %d bytes at a time: pass is %v", c.name, step, pass)
			}
		}
	}
}

// What this package's own messages define leaves room, and what a stranger defines has a bound: gob
// makes of a megabyte of definitions what takes thirty.
func TestDefinitionsOfTypesAreBounded(t *testing.T) {
	var f frames
	own := gob.NewEncoder(framed{&f})
	for _, v := range []any{
		&rpc.Request{}, &rpc.Response{}, &RequestVoteArgs{}, &RequestVoteReply{}, &AppendEntriesArgs{},
		&AppendEntriesReply{}, &AcquireArgs{}, &AcquireReply{}, &ReleaseArgs{}, &ReleaseReply{},
		&GetArgs{}, &GetReply{}, &ListArgs{}, &ListReply{}, &StatusArgs{}, &StatusReply{},
	} {
		if err := own.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	if f.defined == 0 || f.defined > maxDefinitions/2 {
		t.Errorf("the messages of both directions define types in %d bytes", f.defined)
	}
	c := newCluster(t, "", 1)
	conn, err := net.Dial("tcp", c.addrs[1])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(bigDefinition(t)); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server takes a large definition, and waits for what follows: %v", err)
	}
}

// bigDefinition is the definition of a type that is larger than all that a connection may define.
func bigDefinition(t *testing.T) []byte {
	t.Helper()
	fields := make([]reflect.StructField, 2000)
	for i := range fields {
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[int]()}
	}
	var all bytes.Buffer
	if err := gob.NewEncoder(&all).EncodeValue(reflect.Zero(reflect.StructOf(fields))); err != nil {
		t.Fatal(err)
	}
	if all.Len() < 2*maxDefinitions {
		t.Fatalf("it has %d bytes", all.Len())
	}
	return all.Bytes()[:all.Len()-4] // without the value, a message of a few bytes
}

// framed passes what is written on to frames, as a connection does with what it reads.
type framed struct{ *frames }

func (f framed) Write(b []byte) (int, error) {
	if !f.pass(b) {
		return 0, errTooLong
	}
	return len(b), nil
}

func TestALongestAppendEntriesPasses(t *testing.T) {
	longest := fsm.Envelope{
		Client: 1<<64 - 1, Seq: 1<<64 - 1, Owner: strings.Repeat("o", 255),
		Command: fsm.Command{Kind: fsm.Release, Token: 1<<64 - 1, Key: strings.Repeat("k", 255)},
	}
	if size := len(longest.Append(nil)) + 64; maxBatch*size > maxMessage {
		t.Errorf("%d entries of %d bytes are more than %d", maxBatch, size, maxMessage)
	}
}
