package sim

import (
	"fmt"
	"slices"

	"ticketing/raft"
)

// This file takes servers away and gives the rest, clients and keys the usual names. Draws go by
// names, so what comes of it is another run, which may not break.

// fewerNodes takes servers away, with the lines that name them: all but one, or one after another.
func (m *shrinker) fewerNodes() {
	for id := 1; id <= m.nodes() && m.nodes() > 1; id++ {
		m.keepNodes(func(other int) bool { return other == id })
	}
	for id := m.nodes(); id >= 1 && m.nodes() > 1; id-- {
		m.keepNodes(func(other int) bool { return other != id })
	}
	i := slices.IndexFunc(m.lines, isNodes)
	if i >= 0 && m.lines[i] == Command(SetNodes{N: defaultNodes}) {
		m.try(slices.Delete(slices.Clone(m.lines), i, i+1))
	}
}

// keepNodes tries to do with some of the servers that vote from the start. Those behind a gap move
// up.
func (m *shrinker) keepNodes(keep func(id int) bool) {
	names, gone := map[string]string{}, map[string]bool{}
	kept := 0
	for id := 1; id <= maxNodes; id++ {
		name := string(NodeActor(raft.ServerID(id)))
		if id <= m.nodes() && !keep(id) {
			gone[name] = true
			continue
		}
		names[name] = string(NodeActor(raft.ServerID(id - len(gone))))
		if id <= m.nodes() {
			kept++
		}
	}
	var lines []Command
	learners := 0
	for _, c := range m.lines {
		if n, ok := c.(SetNodes); ok {
			learners = n.Learners
			continue
		}
		if !slices.ContainsFunc(nodesOf(c), func(name string) bool { return gone[name] }) {
			lines = append(lines, c)
		}
	}
	if lines = mapped(lines, names); lines != nil {
		m.tryAnySeed(slices.Insert(lines, 0, Command(SetNodes{N: kept, Learners: learners})))
	}
}

func isNodes(c Command) bool { _, ok := c.(SetNodes); return ok }

func (m *shrinker) nodes() int {
	if i := slices.IndexFunc(m.lines, isNodes); i >= 0 {
		return m.lines[i].(SetNodes).N
	}
	return defaultNodes
}

// rename calls all by the usual names, in the order in which they appear.
func (m *shrinker) rename() {
	_, _, keys := namesIn(m.lines)
	for _, key := range keys { // one key, if it can be
		m.tryNames([]string{key}, func(int) string { return keys[0] })
	}
	nodes, clients, keys := namesIn(m.lines)
	m.tryNames(keys, func(i int) string {
		if usual := []string{"door", "gate", "vault"}; i < len(usual) {
			return usual[i]
		}
		return fmt.Sprintf("key%d", i+1)
	})
	m.tryNames(clients, func(i int) string { return string(rune('A' + i%26)) })
	m.tryNames(nodes, func(i int) string { return string(NodeActor(raft.ServerID(i + 1))) })
}

// tryNames tries other names, unless nothing changes. Whoever has one of them already gets that which
// is free for it.
func (m *shrinker) tryNames(names []string, nth func(int) string) {
	to := map[string]string{}
	for i, name := range names {
		to[name] = nth(i)
	}
	same := true
	for i, name := range names {
		same = same && name == nth(i)
		if _, named := to[nth(i)]; !named {
			to[nth(i)] = name
		}
	}
	if same {
		return
	}
	if lines := mapped(m.lines, to); lines != nil {
		m.tryAnySeed(lines)
	}
}

// mapped is lines with other names, as they parse alone; nil if they do not.
func mapped(lines []Command, names map[string]string) []Command {
	s := &Scenario{Title: "mapped", Lines: []Line{{Command: SetNodes{N: maxNodes}}}}
	for _, c := range lines {
		if isNodes(c) {
			s.Lines[0].Command = c
			continue
		}
		s.Lines = append(s.Lines, Line{Command: unread(mapWords(c.String(), names))})
	}
	parsed, err := Parse("", s.String())
	if err != nil {
		return nil
	}
	var read []Command
	for _, l := range parsed.Lines {
		read = append(read, l.Command)
	}
	if !slices.ContainsFunc(lines, isNodes) {
		read = read[1:]
	}
	return read
}

// unread is a line that is not parsed yet.
type unread string

func (u unread) String() string { return string(u) }
