package sim

import (
	"fmt"

	"ticketing/fsm"
)

// grantedOnce watches both ends: what the table makes of a request's number, and what its client is
// told. With the numbers taken out of the log (-without request-ids) only the answers can show that
// a request was carried out twice.
func grantedOnce() invariant {
	type asked struct {
		client fsm.ClientID
		seq    uint64
	}
	tenures := map[asked]fsm.Token{}
	once := func(client fsm.ClientID, seq uint64, r fsm.Result) string {
		if client == 0 || r.Kind != fsm.Granted {
			return ""
		}
		of := asked{client, seq}
		if first, again := tenures[of]; again && first != r.Token {
			return fmt.Sprintf("request %d of client %d was granted token %d and, sent again, token %d",
				seq, client, first, r.Token)
		}
		tenures[of] = r.Token
		return ""
	}
	return invariant{
		name:     "granted-once",
		sentence: "a request makes one tenure at most, however often it is sent",
		firstApply: func(w *World, n *node, a *fsm.Applied) string {
			return once(a.Envelope.Client, a.Envelope.Seq, a.Result)
		},
		answer: func(w *World, n *node, q *fsm.Request, y *fsm.Reply) string {
			if y.Status != fsm.Answered {
				return ""
			}
			return once(q.Client, q.Seq, y.Result)
		},
	}
}
