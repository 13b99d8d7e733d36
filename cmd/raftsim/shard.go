package main

import (
	"fmt"
	"strconv"
	"strings"
)

// shard is one machine's part of a search: the ith of n, counted from 1.
type shard struct{ i, n uint64 }

func (s shard) String() string { return fmt.Sprintf("%d/%d", s.i, s.n) }

// readShard reads I/N. Nothing is the whole search.
func readShard(text string) (shard, error) {
	if text == "" {
		return shard{1, 1}, nil
	}
	a, b, _ := strings.Cut(text, "/")
	i, err1 := strconv.ParseUint(a, 10, 64)
	n, err2 := strconv.ParseUint(b, 10, 64)
	if err1 != nil || err2 != nil || i < 1 || i > n {
		return shard{}, misuse("-shard %q: expected I/N with 1 ≤ I ≤ N, such as 2/16", text)
	}
	return shard{i, n}, nil
}

// of cuts a shard out of the seeds: all together they are the whole, no two have a seed in common, and
// their sizes differ by one at most.
func (s shard) of(from, to uint64) (first, last uint64, err error) {
	if s.n == 1 {
		return from, to, nil
	}
	span := to - from // one less than there are, which a uint64 holds in any case
	if s.n-1 > span {
		return 0, 0, misuse("-shard %s: %d-%d are fewer seeds than shards; take fewer shards", s, from, to)
	}
	size, rest := span/s.n, span%s.n
	start := func(i uint64) uint64 { return from + size*i + min(i, rest+1) }
	return start(s.i - 1), start(s.i) - 1, nil
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	plain := strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%") == ""
	if plain && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
