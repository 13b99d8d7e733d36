package sim

import (
	"ticketing/fsm"
	"ticketing/raft"
)

// This file is what a client makes of its answers.

// answer sends a replica's reply to the client whose call it answers.
func (w *World) answer(n *node, y *fsm.Reply) {
	call, ok := n.calls[y.Call]
	if !ok && w.answerChange(n, y) {
		return
	}
	if !ok {
		w.answerRead(n, y) // or nobody has asked: it is a proposal of the scenario's own
		return
	}
	delete(n.calls, y.Call)
	if y.Status == fsm.Answered {
		w.told = max(w.told, y.Index)
	}
	m := &clientMessage{request: call.request, reply: *y}
	w.checks.answer(w, n, &m.request, &m.reply)
	f := flight{from: n.index, to: call.client, kind: messageRequestReply, client: m}
	f.id = w.traceReply(n, &f)
	w.send(&f)
}

// clientReceives is an answer's arrival.
func (w *World) clientReceives(c *client, f *flight) {
	if c.asleep {
		w.lose(f, "asleep")
		return
	}
	if c.paused {
		c.inbox = append(c.inbox, *f)
		return
	}
	w.steps++
	q, y := f.client.request, f.client.reply
	w.noteHeard(c, &q, &y)
	if !c.open || q.Seq != c.request.Seq || q.Client != c.request.Client {
		w.traceAnswer(c, f, "ignored")
		w.ignored(c, q, y)
		return
	}
	c.unanswered = 0
	switch y.Status {
	case fsm.Superseded:
		w.traceAnswer(c, f, stateWaiting)
	case fsm.NotLeader:
		w.counters[countNotLeader]++
		w.redirect(c, f)
	case fsm.Busy:
		w.redirect(c, f)
	case fsm.Unknown:
		w.counters[countUnknown]++
		w.conclude(c, f, stateUnknown)
	case fsm.Held:
		w.counters[countHeld]++
		w.conclude(c, f, stateRejected)
	case fsm.Expiring:
		w.counters[countExtendRefused]++
		w.drop(c, q)
		w.conclude(c, f, stateNotFound)
	case fsm.Full:
		w.conclude(c, f, stateRejected)
	case fsm.Invalid:
		w.conclude(c, f, stateInvalid)
	case fsm.Answered:
		w.concluded(c, f)
	}
}

// redirect follows the hint of a server that does not lead, or tries the next one after a while. An
// answer to an older attempt says nothing about the server that the client has turned to since.
func (w *World) redirect(c *client, f *flight) {
	if f.client.request.Attempt != c.request.Attempt && w.actors[f.from].node.id != c.server {
		w.traceAnswer(c, f, stateWaiting)
		return
	}
	if c.via != 0 {
		w.conclude(c, f, stateNotLeader)
		return
	}
	w.traceAnswer(c, f, stateWaiting)
	hint := f.client.reply.Leader
	if hint != 0 && hint != c.server {
		c.server = hint
		w.ask(c)
		return
	}
	w.elsewhere(c)
	w.wakeClient(c, raft.Time(w.config.heartbeat))
}

func (w *World) conclude(c *client, f *flight, state string) {
	c.open, c.state = false, state
	c.timerGen++
	w.traceAnswer(c, f, state)
}

// concluded takes the result of a committed command.
func (w *World) concluded(c *client, f *flight) {
	q, y := f.client.request, f.client.reply
	switch y.Result.Kind {
	case fsm.Opened:
		c.session = y.Result.Client
		if c.wanted == nil {
			w.conclude(c, f, stateConnected)
			return
		}
		w.traceAnswer(c, f, stateWaiting)
		w.pursue(c, *c.wanted)
	case fsm.SessionUnknown: // what it wants next, it wants in a new session
		c.session = 0
		w.conclude(c, f, stateForgotten)
	case fsm.Granted:
		w.granted(c, f)
	case fsm.Extended:
		w.extended(c, f)
	case fsm.GrantRejected, fsm.TableFull:
		w.conclude(c, f, stateRejected)
	case fsm.NumberReused:
		w.conclude(c, f, stateInvalid)
	case fsm.Released:
		w.drop(c, q)
		w.conclude(c, f, stateReleased)
	case fsm.NotFound:
		w.drop(c, q)
		w.conclude(c, f, stateNotFound)
	default: // Noop: what this request was granted is over
		w.conclude(c, f, stateLate)
	}
}

// drop ends the client's belief in a tenure. The token stays: a client that goes wrong would still
// use it.
func (w *World) drop(c *client, q fsm.Request) {
	if h := c.tokens[q.Key]; h.token == q.Token || q.Token == 0 {
		c.tokens[q.Key] = holding{token: h.token}
	}
}

// granted counts the lease from before the attempt was sent on which the leader proposed the Grant.
// If that is over by now, the lock is given back, with its token.
func (w *World) granted(c *client, f *flight) {
	q, y := f.client.request, f.client.reply
	attempt := max(int(y.Attempt), 1)
	deadline := c.sentAt[min(attempt, len(c.sentAt))-1] + raft.Time(q.LeaseMS)*1000
	c.token = y.Result.Token
	if c.clock.at(w.now) < deadline {
		if c.tokens[q.Key].token != y.Result.Token { // and not told again
			w.countBeliefs(c, q.Key)
		}
		c.tokens[q.Key] = holding{token: y.Result.Token, deadline: deadline}
		w.conclude(c, f, stateGranted)
		w.checks.heard(w, c, y.Result.Token)
		return
	}
	w.counters[countLateGrants]++
	w.conclude(c, f, stateLate)
	w.giveBack(c, q.Key, y.Result.Token)
}

// ignored looks at an answer that the client no longer waits for. A Grant among them would be a
// ghost.
func (w *World) ignored(c *client, q fsm.Request, y fsm.Reply) {
	granted := y.Status == fsm.Answered && y.Result.Kind == fsm.Granted
	if granted && !c.open && y.Result.Token != c.tokens[q.Key].token {
		w.giveBack(c, q.Key, y.Result.Token)
	}
}

func (w *World) giveBack(c *client, key string, token fsm.Token) {
	state, last := c.state, c.token
	w.release(c, ReleaseLock{Client: c.name, Key: key, TokenSet: true, Token: uint64(token)})
	c.state, c.token = state, last
}
