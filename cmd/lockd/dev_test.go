package main

import (
	"net"
	netrpc "net/rpc"
	"os"
	"regexp"
	"strings"
	"testing"

	"ticketing/rpc"
)

func TestDevIsAClusterThatGivesLocks(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := start(t, "-dev", "-election", "100ms", "-heartbeat", "20ms")
	p.stdout.await(t, "Ctrl-C")
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 1 {
		t.Errorf("its directory is %v, %v", left, err)
	}
	text := p.stdout.String()
	servers := regexp.MustCompile(`(?m)^  server (\d)  (\S+)$`).FindAllStringSubmatch(text, -1)
	if len(servers) != 3 {
		t.Fatalf("it prints\n%s", text)
	}
	var addrs []string
	for _, m := range servers {
		addrs = append(addrs, m[2])
	}
	// Somebody else may be at the addresses where lockctl looks by itself.
	paste := "  go run ./cmd/lockctl lock demo -- sh -c 'echo $LOCK_TOKEN'\n"
	if strings.Join(addrs, ",") != "127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003" {
		paste = strings.Replace(paste, "demo", "-addrs "+strings.Join(addrs, ",")+" demo", 1)
	}
	if !strings.Contains(text, paste) {
		t.Errorf("there is no %q to paste in\n%s", paste, text)
	}

	client := dial(t, addrs...)
	says := regexp.MustCompile(`Server (\d) leads`).FindStringSubmatch(text)
	s, err := client.Status(t.Context(), addrs[0])
	if err != nil || says == nil || s.Leader != addrs[int(says[1][0]-'1')] {
		t.Errorf("the leader is at %s, %v; it prints\n%s", s.Leader, err, text)
	}
	if token := lock(t, client, "demo"); token != 1 {
		t.Errorf("the first token is %d", token)
	}
	if code := p.stop(t); code != 0 || p.complaints() != "" {
		t.Errorf("it exits with %d and says\n%s", code, p.stderr)
	}
	for _, addr := range addrs {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("it still listens: %v", err)
			continue
		}
		l.Close()
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v behind, %v", left, err)
	}
}

func TestDevFindsRoomBesideAnother(t *testing.T) {
	for _, addr := range devAddrs() { // those that are not taken are taken now
		if l, err := net.Listen("tcp", addr); err == nil {
			defer l.Close()
		}
	}
	p := start(t, "-dev", "-election", "100ms", "-heartbeat", "20ms")
	p.stdout.await(t, "Ctrl-C")
	m := regexp.MustCompile(`lockctl lock -addrs (\S+) demo`).FindStringSubmatch(p.stdout.String())
	if m == nil {
		t.Fatalf("it prints\n%s", p.stdout)
	}
	lock(t, dial(t, strings.Split(m[1], ",")...), "demo")
}

// A signal may come before there is a leader.
func TestDevStopsBeforeThereIsALeader(t *testing.T) {
	p := start(t, "-dev", "-election", "1m")
	p.stdout.await(t, "server 3")
	if code := p.stop(t); code != 0 || p.complaints() != "" ||
		strings.Contains(p.stdout.String(), "leads") {
		t.Errorf("it exits with %d, prints\n%s\nand says\n%s", code, p.stdout, p.stderr)
	}
}

// Who waits for a lock when its server stops is told so.
func TestAStopTellsThoseWhoWait(t *testing.T) {
	addrs := freeAddrs(t, 1)
	p := serve(t, 1, peersOf(addrs), t.TempDir(), "-http", "127.0.0.1:0")
	lock(t, dial(t, addrs...), "door")
	web := webAddr(t, p)
	client, err := netrpc.Dial("tcp", addrs[0]) // a rpc.Client would look for another server
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	args := &rpc.AcquireArgs{Key: "door", LeaseMS: 60_000}
	var reply rpc.AcquireReply
	call := client.Go("Lock.Acquire", args, &reply, make(chan *netrpc.Call, 1))
	eventually(t, "one waits", func() bool {
		_, text := get(t, web, "/metrics")
		return strings.Contains(text, "\nlockd_waiters 1\n")
	})
	if code := p.stop(t); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	<-call.Done
	if call.Error != nil || reply.Status == rpc.Refused || reply.Status == rpc.OK {
		t.Errorf("it is told %+v, %v", reply, call.Error)
	}
}

// complaints are what a process has said, but for what comes of a machine that is busy with other
// things.
func (p *program) complaints() string {
	var rest []string
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.Contains(line, "a peer does not answer") && !strings.Contains(line, "the disk hangs") {
			rest = append(rest, line)
		}
	}
	return strings.Join(rest, "")
}
