package sim

import (
	"fmt"

	"ticketing/fsm"
)

// holderServed is the other half: a resource that refuses everybody is safe, and of no use. Who
// holds a lock has the greatest token that was granted for it, so whoever has the greatest that the
// resource was shown may be the holder.
func holderServed() invariant {
	seen := map[string]fsm.Token{}
	return invariant{
		name:     "holder-served",
		sentence: "a resource refuses no call whose token is at least the greatest that it has been shown",
		shown: func(w *World, key string, token fsm.Token, passes bool) string {
			if !passes && token != 0 && token >= seen[key] {
				return fmt.Sprintf("token %d is refused, and the greatest shown before is %d", token, seen[key])
			}
			seen[key] = max(seen[key], token)
			return ""
		},
	}
}
