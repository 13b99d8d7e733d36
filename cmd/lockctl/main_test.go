package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"ticketing/rpc"
)

// Hazard 16, terraform#19296.
func TestSubcommandsInTurn(t *testing.T) {
	service(t, 1)
	k := client(t)
	if _, stdout, _ := lockctl(t, "list"); stdout != "no locks\n" {
		t.Errorf("with no locks, list prints %q", stdout)
	}
	take(t, k, "door") // token 1
	const door = `"key":"door","token":"1","owner":"me","lease_ms":60000`
	const ahead = "the lock is not held, or not any more: no such token has been given out yet; lockctl get door"
	for _, c := range []struct {
		line           string
		code           int
		stdout, stderr string
	}{
		{"acquire -try door", 75, "", `the lock is held: "door", with token 1, owner "me"`},
		{"acquire -try door -conflict-code 3", 3, "", "the lock is held"},
		{"acquire door -wait 50ms", 75, "", `"door" was not acquired within 50ms`},
		{"lock door -try -- false", 75, "", "the lock is held"},
		{"lock -try -conflict-code 0 door -- false", 0, "", "the lock is held"},
		{"get door", 0, "KEY   TOKEN  LEASE  OWNER\ndoor  1      1m0s   me\n", ""},
		{"get door -json", 0, `{"held":true,` + door + "}\n", ""},
		{"get -json gate", 1, `{"held":false,"key":"gate"}` + "\n", ""},
		{"list", 0, "KEY   TOKEN  LEASE  OWNER\ndoor  1      1m0s   me\n", ""},
		{"list -json", 0, `{"locks":[{` + door + `}]}` + "\n", ""},
		{"release door -token 2", 1, "", `"door" with token 2: ` + ahead},
		{"extend door -token 2", 1, "", `"door" with token 2: ` + ahead},
		{"extend door -token 1 -lease 1ns", 2, "", "at least 400ms"},
		{"extend door -token 1 -lease 25h", 2, "", "out of range"},
		{"extend -lease 30000000001ns door -token 1", 0, "30.001s\n", ""},
		{"extend door -token 1 -lease 1m -json", 0, `{"key":"door","token":"1","lease_ms":60000}` + "\n", ""},
		{"get door -json", 0, `{"held":true,` + door + "}\n", ""},
		{"release door -token 1 -json", 0, `{"key":"door","token":"1"}` + "\n", ""},
		{"release door -token 1", 1, "", `"door" is not held with token 1`},
		{"extend door -token 1", 1, "", `"door" is not held with token 1`},
		{"get door", 1, "not held\n", ""},
		{"release -force door", 1, "", `"door" is not held`},
		{"acquire door -lease 10ms", 2, "", "at least 400ms"},
		{"acquire door -lease 0s", 2, "", "out of range"},
		{"lock door -lease -1s -- false", 2, "", "out of range"},
		{"lock door -owner me -- true", 0, "", ""},
	} {
		code, stdout, stderr := lockctl(t, c.line)
		if code != c.code || stdout != c.stdout || !strings.Contains(stderr, c.stderr) {
			t.Errorf("lockctl %s exits with %d, prints %q and says %q", c.line, code, stdout, stderr)
		}
	}
}

func TestAForcedReleaseSaysWhatItRemoves(t *testing.T) {
	service(t, 1)
	k := client(t)
	for line, want := range map[string]string{
		"release door -force":       "released token %d, owner \"me\", lease 1m0s\n",
		"release door -force -json": `{"key":"door","token":"%d","owner":"me","lease_ms":60000}` + "\n",
	} {
		l := take(t, k, "door")
		want = fmt.Sprintf(want, l.Token())
		if code, stdout, stderr := lockctl(t, line); code != 0 || stdout != want {
			t.Errorf("%s exits with %d, prints %q and says %q", line, code, stdout, stderr)
		}
		isFree(t, k, "door")
		if err := l.Unlock(t.Context()); err == nil {
			t.Error("its holder was not told")
		}
	}
}

func TestAcquireHoldsTheLockUntilASignal(t *testing.T) {
	service(t, 1)
	k := client(t)
	for i, s := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	} {
		p := begin(t, "acquire", "door", "-lease", "1m", "-owner", "it")
		p.until("\n")
		if info, held, err := k.Get(t.Context(), "door"); !held || info.Owner != "it" || err != nil {
			t.Fatalf("after %q is printed, the lock is %+v, %v, %v", p.printed(), info, held, err)
		}
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintln(i + 1)
		if code, stdout, stderr := p.end(); code != 0 || stdout != want || stderr != "" {
			t.Errorf("after %v it exits with %d, has printed %q and says %q", s, code, stdout, stderr)
		}
		isFree(t, k, "door")
	}
}

func TestAcquireSaysThatItsLeaseIsOver(t *testing.T) {
	service(t, 1)
	start := time.Now()
	code, stdout, stderr := lockctl(t, "acquire door -json -owner it -lease 500ms")
	want := `{"key":"door","token":"1","owner":"it","lease_ms":500}` + "\n"
	if code != 70 || stdout != want || !strings.Contains(stderr, `the lease of "door" is over`) {
		t.Errorf("it exits with %d, prints %q and says %q", code, stdout, stderr)
	}
	if took := time.Since(start); took < 495*time.Millisecond {
		t.Errorf("it has held the lock for %v", took)
	}
}

func TestAcquireSaysThatTheLockWasTakenAway(t *testing.T) {
	service(t, 1)
	k := client(t)
	p := begin(t, "acquire", "door", "-lease", "1m")
	p.until("1\n")
	if _, err := k.ForceRelease(t.Context(), "door"); err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := p.end(); code != 70 || !strings.Contains(stderr, "was lost before") {
		t.Errorf("it exits with %d and says %q", code, stderr)
	}
}

// nohup sets SIGHUP to be ignored.
func TestAHangupIsIgnoredUnderNohup(t *testing.T) {
	service(t, 1)
	p := beginAs(t, "sh", "-c", `trap "" HUP; exec "$0" acquire door -lease 1m`, os.Args[0])
	p.until("1\n")
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if s == syscall.SIGTERM {
			if _, held, err := client(t).Get(t.Context(), "door"); !held || err != nil {
				t.Errorf("the lock is gone after SIGHUP: %v", err)
			}
		}
		if err := p.Process.Signal(s); err != nil {
			t.Errorf("sending %v: %v", s, err)
		}
		<-time.After(50 * time.Millisecond) // for what should not happen
	}
	if code, _, stderr := p.end(); code != 0 {
		t.Errorf("it exits with %d and says %q", code, stderr)
	}
}

func TestWithoutAServerItSaysWhatToDo(t *testing.T) {
	addrs := service(t, 1)
	for line, want := range map[string]int{
		"list FLAGS": 1, "status FLAGS": 1, "release door FLAGS -token 1": 1, "get door FLAGS": 1,
		"acquire FLAGS door": 75, "lock door FLAGS -conflict-code 4 -- true": 4,
	} {
		// Port 1 is nobody's.
		flags := "-timeout 100ms -addrs 127.0.0.1:1,127.0.0.2:1"
		code, _, stderr := lockctl(t, strings.Replace(line, "FLAGS", flags, 1))
		if code != want || !strings.Contains(stderr, "127.0.0.1:1 or 127.0.0.2:1") ||
			!strings.Contains(stderr, "lockd -dev") || !strings.Contains(stderr, "LOCKCTL_ADDRS") {
			t.Errorf("%s exits with %d and says %q", line, code, stderr)
		}
	}
	if code, _, stderr := lockctl(t, "list -addrs 127.0.0.1:1,"+addrs[0]); code != 0 {
		t.Errorf("one server of two is not enough: %d, %s", code, stderr)
	}
}

// One server of three is there.
func TestWithoutALeaderItSaysWhereToLook(t *testing.T) {
	service(t, 1, func(c *rpc.Config) { c.Addrs[2], c.Addrs[3] = "127.0.0.1:1", "127.0.0.2:1" })
	for line, want := range map[string]int{
		"list -timeout 200ms": 1, "release door -token 1 -timeout 200ms": 1,
		"acquire door -wait 200ms": 75, "lock door -try -timeout 200ms -- false": 75,
	} {
		code, stdout, stderr := lockctl(t, line)
		if code != want || stdout != "" || !strings.Contains(stderr, "no leader was found") ||
			!strings.Contains(stderr, "lockctl status") {
			t.Errorf("%s exits with %d, prints %q and says %q", line, code, stdout, stderr)
		}
	}
	if code, stdout, _ := lockctl(t, "status"); code != 0 || strings.Contains(stdout, "leader\n") {
		t.Errorf("status exits with %d and prints\n%s", code, stdout)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, line := range []string{
		"", "unlock", "acquire", "acquire a b", "acquire a -try -wait 1s", "acquire a -- b", "list a",
		"extend a", "extend -token 1", "extend a -token 0", "extend a -token 1 -- b", "extend a -token 1 -keep",
		"release a", "release a -token x", "release a -token 0", "release a -token 1 -force",
		"lock a", "lock a --", "lock -- a", "get a -token 1", "status x", "acquire a -wait 0s",
		"acquire a -wait -1s", "acquire a -timeout 0s", "lock a -conflict-code 256 -- b",
		"list -tls-ca x", "list -tls-cert x -tls-key y", "list -addrs nowhere", "list -at here",
		"acquire a -lease 10",
	} {
		code, stdout, stderr := lockctl(t, line)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "wrong usage") {
			t.Errorf("lockctl %s exits with %d and says %q", line, code, stderr)
		}
	}
	if _, _, stderr := lockctl(t, "lock a"); !strings.Contains(stderr, "use acquire") {
		t.Errorf("lock without a command says %q", stderr)
	}
}

func TestHelpFitsAScreen(t *testing.T) {
	for _, line := range []string{
		"-h", "--help", "help", "lock -h", "acquire -h", "release door -h", "extend -h", "get -h", "list -h",
		"status -h", "snapshot -h",
	} {
		code, stdout, stderr := lockctl(t, line)
		if code != 0 || stderr != "" {
			t.Errorf("%s exits with %d and says %q", line, code, stderr)
		}
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		least := 8
		if line == "-h" {
			least = 24
		}
		if len(lines) < least || len(lines) > 40 {
			t.Errorf("%s prints %d lines", line, len(lines))
		}
		flags := 0
		for _, l := range lines {
			if strings.HasPrefix(l, "  -") {
				flags++
			}
			if utf8.RuneCountInString(l) > 80 {
				t.Errorf("%s: a line of %d: %q", line, utf8.RuneCountInString(l), l)
			}
		}
		if flags == 0 || flags > 13 {
			t.Errorf("%s tells of %d flags", line, flags)
		}
	}
}

// One page for people and one for the terminal, and they are complete. (etcd#19261.)
func TestExitCodesAreTold(t *testing.T) {
	page, err := os.ReadFile("../../docs/lockctl.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{
		0, exitFailed, exitUsage, exitLost, exitNotAcquired, exitCannotRun, exitNotFound,
		exitSignalled,
	} {
		if !strings.Contains(usage, fmt.Sprint(code)) {
			t.Errorf("lockctl -h does not tell of exit code %d", code)
		}
		if !strings.Contains(string(page), fmt.Sprintf("\n| %d", code)) {
			t.Errorf("docs/lockctl.md does not tell of exit code %d", code)
		}
	}
}
