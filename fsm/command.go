package fsm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Token numbers tenures, over all keys, from 1 up: the fencing token. 0 is no token.
type Token uint64

// ClientID names a client's session: the index of the entry that opened it. 0 is no session.
type ClientID uint64

// Kind says what a command does.
type Kind uint8

const (
	Noop    Kind = iota // nothing: a leader's start-of-term entry, or a text in scenarios about Raft alone
	Grant               // acquire Key for LeaseMS
	Release             // release Key; with a Token, only that tenure
	Expire              // the lease of Key's tenure Token is over

	// Additions to the specification.
	Extend // Key's tenure Token gets a new lease of LeaseMS
	Open   // a client's session begins
)

func (k Kind) String() string {
	switch k {
	case Noop:
		return "noop"
	case Grant:
		return "grant"
	case Release:
		return "release"
	case Expire:
		return "expire"
	case Extend:
		return "extend"
	case Open:
		return "open"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// A Command is one change of lock state. A Grant names no token: each replica's table assigns it
// when it applies the entry, so all compute the same one, and a leader cannot get it wrong.
type Command struct {
	Kind    Kind
	Key     string
	LeaseMS uint32 // Grant, Extend: the lease in milliseconds. The table stores it and never looks at it
	Token   Token  // Expire, Extend, Release (an addition to the specification; 0 is the row as specified)
	Text    string // Noop
}

// An Envelope is what a log entry holds: a command and who asked for it. Client and Seq name the
// request, so that a repeated one can be recognised; the client's requests below Lowest are closed:
// it waits for none of their answers. Owner is a label for people and decides nothing.
type Envelope struct {
	Client ClientID
	Seq    uint64
	Lowest uint64
	Owner  string
	Command
}

// ResultKind says what became of a command.
type ResultKind uint8

const (
	ResultNoop    ResultKind = iota // nothing happened
	Granted                         // acquired; Token is the fencing token
	GrantRejected                   // the key was held already
	Released                        // released
	NotFound                        // what was to be released does not exist
	Expired                         // expiry processed; Existed says whether anything was removed

	// Additions to the specification.
	Extended       // the tenure has a new lease
	Opened         // a session began; Client is its id
	SessionUnknown // the session is over, or never was: nothing was done, and never will be
	TableFull      // a Grant, and as many keys are held as there may be
	NumberReused   // the session has used the request's number for another command: nothing was done
)

// A Result is what Table.Apply returns, the same on every replica.
type Result struct {
	Kind    ResultKind
	Token   Token    // Granted
	Existed bool     // Expired
	Client  ClientID // Opened
	Again   bool     // this is what a request has come to before; nothing was done now
}

// String writes the result as the specification does: Granted{7}, Expired{false}, Released.
func (r Result) String() string {
	if r.Again {
		r.Again = false
		return r.String() + " again"
	}
	switch r.Kind {
	case ResultNoop:
		return "Noop"
	case Granted:
		return "Granted{" + strconv.FormatUint(uint64(r.Token), 10) + "}"
	case GrantRejected:
		return "GrantRejected"
	case Released:
		return "Released"
	case NotFound:
		return "NotFound"
	case Expired:
		return "Expired{" + strconv.FormatBool(r.Existed) + "}"
	case Extended:
		return "Extended"
	case Opened:
		return "Opened{" + strconv.FormatUint(uint64(r.Client), 10) + "}"
	case SessionUnknown:
		return "SessionUnknown"
	case TableFull:
		return "TableFull"
	case NumberReused:
		return "NumberReused"
	}
	return fmt.Sprintf("Result(%d)", uint8(r.Kind))
}

// The greatest lease is a day; a longer one is more likely a mistaken unit than a wish.
const (
	MaxLeaseMS = 24 * 60 * 60 * 1000
	maxKey     = 255 // bytes, of keys and owners
)

// Errors that come with a reply. All but ErrTokenAhead are of requests that are refused before
// anything is proposed. Those returned wrap one of them.
var (
	ErrLeaseRange = errors.New("the lease must be from 1ms to 24h")
	ErrKey        = errors.New("a key has 1 to 255 bytes of UTF-8 without control characters")
	ErrOwner      = errors.New("an owner has at most 255 bytes of UTF-8 without control characters and quotes")
	ErrToken      = errors.New("0 is no token: name the one that was granted")
	ErrTokenAhead = errors.New("no such token has been given out yet: name the one that was granted")
	ErrClosed     = errors.New("a request's number is not below its client's lowest open one: take a new one")
	ErrTooMany    = errors.New("a client has at most 256 requests open: close some before asking more")
	ErrReused     = errors.New("the number names another request of this session: take a new one")
	ErrCommand    = errors.New("not a command")
)

func checkLease(ms int64) error {
	if ms < 1 || ms > MaxLeaseMS {
		return fmt.Errorf("%w, not %dms", ErrLeaseRange, ms)
	}
	return nil
}

func checkKey(key string) error {
	if key == "" || !printable(key) {
		return fmt.Errorf("%w: %q", ErrKey, key)
	}
	return nil
}

func checkOwner(owner string) error {
	if !printable(owner) || strings.Contains(owner, `"`) {
		return fmt.Errorf("%w: %q", ErrOwner, owner)
	}
	return nil
}

func printable(s string) bool {
	control := func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }
	return len(s) <= maxKey && strings.ToValidUTF8(s, "") == s && !strings.ContainsFunc(s, control)
}

// Append appends the envelope as one line of text, the form in which log entries hold it:
//
//	3.12 "A" grant 10000 door
//	3.12-13 "A" release 7 door
//	3.14 "A" extend 8 10000 door
//	- expire 7 door
//
// The client and its number for the request (after the lowest that is open, if that is another),
// owner, command, and the key last, since it may contain spaces. It is read in traces and dumps as
// it is, and costs less than gob.
func (e Envelope) Append(b []byte) []byte {
	if e.Client == 0 && e.Seq == 0 && e.Lowest == 0 && e.Owner == "" {
		b = append(b, '-')
	} else {
		b = strconv.AppendUint(b, uint64(e.Client), 10)
		b = append(b, '.')
		if e.Lowest != e.Seq {
			b = strconv.AppendUint(b, e.Lowest, 10)
			b = append(b, '-')
		}
		b = strconv.AppendUint(b, e.Seq, 10)
		b = append(b, ' ', '"')
		b = append(b, e.Owner...)
		b = append(b, '"')
	}
	b = append(b, ' ')
	b = append(b, e.Kind.String()...)
	b = append(b, ' ')
	switch e.Kind {
	case Noop:
		return append(b, e.Text...)
	case Open:
		return b
	case Grant:
		b = strconv.AppendUint(b, uint64(e.LeaseMS), 10)
	case Release, Expire:
		b = strconv.AppendUint(b, uint64(e.Token), 10)
	case Extend:
		b = strconv.AppendUint(b, uint64(e.Token), 10)
		b = append(b, ' ')
		b = strconv.AppendUint(b, uint64(e.LeaseMS), 10)
	}
	b = append(b, ' ')
	return append(b, e.Key...)
}

// String returns what Append appends.
func (e Envelope) String() string { return string(e.Append(nil)) }

// Decode reads what Append wrote; an empty entry is a Noop. It accepts nothing that Append does not
// write. A replica that meets anything else must stop: to skip it would be to differ from one that
// can read it.
func Decode(b []byte) (Envelope, error) {
	if len(b) == 0 {
		return Envelope{}, nil
	}
	e, ok := decode(string(b))
	if !ok {
		return Envelope{}, fmt.Errorf("%w: %q", ErrCommand, b)
	}
	return e, nil
}

func decode(s string) (e Envelope, ok bool) {
	if rest, internal := strings.CutPrefix(s, "- "); internal {
		s = rest
	} else if s, ok = e.decodeOrigin(s); !ok {
		return Envelope{}, false
	}
	word, rest, found := strings.Cut(s, " ")
	switch {
	case !found:
		return Envelope{}, false
	case word == "noop":
		e.Text = rest
		return e, printable(rest)
	case word == "open":
		e.Kind = Open
		return e, rest == ""
	}
	if e.Kind, ok = aboutKey(word); !ok {
		return Envelope{}, false
	}
	if e.Kind != Grant {
		var n uint64
		n, rest, ok = cutUint(rest)
		e.Token = Token(n)
	}
	if ok && (e.Kind == Grant || e.Kind == Extend) {
		var n uint64
		n, rest, ok = cutUint(rest)
		e.LeaseMS, ok = uint32(n), ok && n <= 1<<32-1
	}
	e.Key = rest
	return e, ok && checkKey(rest) == nil
}

// aboutKey returns the kind of a command about a key.
func aboutKey(word string) (Kind, bool) {
	for _, k := range [...]Kind{Grant, Release, Expire, Extend} {
		if word == k.String() {
			return k, true
		}
	}
	return 0, false
}

// decodeOrigin reads CLIENT.SEQ "OWNER" or CLIENT.LOWEST-SEQ "OWNER" and returns what follows.
func (e *Envelope) decodeOrigin(s string) (string, bool) {
	client, s, _ := strings.Cut(s, ".")
	numbers, s, _ := strings.Cut(s, ` "`)
	owner, s, found := strings.Cut(s, `" `)
	lowest, seq, ranged := strings.Cut(numbers, "-")
	if !ranged {
		seq = lowest
	}
	c, ok1 := decodeUint(client)
	l, ok2 := decodeUint(lowest)
	n, ok3 := decodeUint(seq)
	if !ok1 || !ok2 || !ok3 || !found || checkOwner(owner) != nil || ranged && l == n {
		return "", false
	}
	e.Client, e.Lowest, e.Seq, e.Owner = ClientID(c), l, n, owner
	return s, c != 0 || l != 0 || n != 0 || owner != ""
}

// cutUint reads a number and the space behind it.
func cutUint(s string) (n uint64, rest string, ok bool) {
	digits, rest, found := strings.Cut(s, " ")
	n, ok = decodeUint(digits)
	return n, rest, ok && found
}

// decodeUint reads a decimal number in the one way in which AppendUint writes it.
func decodeUint(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && (s == "0" || s[0] != '0')
}
