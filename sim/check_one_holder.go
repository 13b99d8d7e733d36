package sim

import (
	"fmt"

	"ticketing/fsm"
)

// oneHolder follows who holds what by the results alone.
func oneHolder() invariant {
	return invariant{
		name:     "one-holder",
		sentence: "a key is granted only when its last tenure has ended",
		firstApply: func(w *World, n *node, a *fsm.Applied) string {
			if a.Result.Kind != fsm.Granted || a.Result.Again {
				return ""
			}
			if token, held := w.ledger.holder[a.Envelope.Key]; held {
				return fmt.Sprintf("entry %d grants %q with token %d while token %d holds it",
					a.Index, a.Envelope.Key, a.Result.Token, token)
			}
			return ""
		},
	}
}
