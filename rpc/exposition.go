package rpc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ticketing/raft"
)

// exposition is text in Prometheus' format. A family comes first, then its values.
type exposition struct {
	bytes.Buffer
	name string
}

func (t *exposition) family(name, kind, help string) {
	t.name = "lockd_" + name
	fmt.Fprintf(t, "# HELP %s %s\n# TYPE %s %s\n", t.name, help, t.name, kind)
}

// value takes labels as pairs of name and value.
func (t *exposition) value(v uint64, labels ...string) {
	t.sample("", strconv.FormatUint(v, 10), labels...)
}

func (t *exposition) sample(suffix, value string, labels ...string) {
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+`="`+labels[i+1]+`"`) // all are words of this file
	}
	braced := ""
	if len(pairs) > 0 {
		braced = "{" + strings.Join(pairs, ",") + "}"
	}
	fmt.Fprintf(t, "%s%s%s %s\n", t.name, suffix, braced, value)
}

func (t *exposition) histogram(name, help string, h *histogram) {
	t.family(name, "histogram", help)
	total := uint64(0)
	for i, k := range h.buckets {
		total += k
		le := "+Inf"
		if i < len(h.buckets)-1 {
			le = seconds(h.bound(i))
		}
		t.sample("_bucket", strconv.FormatUint(total, 10), "le", le)
	}
	t.sample("_sum", seconds(h.sum))
	t.sample("_count", strconv.FormatUint(total, 10))
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) }

// histogram counts durations by their size, each bound twice as long as the one before: from half a
// millisecond, less than which no disk needs, to 16 s.
type histogram struct {
	buckets [17]uint64 // not cumulative; the last is for what is longer
	sum     time.Duration
}

const shortest = 500 * time.Microsecond

func (h *histogram) bound(i int) time.Duration { return shortest << i }

func (h *histogram) add(d time.Duration) {
	i := 0
	for i < len(h.buckets)-1 && d > h.bound(i) {
		i++
	}
	h.buckets[i]++
	h.sum += d
}

func micro(t raft.Time) time.Duration { return time.Duration(t) * time.Microsecond }
