package sim

import (
	"fmt"

	"ticketing/fsm"
)

// fencedWrites is one half of what a resource is for: nothing that comes late gets in. It remembers
// by itself what each resource has been shown, whatever that remembers, and counts from the moment
// at which the resource compares: before that it cannot know.
func fencedWrites() invariant {
	seen := map[string]fsm.Token{}
	return invariant{
		name:     "fenced-writes",
		sentence: "a resource carries out no write without a token, nor with a smaller one than it has been shown",
		shown: func(w *World, key string, token fsm.Token, passes bool) string {
			seen[key] = max(seen[key], token)
			return ""
		},
		landed: func(w *World, key string, token fsm.Token) string {
			if token == 0 || token < seen[key] {
				return fmt.Sprintf("a write with token %d is carried out, after token %d was shown", token, seen[key])
			}
			return ""
		},
	}
}
