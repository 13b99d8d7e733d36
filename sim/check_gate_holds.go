package sim

import (
	"fmt"

	"ticketing/fsm"
)

// gateHolds is rule L2, seen from its end: of two Grants of a key in the log of which both could
// have succeeded, the second is rejected. It is not watched where the gate is taken away. A Release
// whose session has ended, or whose number its client has closed, by the time that it is applied
// frees nothing. The leader has counted on it, and the Grant behind it may be rejected.
func gateHolds() invariant {
	spent := map[string]bool{} // keys that such a Release was for, until they are granted again
	return invariant{
		name:     "gate-holds",
		sentence: "behind the gate no Grant is proposed that another one in the log makes fail",
		firstApply: func(w *World, n *node, a *fsm.Applied) string {
			key := a.Envelope.Key
			switch {
			case a.Envelope.Kind == fsm.Release && (a.Result.Kind == fsm.SessionUnknown || a.Result.Kind == fsm.ResultNoop):
				spent[key] = true
			case a.Result.Kind == fsm.Granted:
				delete(spent, key)
			case a.Result.Kind == fsm.GrantRejected && !w.config.rules.NoGate && !spent[key]:
				return fmt.Sprintf("entry %d, %q, is rejected: token %d holds the key",
					a.Index, a.Envelope.String(), a.Holder)
			}
			return ""
		},
	}
}
