package sim

import (
	"slices"
	"strings"
)

// This file knows the words of a line: whom and what it names. Lines are changed as text and parsed
// again, so that every command of the language is covered by one piece of code.

// subject is what kind of line this is and whom it is about, as in "crash S1": all that a client does
// is of one kind.
func subject(c Command) string {
	if at, ok := c.(At); ok {
		c = at.Command
	}
	words := strings.Fields(c.String())
	if len(words) < 2 || strings.HasSuffix(words[0], ":") {
		return words[0]
	}
	return words[0] + " " + words[1]
}

// mapWords is a line with its names replaced: those of nodes and clients, where an arrow or a colon
// may stand beside them, and of keys.
func mapWords(line string, names map[string]string) string {
	words := strings.Fields(line)
	for i, word := range words {
		if from, to, arrow := strings.Cut(word, "->"); arrow {
			words[i] = renamed(from, names) + "->" + renamed(to, names)
			continue
		}
		if name, ok := strings.CutSuffix(word, ":"); ok {
			words[i] = renamed(name, names) + ":"
			continue
		}
		if key, value, ok := strings.Cut(word, "="); ok {
			words[i] = key + "=" + renamed(value, names)
			continue
		}
		words[i] = renamed(word, names)
	}
	return strings.Join(words, " ")
}

func renamed(name string, names map[string]string) string {
	if to, ok := names[name]; ok {
		return to
	}
	return name
}

// namesIn lists the nodes, clients and keys that lines name, in the order in which they appear.
func namesIn(lines []Command) (nodes, clients, keys []string) {
	add := func(list *[]string, name string) {
		if name != "" && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, c := range lines {
		if !endsSetUp(c) {
			continue
		}
		words := strings.FieldsFunc(c.String(), func(r rune) bool { return r == ' ' || r == '=' })
		for i, word := range words {
			from, to, arrow := strings.Cut(strings.TrimSuffix(word, ":"), "->")
			for _, name := range []string{from, to} {
				switch {
				case Actor(name).Node() != 0:
					add(&nodes, name)
				case arrow && name != "*" || strings.HasSuffix(word, ":"):
					add(&clients, name)
				}
			}
			if i > 0 && strings.HasSuffix(words[i-1], ":") && i+1 < len(words) {
				add(&keys, words[i+1])
			}
		}
	}
	return nodes, clients, keys
}

// nodesOf lists the servers that a line names, one of the set-up too.
func nodesOf(c Command) []string {
	switch c := c.(type) {
	case SetClock:
		return []string{string(c.Actor)}
	case SetDisk:
		return []string{string(c.Node)}
	case SetNode:
		return []string{string(NodeActor(c.Node))}
	case SetNetwork:
		return []string{string(c.From), string(c.To)}
	}
	nodes, _, _ := namesIn([]Command{c})
	return nodes
}
