package sim

import (
	"fmt"

	"ticketing/fsm"
)

// tokensIncrease covers all keys: one counter.
func tokensIncrease() invariant {
	last := fsm.Token(0)
	return invariant{
		name:     "tokens-increase",
		sentence: "every Grant that succeeds gets a token greater than all before it",
		firstApply: func(w *World, n *node, a *fsm.Applied) string {
			if a.Result.Kind != fsm.Granted || a.Result.Again {
				return ""
			}
			if a.Result.Token <= last {
				return fmt.Sprintf("entry %d was granted token %d after %d", a.Index, a.Result.Token, last)
			}
			last = a.Result.Token
			return ""
		},
	}
}
