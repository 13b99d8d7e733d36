package sim

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/fsm/trace"
)

// This file is the words for what clients are told, and for commands that change nothing.

// again is what a client is told that has sent a request again.
func (s *teller) again(e fsm.Envelope, result string) string {
	told := ownerOf(e) + " is told again that "
	var token uint64
	switch {
	case scan(result, "Granted{%d}", &token):
		return told + fmt.Sprintf("it holds %s#%d", s.keyAnd(e.Key), token)
	case result == fsm.Result{Kind: fsm.Released}.String() && e.Token == 0:
		return told + e.Key + " is released"
	case result == fsm.Result{Kind: fsm.Released}.String():
		return told + fmt.Sprintf("%s#%d is released", s.keyAnd(e.Key), e.Token)
	case result == fsm.Result{Kind: fsm.Extended}.String():
		return told + fmt.Sprintf("%s#%d has a new lease", s.keyAnd(e.Key), e.Token)
	}
	return told + fmt.Sprintf("%s#%d is over", s.keyAnd(e.Key), e.Token)
}

// nothingWords says why a command has changed nothing.
func nothingWords(e fsm.Envelope, result string) string {
	switch {
	case e.Kind == fsm.Noop:
		return ""
	case result == fsm.Result{Kind: fsm.NotFound}.String():
		return " finds nothing to " + e.Kind.String()
	case result == fsm.Result{Kind: fsm.SessionUnknown}.String():
		return ": no such session, no-op"
	case result == fsm.Result{Kind: fsm.NumberReused}.String():
		return " has the number of another request: no-op"
	case result == fsm.Result{Kind: fsm.TableFull}.String():
		return " finds the table full"
	}
	return " is done with: no-op"
}

// answer tells what a client hears, unless its row has told it.
func (s *teller) answer(m *moment) {
	c := clientOf(m.Event)
	words := answerWords(m.Node, m.Text, c)
	if c.Status == stateNothing {
		words = m.Node + " has no token for " + c.Key + ": it sends nothing"
	}
	if words != "" && !s.told[m.ID] {
		s.add(m.Event, words, toneNone)
	}
}

func answerWords(name, state string, c *trace.ClientRecord) string {
	switch state {
	case stateNotFound:
		if c.Status == fsm.Expiring.String() {
			return fmt.Sprintf("%s is refused: the Expire of #%d is in the log", name, c.Token)
		}
	case stateExtended:
		return fmt.Sprintf("%s hears that #%d has a new lease", name, c.Token)
	case stateForgotten:
		return name + " is told that its session is over: nothing was done"
	case stateGranted:
		return fmt.Sprintf("%s hears that it holds #%d", name, c.Token)
	case stateRejected:
		return name + " is refused: another holds " + c.Key
	case stateUnknown:
		return name + " is told that nobody knows what became of its request"
	case stateLate:
		if c.Token == 0 {
			return name + " is told that this request is done with: it may ask anew"
		}
		return fmt.Sprintf("%s hears of #%d too late and gives it back", name, c.Token)
	case stateNotLeader:
		return name + " is told that " + c.Server + " does not lead"
	case stateInvalid:
		return name + "'s request is invalid"
	}
	return ""
}
