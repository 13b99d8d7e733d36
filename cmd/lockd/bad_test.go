package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Hazard 40.
func TestWrongUsageSaysWhatToDo(t *testing.T) {
	t.Chdir(t.TempDir())
	const peers = " -peers=1=127.0.0.1:1,2=127.0.0.1:2"
	const one = "-id 1 -dir d -peers "
	for _, c := range []struct{ args, want string }{
		{"", "-id, -dir and -peers or -join are needed"},
		{"-id 1 -dir d", "use -join with servers of the cluster, or -peers"},
		{"-id 1 -dir d -peers=", "use -join with servers of the cluster, or -peers"},
		{"-dev -id 1", "leave them out"},
		{"-dev -http 127.0.0.1:0", "-dev is for this machine alone"},
		{"-dev x", `unexpected argument "x"`},
		{"-port 1", "not defined: -port; see lockd -h"},
		{"-id one", `invalid value "one"`},

		{"-id 3 -dir d" + peers, "-id 3 is not among -peers"},
		{one + "x", "not ID=HOST:PORT"},
		{one + "0=a:1", "an ID from 1"},
		{one + "1=a:1,", `"" is not ID=HOST:PORT`},
		{one + "1=a:1,1=b:1", "names server 1 twice"},
		{one + "1=a:1,2=a:1", "the address a:1 to servers 1 and 2"},
		{one + "1=a", "missing port"},
		{one + "1=:7001", "no host that others can connect to"},
		{one + "1=0.0.0.0:7001", "no host that others can connect to"},
		{one + "1=a/b:7001", "not the name of a host"},
		{one + "1=a:0", "not a number from 1 to 65535"},
		{one + "1=a:65536", "not a number from 1 to 65535"},
		{one + "1=a:http", "not a number from 1 to 65535"},

		{"-id 1 -dir d -listen x" + peers, "-listen: address x: missing port"},
		{"-id 1 -dir d -listen 0.0.0.0:0" + peers, "-insecure"},
		{"-id 1 -dir d -listen :0" + peers, "-insecure"},
		{one + "1=192.0.2.1:7001", "can be reached from other machines"},
		{"-id 1 -dir d -http x" + peers, "-http: address x: missing port"},
		{"-trace none/such/file -id 1 -dir d" + peers, "-trace: open none/such/file: no such file"},
		{"-dev -trace none/such/file", "-trace: open none/such/file: no such file"},
		{"-id 1 -dir d -cluster=" + peers, "-cluster needs a name"},

		{"-id 1 -dir d -snapshot-every -1" + peers, `invalid value "-1" for flag -snapshot-every`},
		{"-id 1 -dir d -election 0s" + peers, "-election 0s is not between"},
		{"-id 1 -dir d -election 2m" + peers, "-election 2m0s is not between"},
		{"-id 1 -dir d -heartbeat 0s" + peers, "-heartbeat 0s is less than 1ms"},
		{"-id 1 -dir d -heartbeat 400ms" + peers, "more than a third of -election 1s"},

		{"wal", "lockd wal dump DIR prints it"},
		{"wal eat d", "there is no lockd wal eat"},
		{"wal dump", "which directory?"},
		{"wal dump d e", `unexpected argument "e"`},
		{"wal dump d -x", "not defined: -x"},

		{"init -token-floor 1", "-dir and a -token-floor from 1 to"},
		{"init -dir d", "-dir and a -token-floor from 1 to"},
		{"init -dir d -token-floor 0", "-dir and a -token-floor from 1 to"},
		{"init -dir d -token-floor 9223372036854775808", "from 1 to 9223372036854775807"},
		{"init -dir d -token-floor -1", "invalid value"},
		{"init -dir d -token-floor 1 -cluster=", "-cluster needs a name"},

		{"certs", "-dir is needed"},
		{"certs -dir d -ids 1,x", `"x" is not a new number`},
		{"certs -dir d -ids 1,1", `"1" is not a new number`},
		{"certs -dir d -ids=", `"" is not a new number`},
		{"certs -dir d -days 0", "-days 0 is not between"},
	} {
		p := start(t, strings.Fields(c.args)...)
		if code := p.end(t); code != 2 || !strings.Contains(p.stderr.String(), c.want) ||
			strings.Count(p.stderr.String(), "\n") != 1 {
			t.Errorf("lockd %s exits with %d and says\n%s", c.args, code, p.stderr)
		}
	}
	if _, err := os.Lstat("d"); err == nil {
		t.Error("one of them has made its directory")
	}
}

func TestHelpFitsAScreen(t *testing.T) {
	for line, want := range map[string]string{
		"-h": "-heartbeat", "certs -h": "-hosts", "init -h": "-token-floor", "wal -h": "wal dump", "wal dump -h": "wal dump",
	} {
		p := start(t, strings.Fields(line)...)
		if code := p.end(t); code != 0 || !strings.Contains(p.stdout.String(), want) ||
			p.stderr.String() != "" {
			t.Errorf("lockd %s exits with %d, prints\n%s\nand says %s", line, code, p.stdout, p.stderr)
		}
		lines := strings.Split(p.stdout.String(), "\n")
		if len(lines) > 25 {
			t.Errorf("lockd %s prints %d lines", line, len(lines))
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l) > 80 {
				t.Errorf("lockd %s prints a line that is too long: %s", line, l)
			}
		}
	}
}

func TestTheLogOfARunningServerCanBeRead(t *testing.T) {
	addrs, dir := freeAddrs(t, 1), t.TempDir()
	serve(t, 1, peersOf(addrs), dir)
	client := dial(t, addrs...)
	lock(t, client, "front door")
	p := start(t, "wal", "dump", dir)
	if code := p.end(t); code != 0 || p.stderr.String() != "" ||
		!strings.Contains(p.stdout.String(), "grant 60000 front door\n") {
		t.Errorf("it exits with %d, prints\n%s\nand says %s", code, p.stdout, p.stderr)
	}
	if token := lock(t, client, "back door"); token != 2 {
		t.Errorf("the next token is %d", token)
	}
}

// What is wrong with the machine, not with the command line, is said with what to do.
func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addrs := freeAddrs(t, 2)
	peers, used, busy := peersOf(addrs), aDirectory(t), aDirectory(t)
	foreign, damaged, file := t.TempDir(), aDirectory(t), filepath.Join(t.TempDir(), "file")
	const segment = "00000000000000000001.wal"
	for path, text := range map[string]string{
		filepath.Join(foreign, segment): "Dear diary, today I was not a log.",
		file:                            "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flip(t, filepath.Join(damaged, segment), 150)
	holder := freeAddrs(t, 1)
	serve(t, 1, peersOf(holder), busy, "-cluster", "a")

	for _, c := range []struct{ name, args, want, advice string }{
		{"a port in use", "-id 1 -dir " + used + " -listen " + taken.Addr().String(),
			"cannot listen at " + taken.Addr().String(), "choose another address"},
		{"a metrics port in use", "-id 1 -dir " + used + " -http " + taken.Addr().String(),
			"at -http " + taken.Addr().String(), "choose another address"},
		{"no such address", "-id 1 -insecure -dir " + used + " -listen 192.0.2.1:7001",
			"cannot listen at 192.0.2.1:7001", "choose another address"},
		{"a directory in use", "-id 1 -dir " + busy, "in use", "stop the other server first"},
		{"another server's directory", "-id 2 -dir " + used,
			"belongs to server 1", "this server's own directory"},
		{"another cluster's directory", "-id 1 -cluster b -dir " + used,
			"server 1 of -cluster b", "this server's own directory"},
		{"a foreign file", "-id 1 -dir " + foreign, "this is no file of a log", "move it away"},
		{"a damaged file", "-id 1 -dir " + damaged, segment + ", offset", "a new id"},
		{"a file in place of a directory", "-id 1 -dir " + file, "is a file", "name a directory"},
		{"no directory to make it in", "-id 1 -dir " + filepath.Join(used, "no", "no"),
			"no such file", "make the directory above it first"},
		{"no directory to dump", "wal dump " + filepath.Join(used, "no"), "no such file", ""},
	} {
		args := strings.Fields(c.args)
		if args[0] == "-id" {
			args = append([]string{"-cluster", "a", "-peers", peers}, args...)
		}
		p := start(t, args...)
		said := ""
		if code := p.end(t); code == 1 {
			said = p.stderr.String()
		}
		if !strings.Contains(said, c.want) || !strings.Contains(said, c.advice) {
			t.Errorf("%s: lockd %s says\n%s", c.name, strings.Join(args, " "), p.stderr)
		}
		for _, addr := range addrs { // what it had opened is closed again
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			l.Close()
		}
	}
}

// aDirectory returns that of a server which has granted a lock. It was alone: it elects itself.
func aDirectory(t *testing.T) string {
	t.Helper()
	dir, addrs := t.TempDir(), freeAddrs(t, 1)
	p := serve(t, 1, peersOf(addrs), dir, "-cluster", "a")
	lock(t, dial(t, addrs...), "door")
	if code := p.stop(t); code != 0 {
		t.Fatalf("it exits with %d:\n%s", code, p.stderr)
	}
	return dir
}

// flip changes a byte of a file.
func flip(t *testing.T, path string, at int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestASecondServerWithTheSameNumberIsRefused(t *testing.T) {
	addrs, elsewhere := freeAddrs(t, 3), freeAddrs(t, 1)[0]
	for id := 1; id <= 3; id++ {
		serve(t, id, peersOf(addrs), t.TempDir())
	}
	args := []string{"-id", "3", "-peers", peersOf(addrs), "-dir", t.TempDir(), "-listen", elsewhere}
	p := start(t, args...)
	want := "server 3 runs already, at " + addrs[2]
	if code := p.end(t); code != 1 || !strings.Contains(p.stderr.String(), want) {
		t.Errorf("it exits with %d and says\n%s", code, p.stderr)
	}
	wrong := fmt.Sprintf("1=%s,2=%s,3=%s", addrs[0], elsewhere, addrs[1])
	p = start(t, "-id", "3", "-peers", wrong, "-dir", t.TempDir(), "-listen", addrs[2])
	want = "which -peers gives to server 3, server 2 answers"
	if code := p.end(t); code != 1 || !strings.Contains(p.stderr.String(), want) {
		t.Errorf("it exits with %d and says\n%s", code, p.stderr)
	}
}

// The second one names an address of its own for itself, so it has no way of knowing. The others
// have, and the locks come to no harm.
func TestTwoServersWithOneNumberAreNoticedByTheOthers(t *testing.T) {
	addrs := freeAddrs(t, 4)
	one := serve(t, 1, peersOf(addrs[:3]), t.TempDir())
	two := serve(t, 2, peersOf(addrs[:3]), t.TempDir())
	serve(t, 3, peersOf(addrs[:3]), t.TempDir())
	client := dial(t, addrs[:3]...)
	first := lock(t, client, "a")
	other := fmt.Sprintf("1=%s,2=%s,3=%s", addrs[0], addrs[1], addrs[3])
	twin := serve(t, 3, other, t.TempDir())
	// It is the leader who notices, whichever of the others that is; or both do, if a twin leads.
	awaitEither(t, `reason="two places" peer=3`, one.stderr, two.stderr)
	twin.stderr.await(t, "the log is empty: only a new server may start so")
	lockAfter(t, client, first)
}

// awaitEither waits until one of two programs has written something.
func awaitEither(t *testing.T, text string, a, b *output) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if strings.Contains(a.String(), text) || strings.Contains(b.String(), text) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("nobody has written %q but\n%s\nand\n%s", text, a, b)
		}
	}
}

// Its own command line is right, and so is theirs; only together they are not.
func TestAServerThatTheOthersDoNotKnowIsRefused(t *testing.T) {
	addrs := freeAddrs(t, 3)
	known := serve(t, 1, peersOf(addrs[:2]), t.TempDir())
	serve(t, 3, peersOf(addrs), t.TempDir())
	known.stderr.await(t, "server 3 is not one of those that this server was started with")
	if !strings.Contains(known.stderr.String(), `msg="refused a message`) {
		t.Errorf("it is logged as something else:\n%s", known.stderr)
	}
}

func TestNumbersOfServersThatMayNotBeMeantAreLogged(t *testing.T) {
	for n, want := range map[int]string{
		1: "one server: while it is down",
		2: "an even number of servers", 4: "servers=4 survives=1",
		3: "", 9: "",
	} {
		p := serve(t, 1, peersOf(freeAddrs(t, n)), t.TempDir())
		if code := p.stop(t); code != 0 {
			t.Errorf("%d servers: it exits with %d", n, code)
		}
		said := p.stderr.String()
		advised := strings.Contains(said, "one server") || strings.Contains(said, "even number")
		if !strings.Contains(said, want) || advised != (want != "") {
			t.Errorf("%d servers: it says\n%s", n, said)
		}
	}
}
