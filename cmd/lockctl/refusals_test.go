package main

import (
	"encoding/json"
	"fmt"
	"net"
	netrpc "net/rpc"
	"os"
	"strings"
	"testing"

	"ticketing/rpc"
)

// clerk answers every request with the same status, as a server would in a state that it takes a
// million locks to bring it into.
type clerk struct{ status rpc.Status }

func (c clerk) Open(_ *rpc.OpenArgs, y *rpc.OpenReply) error {
	y.Status, y.Client = rpc.OK, 7
	return nil
}

func (c clerk) Acquire(_ *rpc.AcquireArgs, y *rpc.AcquireReply) error {
	y.Status = c.status
	return nil
}

func (c clerk) Release(_ *rpc.ReleaseArgs, y *rpc.ReleaseReply) error {
	y.Status = c.status
	return nil
}

func (c clerk) Extend(_ *rpc.ExtendArgs, y *rpc.ExtendReply) error {
	y.Status = c.status
	return nil
}

// serve lets lockctl reach the clerk, and nobody else.
func (c clerk) serve(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	server := netrpc.NewServer()
	if err := server.RegisterName("Lock", c); err != nil {
		t.Fatal(err)
	}
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			go server.ServeConn(conn)
		}
	}()
	t.Setenv("LOCKCTL_ADDRS", l.Addr().String())
}

// Whatever is wrong is one line that says what it is and what to do about it. docs/lockctl.md has
// the same words.
func TestEachRefusalIsALineThatSaysWhatToDo(t *testing.T) {
	page, err := os.ReadFile("../../docs/lockctl.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status    rpc.Status
		line      string
		code      int
		what, say string
	}{
		{rpc.Full, "acquire door", 75, "too many requests wait", "try again later"},
		{rpc.Busy, "acquire door -wait 200ms", 75, "too many requests wait", "try again later"},
		{rpc.Busy, "release door -token 3 -timeout 300ms", 1, "too many requests wait", "try again later"},
		{rpc.TableFull, "lock door -- true", 75, "as many locks are held as there may be",
			"release locks that nobody needs"},
		{rpc.Ahead, "release door -token 3", 1, "no such token has been given out yet",
			"lockctl get door tells the token"},
		{rpc.Ahead, "extend door -token 3", 1, "no such token has been given out yet",
			"lockctl get door tells the token"},
		{rpc.Expiring, "extend door -token 3", 1, "its lease has run out, and its end is on the way",
			"stop what it protects, and acquire it anew"},
		{rpc.NotFound, "extend door -token 3", 1, "is not held with token 3", ""},
		{rpc.Reused, "acquire door", 75, "the number names another request of this session",
			"another program uses this one's session"},
		{rpc.Below, "release door -token 3", 1, "below its session's lowest open one",
			"another program uses this one's session"},
		{rpc.TooFar, "acquire door", 75, "too far above its session's lowest open one",
			"another program uses this one's session"},
		{rpc.Status(99), "acquire door", 2, "status 99, which this program does not know", ""},
	} {
		clerk{c.status}.serve(t)
		code, stdout, stderr := lockctl(t, c.line)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.what) ||
			!strings.Contains(stderr, c.say) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("status %d: %s exits with %d, prints %q and says %q",
				c.status, c.line, code, stdout, stderr)
		}
		if c.say != "" && !strings.Contains(string(page), c.what) {
			t.Errorf("docs/lockctl.md does not tell of %q", c.what)
		}
	}
}

// Whoever reads a token as a floating-point number has another one, beyond 2^53.
func TestTokensAreStringsInAllJSON(t *testing.T) {
	const floor = 1<<63 + 1
	service(t, 1, func(c *rpc.Config) { c.TokenFloor = floor })
	l := take(t, client(t), "door")
	if l.Token() != floor+1 {
		t.Fatalf("the first token above %d is %d", uint64(floor), l.Token())
	}
	token, found := fmt.Sprint(uint64(l.Token())), 0
	for _, line := range []string{
		"get door -json", "list -json", "status -json", "extend door -json -token " + token,
		"lock gate -json -- true", "acquire window -json -lease 400ms",
		"get -at " + os.Getenv("LOCKCTL_ADDRS") + " door -json",
		"list -json -at " + os.Getenv("LOCKCTL_ADDRS"),
		"release door -json -token " + token,
	} {
		_, stdout, stderr := lockctl(t, line)
		for text := range strings.Lines(stdout + stderr) {
			if strings.HasPrefix(text, "lockctl:") { // acquire says that its lease is over
				continue
			}
			var value any
			lines := json.NewDecoder(strings.NewReader(text))
			lines.UseNumber()
			if err := lines.Decode(&value); err != nil {
				t.Errorf("%s prints %q: %v", line, text, err)
			}
			found += tokensIn(t, line, value)
		}
	}
	if found < 10 {
		t.Errorf("there were %d tokens", found)
	}
}

// tokensIn counts the tokens in a JSON value, and fails the test if one is a number: by its name,
// or as no other number is as large.
func tokensIn(t *testing.T, what string, value any) (count int) {
	t.Helper()
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err != nil || n > 1<<53 {
			t.Errorf("%s: %v is a number", what, v)
		}
	case map[string]any:
		for name, part := range v {
			if name == "token" || name == "last_token" {
				count++
				if text, ok := part.(string); !ok || !strings.HasPrefix(text, "92233720368547758") {
					t.Errorf("%s: %s is %v", what, name, part)
				}
			}
			count += tokensIn(t, what, part)
		}
	case []any:
		for _, part := range v {
			count += tokensIn(t, what, part)
		}
	}
	return count
}
