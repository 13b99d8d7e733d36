package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// tenureName names a tenure as the lock lane does: A #7.
func tenureName(owner string, token uint64) string {
	if owner == "" {
		return fmt.Sprintf("#%d", token)
	}
	return fmt.Sprintf("%s #%d", owner, token)
}

// Millis writes a time as milliseconds, with microseconds where there are any.
func Millis(t trace.Time) string { return strings.TrimSuffix(t.String(), "ms") }

// millis writes a time as whole milliseconds, rounded.
func millis(t trace.Time) string {
	return strconv.FormatInt(int64((t+trace.Millisecond/2)/trace.Millisecond), 10)
}

// count writes a number of things: 1 reply, 2 replies.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// span writes a range of indexes: 3, or 3–5.
func span(first, last raft.Index) string {
	if first >= last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d–%d", first, last)
}

// listed joins words as a sentence does: A, B and C.
func listed(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// proposal says what an entry is in the fewest words. With several keys in a trace it names the
// key.
func (s *teller) proposal(entry *trace.EntryRecord) string {
	e, err := fsm.Decode([]byte(entry.Command))
	switch {
	case entry.Members != "":
		return "the entry that " + s.changeWords(*entry)
	case err != nil:
		return "what nobody can read"
	case e.Kind == fsm.Noop && e.Text == "":
		return fmt.Sprintf("entry %d of term %d", entry.Index, entry.Term)
	case e.Kind == fsm.Noop:
		return strconv.Quote(e.Text)
	case e.Kind == fsm.Grant:
		return "Grant " + ownerOf(e) + s.ofKey(e.Key)
	case e.Kind == fsm.Release && e.Token == 0:
		return "bare Release" + s.ofKey(e.Key)
	case e.Kind == fsm.Release:
		return fmt.Sprintf("Release #%d", e.Token) + s.ofKey(e.Key)
	case e.Kind == fsm.Extend:
		return fmt.Sprintf("Extend #%d", e.Token) + s.ofKey(e.Key)
	case e.Kind == fsm.Open:
		return ownerOf(e) + "'s session"
	}
	return fmt.Sprintf("Expire #%d", e.Token) + s.ofKey(e.Key)
}

// leaseWords writes a lease as people say it: 10s, 1m30s, 250ms.
func leaseWords(ms int64) string { return brief(time.Duration(ms) * time.Millisecond) }

func (s *teller) ofKey(key string) string {
	if len(s.keys) > 1 {
		return " " + key
	}
	return ""
}

func (s *teller) proposals(entries []*trace.EntryRecord) string {
	if len(entries) > 4 {
		return "entries " + span(entries[0].Index, entries[len(entries)-1].Index)
	}
	var words []string
	for _, e := range entries {
		words = append(words, s.proposal(e))
	}
	return strings.Join(words, ", ")
}

// Clean makes text safe and plain for a line of a terminal: no control characters, no line ends,
// and in ASCII no others either.
func (o Style) Clean(text string) string {
	if o.ASCII {
		text = strings.NewReplacer("→", "->", "…", "...", "–", "-", "—", "-", "≠", "!=", "×", "x", "·", "-",
			"✓", "[ok]", "✕", "[x]", "⋮", "...", "✂", "cut:", "≥", ">=", "≤", "<=", "’", "'").Replace(text)
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || o.ASCII && r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, text)
}

// wrap breaks text into lines of at most width columns, at spaces where it can.
func wrap(text string, width int) []string {
	width = max(width, 8)
	var lines []string
	line := []rune(text)
	for len(line) > width {
		cut := width
		for cut > 0 && line[cut] != ' ' {
			cut--
		}
		if cut == 0 {
			cut = width
		}
		lines = append(lines, strings.TrimRight(string(line[:cut]), " "))
		line = []rune(strings.TrimLeft(string(line[cut:]), " "))
	}
	return append(lines, string(line))
}
