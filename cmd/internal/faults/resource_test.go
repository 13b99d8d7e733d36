package faults

import (
	"fmt"
	"sync"

	"ticketing/fsm"
)

// resource is what a lock protects: it takes a write only with a token that is no smaller than any
// it has seen.
type resource struct {
	mu     sync.Mutex
	newest fsm.Token
	writes []fsm.Token // that were taken
	late   int         // that were refused
}

func (r *resource) write(token fsm.Token) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.newest {
		r.late++
		return fmt.Errorf("token %d comes after token %d", token, r.newest)
	}
	r.newest = token
	r.writes = append(r.writes, token)
	return nil
}
