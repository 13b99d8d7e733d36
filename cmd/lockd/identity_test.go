package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ticketing/fsm"
	"ticketing/raft/wal"
)

// initialised returns a directory in which lockd init has written a floor.
func initialised(t *testing.T, floor string, more ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "own")
	p := start(t, append([]string{"init", "-dir", dir, "-token-floor", floor}, more...)...)
	if code := p.end(t); code != 0 || !strings.Contains(p.stdout.String(), "greater than "+floor) {
		t.Fatalf("init exits with %d, prints %q and says %q", code, p.stdout, p.stderr)
	}
	return dir
}

// The cluster takes the place of one whose last token is not known. Its own go on over restarts of
// all, by whoever leads, and nobody has to say the floor again.
func TestTokensContinueAboveTheFloor(t *testing.T) {
	addrs := freeAddrs(t, 3)
	dirs := []string{initialised(t, "1000"), initialised(t, "1000"), initialised(t, "1000")}
	last := uint64(1000)
	for round := range 3 {
		var servers []*program
		for i, dir := range dirs {
			servers = append(servers, serve(t, i+1, peersOf(addrs), dir))
		}
		client := dial(t, addrs...)
		token := lock(t, client, fmt.Sprint("door ", round))
		if token != last+1 {
			t.Errorf("token %d comes after %d", token, last)
		}
		last = token
		var tables []uint64
		eventually(t, "all have the same table", func() bool {
			tables = nil
			for _, addr := range addrs {
				if s := status(client, addr); s.Tokens == 1001+fsm.Token(round) {
					tables = append(tables, s.Hash)
				}
			}
			return len(tables) == 3 && tables[0] == tables[1] && tables[1] == tables[2]
		})
		for _, p := range servers {
			if code := p.stop(t); code != 0 {
				t.Errorf("it exits with %d and says\n%s", code, p.stderr)
			}
			if !strings.Contains(p.stderr.String(), "floor=1000") {
				t.Errorf("it does not say its floor:\n%s", p.stderr)
			}
		}
	}
}

// The page's command, in a directory of the test's own.
func TestTheShownInitGivesTheShownToken(t *testing.T) {
	dir, addrs := filepath.Join(t.TempDir(), "own"), freeAddrs(t, 1)
	line := strings.TrimSpace(shown(t, "A new cluster in place of a lost one")[0])
	args := strings.Fields(strings.ReplaceAll(line, "/var/lib/lockd", dir))
	p := start(t, args[1:]...)
	if code := p.end(t); code != 0 || args[0] != "lockd" {
		t.Fatalf("%s\nexits with %d and says\n%s", line, code, p.stderr)
	}
	serve(t, 1, peersOf(addrs), dir)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	token := lock(t, dial(t, addrs...), "door")
	if !strings.Contains(string(page), fmt.Sprintf("The first token is %d.", token)) {
		t.Errorf("the first token is %d, and the page shows another", token)
	}
}

// Two servers that would give out different tokens, one of them perhaps since its directory was not
// initialised.
func TestServersWithDifferentFloorsRefuseEachOther(t *testing.T) {
	for _, other := range []string{initialised(t, "200"), t.TempDir()} {
		addrs := freeAddrs(t, 2)
		one := serve(t, 1, peersOf(addrs), initialised(t, "100"))
		two := serve(t, 2, peersOf(addrs), other)
		for _, p := range []*program{one, two} {
			p.stderr.await(t, "of another cluster, by name or by token floor")
		}
		client := dial(t, addrs...)
		for _, addr := range addrs {
			if s := status(client, addr); s.Role == "leader" || s.Leader != "" {
				t.Errorf("%s is %s and follows %q", addr, s.Role, s.Leader)
			}
		}
	}
}

// The log refuses as well: its header has the number that is made of name and floor.
func TestALogKeepsItsFloor(t *testing.T) {
	addrs, dir := freeAddrs(t, 1), initialised(t, "7", "-cluster", "a")
	p := serve(t, 1, peersOf(addrs), dir)
	if token := lock(t, dial(t, addrs...), "door"); token != 8 {
		t.Errorf("the first token is %d", token)
	}
	if code := p.stop(t); code != 0 {
		t.Fatalf("it exits with %d", code)
	}
	whole, err := os.ReadFile(identityFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, args, want string }{
		{"its identity is gone", "", "-cluster a", "server 1 of -cluster a with token floor 0: wal"},
		{"it has another floor", string(identity{"a", 8}.text()), "", "a with token floor 8: wal"},
		{"another name is given", string(whole), "-cluster b", "-cluster b, but lockd init has made"},
		{"a digit is wrong", strings.Replace(string(whole), "7", "6", 1), "", "identity is damaged"},
		{"its end is missing", string(whole[:30]), "", "copy the file from another server"},
		{"something is behind it", string(whole) + "x", "", "identity is damaged"},
		{"it is empty", " ", "", "identity is damaged"},
	} {
		err := os.RemoveAll(identityFile(dir))
		if c.text != "" && err == nil {
			err = os.WriteFile(identityFile(dir), []byte(c.text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Fields("-id 1 -peers " + peersOf(addrs) + " -dir " + dir + " " + c.args)
		p := start(t, args...)
		if code := p.end(t); code == 0 || !strings.Contains(p.stderr.String(), c.want) {
			t.Errorf("%s: it exits with %d and says\n%s", c.name, code, p.stderr)
		}
	}
	if err := os.WriteFile(identityFile(dir), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, 1, peersOf(addrs), dir)
	if token := lock(t, dial(t, addrs...), "window"); token != 9 {
		t.Errorf("the next token is %d", token)
	}
}

func TestAFloorIsGivenOnceAndBeforeTheFirstStart(t *testing.T) {
	used, busy, twice := aDirectory(t), initialised(t, "1"), initialised(t, "5")
	addrs := freeAddrs(t, 1)
	serve(t, 1, peersOf(addrs), busy)
	lock(t, dial(t, addrs...), "door")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, want string }{
		{used, "a server has run in"},
		{busy, "a server has run in"},
		{twice, "-cluster ticketing with token floor 5 already"},
		{file, "name a directory"},
		{filepath.Join(used, "no", "no"), "make the directory above it first"},
	} {
		p := start(t, "init", "-dir", c.dir, "-token-floor", "9")
		if code := p.end(t); code != 1 || !strings.Contains(p.stderr.String(), c.want) {
			t.Errorf("in %s it exits with %d and says\n%s", c.dir, code, p.stderr)
		}
	}
	if i, err := readIdentity(twice); err != nil || i.floor != 5 {
		t.Errorf("it is %v now, %v", i, err)
	}
	if _, err := os.Lstat(identityFile(used)); err == nil {
		t.Error("a directory with a log has got an identity")
	}
}

// A server has its log open, and has written nothing yet.
func TestInitDoesNotMeetAServerThatStarts(t *testing.T) {
	dir := t.TempDir()
	log, _, err := wal.Open(dir, wal.Options{Cluster: identity{cluster: "a"}.number(), Server: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := (identity{"a", 7}).found(dir); !errors.Is(err, wal.ErrLocked) {
		t.Errorf("beside a server that starts there, init says %v", err)
	}
}

// Clusters that were there before there were floors keep their number.
func TestWithoutAFloorAClustersNumberIsAsItWas(t *testing.T) {
	numbers := map[uint64]identity{}
	for _, i := range []identity{
		{"ticketing", 0}, {"ticketing", 1}, {"ticketing", 10}, {"ticketing", maxFloor},
		{"ticketing1", 0}, {"ticketing 1", 0}, {"a", 1},
	} {
		if other, ok := numbers[i.number()]; ok {
			t.Errorf("%v and %v have one number", i, other)
		}
		numbers[i.number()] = i
	}
	if n := (identity{cluster: "ticketing"}).number(); n != 2620936139608590939 {
		t.Errorf("it is %d", n)
	}
}
