package rpc

import (
	"bytes"
	"fmt"
	"math"
	"net/rpc"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ticketing/fsm"
	"ticketing/raft"
)

// scrape reads a node's metrics as strictly as the format is written down: a family's HELP, its
// TYPE, its samples, and no family and no sample twice.
func scrape(t *testing.T, n *Node) map[string]float64 {
	t.Helper()
	var b bytes.Buffer
	if err := n.WriteMetrics(within(t), &b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if !strings.HasSuffix(text, "\n") {
		t.Fatalf("the last line does not end: %q", text)
	}
	return exposed(t, text)
}

var (
	helpLine = regexp.MustCompile(`^# HELP ([a-z_]+) (\S.*)$`)
	typeLine = regexp.MustCompile(`^# TYPE ([a-z_]+) (counter|gauge|histogram)$`)
	sample   = regexp.MustCompile(
		`^([a-z_]+)(\{[a-z]+="[A-Za-z0-9 .+-]*"(?:,[a-z]+="[A-Za-z0-9 .+-]*")*\})? (\S+)$`)
)

func exposed(t *testing.T, text string) map[string]float64 {
	t.Helper()
	all, families := map[string]float64{}, map[string]bool{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for len(lines) > 0 {
		help := helpLine.FindStringSubmatch(lines[0])
		if help == nil || len(lines) < 3 {
			t.Fatalf("%q should be a HELP, with a TYPE and a sample behind", lines[0])
		}
		kind := typeLine.FindStringSubmatch(lines[1])
		if kind == nil || kind[1] != help[1] || families[help[1]] {
			t.Fatalf("%q should be the TYPE of the new family %q", lines[1], help[1])
		}
		families[help[1]] = true
		if strings.HasSuffix(help[1], "_total") != (kind[2] == "counter") {
			t.Errorf("%s is a %s", help[1], kind[2])
		}
		lines = lines[2:]
		before, most := -1.0, -1.0
		for len(lines) > 0 && !strings.HasPrefix(lines[0], "#") {
			m := sample.FindStringSubmatch(lines[0])
			if m == nil {
				t.Fatalf("%q is no sample", lines[0])
			}
			name := m[1] + m[2]
			value, err := strconv.ParseFloat(m[3], 64)
			if _, twice := all[name]; twice || err != nil || value < 0 {
				t.Fatalf("the sample %q comes twice, or its value is none", lines[0])
			}
			all[name] = value
			switch suffix := strings.TrimPrefix(m[1], help[1]); {
			case suffix == "_bucket" && kind[2] == "histogram":
				le, err := strconv.ParseFloat(strings.Trim(m[2], `{le="}`), 64)
				if err != nil || le <= before || value < most {
					t.Errorf("the bucket %q does not follow on %v with %v", lines[0], before, most)
				}
				before, most = le, value
			case suffix == "_count" && kind[2] == "histogram":
				if value != most || !strings.Contains(text, help[1]+`_bucket{le="+Inf"} `) {
					t.Errorf("%q is not what the last bucket holds, %v", lines[0], most)
				}
			case suffix == "_sum" && kind[2] == "histogram", suffix == "" && kind[2] != "histogram":
			default:
				t.Errorf("the sample %q does not belong to the %s %s", lines[0], kind[2], help[1])
			}
			lines = lines[1:]
		}
	}
	if len(families) < 20 {
		t.Errorf("there are %d families", len(families))
	}
	return all
}

// moved tells what changes in a node's metrics while something is done.
func moved(t *testing.T, n *Node, what func()) map[string]float64 {
	t.Helper()
	before := scrape(t, n)
	what()
	changes := map[string]float64{}
	for name, value := range scrape(t, n) {
		if change := value - before[name]; change != 0 {
			changes[strings.TrimPrefix(name, "lockd_")] = change
		}
	}
	return changes
}

// want checks some of the changes. One of 0 must not be there.
func want(t *testing.T, what string, changes map[string]float64, some map[string]float64) {
	t.Helper()
	for name, change := range some {
		if math.Abs(changes[name]-change) > 1e-9 { // seconds have no exact form
			t.Errorf("%s: %s changes by %v, want %v", what, name, changes[name], change)
		}
	}
}

func TestMetricsMoveWithWhatTheyCount(t *testing.T) {
	const sync = 3 * time.Millisecond
	inBubble(t, sync, func(t *testing.T, c *cluster, leader raft.ServerID) {
		n, follower := c.nodes[leader], c.nodes[leader%3+1]
		k := c.rawCaller(t, "A", leader)
		client := opened(t, k)
		time.Sleep(2 * heartbeat)
		call := func(q fsm.Request) {
			args := &ReleaseArgs{Client: q.Client, Seq: q.Seq, Key: q.Key, Token: q.Token}
			if err := k.Call("Lock.Release", args, new(ReleaseReply)); err != nil {
				t.Fatal(err)
			}
		}
		want(t, "at first", moved(t, n, func() {}), map[string]float64{"term": 0, "writes_total": 0})
		s := scrape(t, n)
		if s["lockd_is_leader"] != 1 || s["lockd_elections_total"] != 1 || s["lockd_term"] != 1 ||
			scrape(t, follower)["lockd_is_leader"] != 0 {
			t.Errorf("the leader's metrics are %v", s)
		}
		settle := func() { time.Sleep(2 * heartbeat) }
		want(t, "a Grant", moved(t, n, func() {
			answered(t, acquire(k, client, 1, "door", time.Minute))
			settle()
		}), map[string]float64{
			`grants_total{result="granted"}`: 1, `grants_total{result="rejected"}`: 0,
			"tokens_issued_total": 1, "locks_held": 1, "waiters": 0, "commit_index": 1,
			"applied_index": 1, "last_index": 1, "writes_total": 1, "entries_written_total": 1,
			"write_seconds_count": 1, "write_seconds_sum": sync.Seconds(),
			`write_seconds_bucket{le="0.002"}`: 0, `write_seconds_bucket{le="0.004"}`: 1,
			"acquire_seconds_count": 1, `acquire_seconds_bucket{le="0.002"}`: 0,
			`acquire_seconds_bucket{le="0.004"}`: 1,
		})
		want(t, "a Grant at a follower", moved(t, follower, func() {
			answered(t, acquire(k, client, 2, "hall", time.Minute))
			settle()
		}), map[string]float64{
			`grants_total{result="granted"}`: 1, "locks_held": 1, "writes_total": 1,
			"acquire_seconds_count": 0,
		})
		want(t, "a Release", moved(t, n, func() {
			call(fsm.Request{Client: client, Seq: 3, Key: "door", Token: 1})
		}), map[string]float64{
			`releases_total{result="released",cause="client"}`: 1, "locks_held": -1,
			"tokens_issued_total": 0, `releases_total{result="notfound",cause="client"}`: 0,
		})
		want(t, "a Release of nothing", moved(t, n, func() {
			call(fsm.Request{Client: client, Seq: 4, Key: "door", Token: 1})
		}), map[string]float64{`releases_total{result="notfound",cause="client"}`: 1})
		want(t, "one without a client", moved(t, n, func() {
			call(fsm.Request{Key: "door", Token: 1})
		}), map[string]float64{`releases_total{result="notfound",cause="cleanup"}`: 1})
		want(t, "a connection", moved(t, n, func() {
			c.rawCaller(t, "B", leader)
			synctest.Wait()
		}), map[string]float64{"connections": 1})

		waiter := c.rawCaller(t, "W", leader)
		want(t, "a waiter", moved(t, n, func() {
			acquire(waiter, 0, 1, "hall", time.Minute)
			synctest.Wait()
		}), map[string]float64{"waiters": 1, "requests_waiting": 1, "client_lost_total": 0})
		want(t, "a waiter that leaves", moved(t, n, func() {
			waiter.Close()
			synctest.Wait()
		}), map[string]float64{
			"waiters": -1, "requests_waiting": -1, "client_lost_total": 1, "connections": -1,
		})
		want(t, "a refused message", moved(t, n, func() {
			vote(t, k, header(2, 1, leader, 1))
		}), map[string]float64{`refused_messages_total{reason="another cluster"}`: 1})
		want(t, "a refused connection", moved(t, n, func() {
			raw, err := c.net.dialer("x")(within(t), c.addrs[leader])
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(raw, "GET / HTTP/1.1\r\n\r\n")
			raw.Close()
			synctest.Wait()
		}), map[string]float64{`refused_connections_total{reason="not a request"}`: 1})
		want(t, "a disk that is busy", moved(t, n, func() {
			c.disks[leader].hang()
			answered(t, acquire(k, 0, 5, "roof", time.Minute))
		}), map[string]float64{"writes_unfinished": 1, "writes_total": 0})
		c.disks[leader].resume()
		settle()
		want(t, "another leader", moved(t, follower, func() {
			c.stop(leader)
			for c.leader() != follower.config.ID {
				id := c.leader()
				c.stop(id)
				c.restart(id)
			}
		}), map[string]float64{"is_leader": 1})
		if scrape(t, follower)["lockd_elections_total"] == 0 {
			t.Error("the new leader has counted no election")
		}
	})
}

// A client leaves when its Grant is in the log and not yet committed.
func TestACleanUpIsCounted(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		n, k := c.nodes[leader], c.rawCaller(t, "W", leader)
		want(t, "a clean-up", moved(t, n, func() {
			c.slowly(leader, func() {
				acquire(k, 0, 1, "door", time.Minute)
				synctest.Wait()
				k.Close()
				synctest.Wait()
			})
		}), map[string]float64{
			`grants_total{result="granted"}`: 1, "client_lost_total": 1, "locks_held": 0,
			`releases_total{result="released",cause="cleanup"}`: 1, "acquire_seconds_count": 0,
		})
	})
}

// slowly does something while nothing that the leader sends arrives, for less time than it takes to
// elect another one, and waits until all is settled.
func (c *cluster) slowly(leader raft.ServerID, what func()) {
	var out [][2]string
	for _, o := range others(leader) {
		out = append(out, [2]string{name(leader), o})
	}
	c.net.set(func(w *wire) { w.held = true }, out...)
	what()
	c.net.set(func(w *wire) { w.held = false }, out...)
	time.Sleep(2 * heartbeat)
}

// An Expire that comes late finds the key free, or held by someone newer: that is the guard at work.
func TestExpiresAreCountedByWhatTheyFind(t *testing.T) {
	for found, waiters := range map[string]int{"free": 0, "newer": 1} {
		t.Run(found, func(t *testing.T) {
			inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
				n, follower := c.nodes[leader], c.nodes[leader%3+1]
				k, lease := c.rawCaller(t, "A", leader), c.lease()
				client := opened(t, k)
				time.Sleep(2 * heartbeat)
				changes := moved(t, follower, func() {
					want(t, "a lease that ends", moved(t, n, func() {
						answered(t, acquire(k, client, 1, "door", lease))
						time.Sleep(lease + 2*heartbeat)
					}), map[string]float64{
						"expires_proposed_total": 1, `expires_applied_total{existed="true",found="same"}`: 1,
						"locks_held": 0,
					})
				})
				want(t, "at a follower", changes, map[string]float64{
					"expires_proposed_total": 0, `expires_applied_total{existed="true",found="same"}`: 1,
				})

				held := answered(t, acquire(k, client, 2, "door", lease))
				var waits *rpc.Call
				for i := range waiters {
					waits = acquire(k, 0, uint64(i), "door", time.Minute)
				}
				time.Sleep(lease - heartbeat)
				want(t, "a late Expire", moved(t, n, func() {
					c.slowly(leader, func() {
						args := &ReleaseArgs{Client: client, Seq: 3, Key: "door", Token: held.Token}
						k.Go("Lock.Release", args, new(ReleaseReply), nil)
						time.Sleep(2 * heartbeat)
					})
				}), map[string]float64{
					"expires_proposed_total":                               1,
					`expires_applied_total{existed="true",found="same"}`:   0,
					`expires_applied_total{existed="false",found="free"}`:  float64(1 - waiters),
					`expires_applied_total{existed="false",found="newer"}`: float64(waiters),
					`releases_total{result="released",cause="client"}`:     1,
					`grants_total{result="granted"}`:                       float64(waiters),
					"locks_held":                                           float64(waiters - 1),
				})
				if waits != nil {
					if y := answered(t, waits); y.Status != OK {
						t.Errorf("the new holder's answer: %+v", y)
					}
				}
			})
		})
	}
}

func TestRejectedGrantsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleCluster(t, 0)
		c.config.Rules.NoGate = true // without it nobody proposes a Grant that is rejected
		for id := range c.addrs {
			c.start(id, c.net.listen(name(id)))
		}
		leader := c.leader()
		k := c.rawCaller(t, "A", leader)
		answered(t, acquire(k, 0, 1, "door", time.Minute))
		want(t, "a Grant of what is held", moved(t, c.nodes[leader], func() {
			acquire(k, 0, 1, "door", time.Minute)
			time.Sleep(2 * heartbeat)
		}), map[string]float64{
			`grants_total{result="rejected"}`: 1, `grants_total{result="granted"}`: 0, "waiters": 1,
		})
	})
}

func TestHealthySaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbleCluster(t, 0)
		c.start(1, c.net.listen(name(1)))
		if err := c.nodes[1].Healthy(within(t)); err == nil || !strings.Contains(err.Error(), "no leader") {
			t.Errorf("alone: %v", err)
		}
		c.start(2, c.net.listen(name(2)))
		c.leader()
		for id, n := range c.nodes {
			if err := n.Healthy(within(t)); err != nil {
				t.Errorf("server %d: %v", id, err)
			}
		}
		n := c.nodes[1]
		c.stop(1)
		if err := n.Healthy(within(t)); err == nil || !strings.Contains(err.Error(), "ended") {
			t.Errorf("after its end: %v", err)
		}
		if err := n.WriteMetrics(within(t), new(bytes.Buffer)); err == nil {
			t.Error("it tells metrics after its end")
		}
	})
}

// Each server tells what is left of leases by its own count.
func TestStatusTellsWhatIsLeftOfLeases(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, c *cluster, leader raft.ServerID) {
		k, lease := c.rawCaller(t, "A", leader), c.lease()
		first := answered(t, acquire(k, 0, 1, "door", 2*lease))
		time.Sleep(lease / 2)
		second := answered(t, acquire(k, 0, 2, "gate", lease))
		time.Sleep(lease / 4)
		status := func(id raft.ServerID) (y StatusReply) {
			if err := c.rawCaller(t, "B", id).Call("Lock.Status", &StatusArgs{}, &y); err != nil {
				t.Fatal(err)
			}
			return y
		}
		for id := range c.addrs {
			y := status(id)
			want := []LeaseLeft{
				{"gate", second.Token, (lease * 3 / 4).Milliseconds()},
				{"door", first.Token, (lease * 5 / 4).Milliseconds()},
			}
			late := int64(0) // a follower applies it with the next message
			if id != leader {
				late = heartbeat.Milliseconds()
			}
			if len(y.Leases) != 2 || y.MoreLeases {
				t.Fatalf("server %d: %+v", id, y)
			}
			for i, l := range y.Leases {
				over := l.Left - want[i].Left
				if l.Key != want[i].Key || l.Token != want[i].Token || over < 0 || over > late {
					t.Errorf("server %d: %+v, want %+v", id, l, want[i])
				}
			}
		}
		for i := range maxListed - 1 {
			answered(t, acquire(k, 0, uint64(i+3), fmt.Sprint("key ", i), time.Hour))
		}
		if y := status(leader); len(y.Leases) != maxListed || !y.MoreLeases || y.Leases[0].Key != "gate" {
			t.Errorf("%d leases, more: %v, the first is %+v", len(y.Leases), y.MoreLeases, y.Leases[0])
		}
	})
}
