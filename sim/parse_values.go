package sim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"ticketing/raft"
)

// number reads a whole number. It is at most half of what fits: terms and tokens still count up
// from here, and a counter has a sign.
func (r *reader) number(v string) uint64 {
	return r.digits(v, 63)
}

func (r *reader) digits(v string, bits int) uint64 {
	n, err := strconv.ParseUint(v, 10, bits)
	if err != nil {
		r.fail(fmt.Sprintf("digits, and less than 2^%d", bits), "%q is not a whole number", v)
	}
	return n
}

// count reads a whole number from 1 up that is small enough for a size.
func (r *reader) count(v string) int {
	n := r.number(v)
	if r.err == nil && (n < 1 || n > math.MaxInt32) {
		r.fail("at least 1 and not a giant number", "%q is out of range", v)
	}
	return int(n)
}

// nth reads "#2".
func (r *reader) nth(word string) int {
	digits, ok := strings.CutPrefix(word, "#")
	switch {
	case !ok:
		r.fail("#N, counting from #1", "%q is not a position", word)
	case digits == "" || digits[0] < '0' || digits[0] > '9':
		r.comment(word)
	}
	return r.count(digits)
}

const durationForm = "a duration such as 250ms or 10s"

// maxDuration bounds what one line can ask for, so that times can be added up without overflow.
const maxDuration = 1000 * time.Hour

func (r *reader) duration(v string) time.Duration {
	d := r.lease(v)
	if d > maxDuration {
		r.fail("at most "+brief(maxDuration), "%q is too long", v)
	}
	return d
}

// lease reads a duration of any length: whether a lease is too long, the server says.
func (r *reader) lease(v string) time.Duration {
	d, err := time.ParseDuration(v)
	switch {
	case err != nil:
		r.fail(durationForm, "%q is not a duration", v)
	case d < 0:
		r.fail(durationForm+", not negative", "%q is negative", v)
	}
	return d
}

// jump reads a duration with a sign.
func (r *reader) jump(v string) time.Duration {
	size, back := strings.CutPrefix(v, "-")
	d := r.positive(size)
	if back {
		return -d
	}
	return d
}

func (r *reader) positive(v string) time.Duration {
	d := r.duration(v)
	if d == 0 {
		r.fail(durationForm+", more than 0", "%q is no time at all", v)
	}
	return d
}

// span reads "5ms..20ms", or "5ms" for no spread.
func (r *reader) span(v string) (least, most time.Duration) {
	first, second, ranged := strings.Cut(v, "..")
	if !ranged {
		second = first
	}
	least, most = r.duration(first), r.duration(second)
	if least > most {
		r.fail("the smaller one first, such as 5ms..20ms", "%q is an empty range", v)
	}
	return least, most
}

// decimal reads a decimal such as 1.5 as a number of units of 10^-places, without the rounding that
// a float would bring in: the same file must give the same run everywhere.
func decimal(v string, places int) (int64, bool) {
	whole, fraction, dotted := strings.Cut(v, ".")
	if whole == "" || dotted && fraction == "" || len(fraction) > places {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", places-len(fraction)), 10, 63)
	return int64(n), err == nil
}

const perMillion = 1_000_000

// rate reads a clock's rate in parts per million.
func (r *reader) rate(v string) int64 {
	ppm, ok := decimal(v, 6)
	if !ok || ppm < perMillion/100 || ppm > 100*perMillion {
		r.fail("0.01 to 100, such as 1.5, with at most 6 places", "%q is not a rate", v)
	}
	return ppm
}

// share reads a percentage in parts per million.
func (r *reader) share(v string) int {
	percent, ok := strings.CutSuffix(v, "%")
	ppm, exact := decimal(percent, 4)
	if !ok || !exact || ppm > perMillion {
		r.fail("0% to 100%, such as 2.5%, with at most 4 places", "%q is not a share", v)
	}
	return int(ppm)
}

// onOff reads a switch.
func (r *reader) onOff(v string) *bool {
	on := v == "on"
	if !on && v != "off" {
		r.fail("on or off", "%q is neither on nor off", v)
	}
	return &on
}

// node reads the name of a node that exists.
func (r *reader) node(word string) raft.ServerID {
	r.p.named = true
	id := Actor(word).Node()
	if id < 1 || int(id) > r.p.nodes || NodeActor(id) != Actor(word) {
		r.fail(r.nodeForm(), "%q is not a node of this scenario", word)
		return 0
	}
	return id
}

func (r *reader) nodeForm() string {
	if r.p.nodes == 1 {
		return "S1, the only node"
	}
	return fmt.Sprintf("S1 to S%d", r.p.nodes)
}

func (r *reader) nodeOrAll(word string) Actor {
	if Actor(word) == Everyone {
		return Everyone
	}
	return r.nodeActor(word)
}

func (r *reader) nodeActor(word string) Actor {
	if r.node(word) == 0 {
		return ""
	}
	return Actor(word)
}

// isNodeName reports whether word looks like a node, whether or not there is one of that name.
func isNodeName(word string) bool {
	digits, ok := strings.CutPrefix(word, "S")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isClient reports whether word can name a client: a capitalised word that is not a node's.
func isClient(word string) bool {
	for i, c := range word {
		switch {
		case i == 0 && !unicode.IsUpper(c):
			return false
		case !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_':
			return false
		}
	}
	return word != "" && !isNodeName(word)
}

func (r *reader) client(word string) Actor {
	if !isClient(word) {
		r.fail("a capitalised name, but not a node's, such as A or Bob", "%q is not a client", word)
	}
	return Actor(word)
}

// anyone reads a node or a client.
func (r *reader) anyone(word string) Actor {
	if isClient(word) {
		return Actor(word)
	}
	return r.nodeActor(word)
}

// link reads "S1->S2", where either side may be a client or every node. Clients talk to nodes only,
// and nobody talks to itself.
func (r *reader) link(word string) (from, to Actor) {
	left, right, ok := strings.Cut(word, "->")
	if !ok {
		r.fail("two ends and an arrow, such as S1->S2, S1->* or A->S1", "%q is not a link", word)
		return "", ""
	}
	for _, end := range []string{left, right} {
		if Actor(end) != Everyone {
			r.anyone(end)
		}
	}
	switch {
	case isClient(left) && isClient(right):
		r.fail("a node at one end", "%q joins two clients", word)
	case left == right && Actor(left) != Everyone:
		r.fail("two different ends", "%q leads nowhere", word)
	}
	return Actor(left), Actor(right)
}

// key reads the name of a lock. Parse has refused control characters already, and a word has no
// spaces.
func (r *reader) key(word string) string {
	if len(word) > 255 {
		r.fail("at most 255", "the key has %d bytes", len(word))
	}
	return word
}

// log reads the terms of a log's entries, "1,1,2", or "none".
func (r *reader) log(v string) []raft.Term {
	if v == "none" {
		return nil
	}
	var log []raft.Term
	least := raft.Term(1)
	for digits := range strings.SplitSeq(v, ",") {
		term := raft.Term(r.number(digits))
		if term < least {
			r.fail("terms from 1 up that never fall, such as log=1,1,2", "%q is not a log", v)
		}
		log = append(log, term)
		least = term
	}
	return log
}

// kind reads a kind of message.
func (r *reader) readState(v string) string {
	if known := readStates(); !slices.Contains(known, v) {
		r.unknown("end of a read", v, oneOf(known), known)
	}
	return v
}

func (r *reader) kind(word string) string {
	known := []string{
		"vote", "vote-reply", "append", "append-reply", "prevote", "prevote-reply",
		"read", "read-reply", "transfer", "transfer-reply", "snapshot", "snapshot-reply",
		"request", "request-reply",
	}
	if !slices.Contains(known, word) {
		r.unknown("kind of message", word, oneOf(known), known)
	}
	return word
}
