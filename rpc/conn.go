package rpc

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

// maxMessage is the most bytes in one gob message: a full AppendEntries has a quarter of it.
const maxMessage = 1 << 20

// maxDefinitions is the most bytes in all definitions of types on one connection. gob keeps what it
// makes of them, which is many times larger; this package's own take some 2 KB.
const maxDefinitions = 8 << 10

var errTooLong = errors.New("a message that is too long, or no gob at all")

// conn is a connection that tells when it breaks, does not wait for ever for the other side to
// read, and takes no message that is longer than maxMessage, nor more than maxDefinitions.
type conn struct {
	net.Conn
	patience time.Duration // for one Write
	broken   func()        // called at least once when a Read or a Write has failed
	frames   frames
	head     []byte // the first bytes that were read, to tell what they are if they are no request
	tooLong  bool
	failed   atomic.Pointer[error] // the first error of a Read or a Write
}

const headLength = 8

func newConn(c net.Conn, patience time.Duration, broken func()) *conn {
	return &conn{Conn: c, patience: patience, broken: broken}
}

// Read fails as soon as the other side has closed the connection, even while its requests are being
// worked on, since net/rpc always reads ahead.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.head = append(c.head, b[:min(n, headLength-len(c.head))]...)
	if err == nil && !c.frames.pass(b[:n]) {
		n, err, c.tooLong = 0, errTooLong, true
	}
	if err != nil {
		c.fail(err)
	}
	return n, err
}

func (c *conn) fail(err error) {
	c.failed.CompareAndSwap(nil, &err)
	c.broken()
}

// failure returns why broken was called.
func (c *conn) failure() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// mistake says, when nobody reads any more, what was wrong with what the other side sent, if
// anything was. Spoke says that it has sent a request.
func (c *conn) mistake(spoke bool) error {
	head := string(c.head)
	word, _, _ := strings.Cut(head, " ")
	switch {
	case spoke && c.tooLong:
		return errTooLong
	case spoke || head == "":
		return nil
	case strings.HasPrefix(head, "\x16\x03"):
		return errors.New("it speaks TLS, and this server has no certificate to answer with")
	case len(word) < len(head) && word != "" && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "":
		return errors.New("it speaks HTTP")
	}
	return errors.New("what it sent is no request")
}

func (c *conn) Write(b []byte) (int, error) {
	err := c.SetWriteDeadline(time.Now().Add(c.patience))
	n := 0
	if err == nil {
		n, err = c.Conn.Write(b)
	}
	if err != nil {
		c.fail(err)
	}
	return n, err
}

// frames follows the numbers that stand before gob's messages: a length, and then the id of a type,
// which is negative in a message that defines a type. A gob number below 128 is one byte; a larger
// one is a byte that tells how many follow, negated, and those, the highest first.
type frames struct {
	inID    bool   // the number is the type's id
	digits  int    // of the number, still to come
	number  uint64 // so far
	length  uint64 // of the message
	rest    uint64 // of the message, still to come
	defined uint64 // bytes of all definitions
}

// pass reports whether the bytes may go on to the decoder.
func (f *frames) pass(b []byte) bool {
	for len(b) > 0 {
		if f.rest > 0 && !f.inID {
			n := min(f.rest, uint64(len(b)))
			f.rest -= n
			b = b[n:]
			continue
		}
		next := b[0]
		b = b[1:]
		if f.inID {
			f.rest--
		}
		switch {
		case f.digits > 0:
			f.digits--
			f.number = f.number<<8 | uint64(next)
		case next < 128:
			f.number = uint64(next)
		default:
			f.digits, f.number = 256-int(next), 0
		}
		if f.digits > 8 || f.inID && uint64(f.digits) > f.rest {
			return false
		}
		if f.digits == 0 && !f.have() {
			return false
		}
	}
	return true
}

// have takes in a number that is complete.
func (f *frames) have() bool {
	if !f.inID {
		f.length, f.rest = f.number, f.number
		f.inID = f.rest > 0
		return f.length <= maxMessage
	}
	f.inID = false
	if negative := f.number&1 != 0; negative {
		f.defined += f.length
	}
	return f.defined <= maxDefinitions
}
