package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// holds reports whether a condition holds now, and what is instead.
func (w *World) holds(cond Cond) (ok bool, is string) {
	switch c := cond.(type) {
	case CondLeader:
		return w.holdsLeader(c)
	case CondNode:
		return w.holdsNode(c)
	case CondInFlight:
		return w.holdsInFlight(c)
	case CondHolder:
		return w.holdsTable(c.Key, c.Client, c.Token, c.At)
	case CondFree:
		return w.holdsTable(c.Key, "", 0, c.At)
	case CondClient:
		k := w.client(c.Client)
		if k == nil {
			return false, fmt.Sprintf("there is no client %s", c.Client)
		}
		is = fmt.Sprintf("%s is %s", k.name, k.answer())
		return k.state == c.State && (c.Token == 0 || uint64(k.token) == c.Token), is
	case CondCount:
		n, _ := counterNamed(c.Name)
		return compare(w.counters[n], c.Op, c.N), fmt.Sprintf("it is %d", w.counters[n])
	case CondConverged:
		return w.holdsConverged()
	case CondViolated:
		for _, v := range w.broken {
			if v.Invariant == c.Invariant {
				return true, ""
			}
		}
		return false, "it has held so far"
	}
	return false, "no such condition"
}

func (c *client) answer() string {
	state := c.state
	if state == "" {
		state = "idle"
	}
	if c.token != 0 {
		return fmt.Sprintf("%s token=%d", state, c.token)
	}
	return state
}

func compare(a int64, op string, b int64) bool {
	switch op {
	case "=":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

// leader is the leader of the highest term among live nodes, nil if none leads.
func (w *World) leader() *node {
	var leader *node
	for _, n := range w.nodes {
		if n.alive && n.status.Role == raft.Leader && (leader == nil || n.status.Term > leader.status.Term) {
			leader = n
		}
	}
	return leader
}

func (w *World) holdsLeader(c CondLeader) (bool, string) {
	l := w.leader()
	if l == nil {
		return c.Node == 0, "there is no leader"
	}
	is := fmt.Sprintf("%s leads term %d", l.name, l.status.Term)
	return c.Node != 0 && l.id == c.Node && (c.Term == 0 || l.status.Term == c.Term), is
}

// holdsTable looks at who holds a key in applied tables; no client means that it is free.
func (w *World) holdsTable(key string, client Actor, token uint64, at Actor) (bool, string) {
	nodes := w.nodes
	if at != Everyone {
		n := w.mostApplied()
		if at != "" {
			n = w.node(at.Node())
		}
		if n == nil || !n.alive {
			return false, "that node is down"
		}
		nodes = []*node{n}
	}
	for _, n := range nodes {
		if !n.alive || at == Everyone && !w.belongs(n) {
			continue
		}
		tenure, held := n.replica.Table().Holder(key)
		if held != (client != "") || held && (tenure.Owner != string(client) || token != 0 && uint64(tenure.Token) != token) {
			return false, fmt.Sprintf("at %s %s", n.name, tenureText(tenure, held))
		}
	}
	return true, ""
}

func tenureText(t fsm.Tenure, held bool) string {
	if !held {
		return "it is free"
	}
	return fmt.Sprintf("%s holds it with token %d", t.Owner, t.Token)
}

func (w *World) mostApplied() *node {
	var most *node
	for _, n := range w.nodes {
		if n.alive && (most == nil || n.status.LastApplied > most.status.LastApplied) {
			most = n
		}
	}
	return most
}

// holdsConverged: one leader, and the same log, commitIndex and table at all live nodes that it counts
// among the servers.
func (w *World) holdsConverged() (bool, string) {
	l := w.leader()
	if l == nil {
		return false, "there is no leader"
	}
	if l.status.CommitIndex < l.status.LastIndex {
		return false, fmt.Sprintf("%s has entries to %d and has committed %d", l.name, l.status.LastIndex, l.status.CommitIndex)
	}
	for _, n := range w.nodes {
		switch {
		case !n.alive || !w.belongs(n):
		case n != l && n.status.Role == raft.Leader:
			return false, fmt.Sprintf("%s and %s both lead", l.name, n.name)
		case n.status.LastIndex != l.status.LastIndex || last(n.chains) != last(l.chains):
			return false, fmt.Sprintf("the logs of %s and %s differ", l.name, n.name)
		case n.status.CommitIndex != l.status.CommitIndex || n.status.LastApplied != l.status.LastApplied:
			return false, fmt.Sprintf("%s has committed %d, %s %d", l.name, l.status.CommitIndex, n.name, n.status.CommitIndex)
		case n.replica.Table().Hash() != l.replica.Table().Hash():
			return false, fmt.Sprintf("the tables of %s and %s differ", l.name, n.name)
		}
	}
	return true, ""
}
