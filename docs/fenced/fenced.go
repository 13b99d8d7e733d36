// Package fenced is a small store that checks fencing tokens. It is here to be copied: take the
// files into your own program, or only the rule and the order of the steps.
//
// # Why
//
// A lock with a lease cannot keep a client from acting after the lease is over. The client may have
// been paused between looking at its clock and writing, or its write may have been slow on the way.
// So what the lock protects has the last word. Each grant of a lock comes with a token that is
// greater than all before it, the client shows it with every call, and whoever comes with a smaller
// one than the store has seen is late.
//
// # The rule
//
//   - A call is accepted if and only if its token is at least the greatest token that the store has
//     accepted so far, its mark. Not "greater than": a holder calls more than once.
//   - Each accepted call raises the mark to its token, reads and [Store.Enter] too. If a read did
//     not, an older holder's write could still land between what the new holder reads and what it
//     writes.
//   - Token 0 is refused: it is what a program has that has no token.
//   - The mark is part of the data. Both are in one file that is replaced as a whole, or a crash
//     could bring back the one without the other.
//   - From the check to the end of the write nothing else gets in: they are one step.
//
// # What is promised
//
// When a call returns nil, what it did is on the disk, the mark as well. When it returns
// [ErrStale] or [ErrNoToken], it did nothing. After any other error it has been done whole or not
// at all, and the next call says which; the mark never falls. Several goroutines may use a Store,
// and several processes the same file: calls wait for one another, by a lock on a second file
// beside it that the system gives back when a process ends. A process that stands still within a
// call makes the others wait, for as long as it stands. A file that cannot be read as it was
// written is [ErrCorrupt], and is left as it is.
//
// # What you owe
//
// One lock guards one store: tokens of two lock services cannot be compared, and those of two
// locks say nothing about each other. The store believes what it is told: tokens are no
// passwords, and somebody who makes up a large one locks all others out. Whoever deletes the file
// deletes the mark.
package fenced

import (
	"errors"
	"fmt"
	"sync"
)

// What a call can be refused for, for errors.Is. The error itself names both tokens.
var (
	ErrStale   = errors.New("the lock was granted again since")
	ErrNoToken = errors.New("a call needs the token of a lock")
)

// Store is a file of keys and values. It keeps nothing in memory, so that what another process
// changes is seen by the next call.
type Store struct {
	path string
	mu   sync.Mutex // queues goroutines here, so that only one of them waits for the file
}

// Open returns the store in a file, a new one if there is none. It needs no token, and the mark
// stays: the first call of a holder raises it.
func Open(path string) (*Store, error) {
	if _, err := read(path); err != nil {
		return nil, err
	}
	return &Store{path: path}, nil
}

// Enter shows a token and does nothing else. A new holder that will not read first calls it, so
// that no older holder's write lands any more.
func (s *Store) Enter(token uint64) error {
	return s.call(token, func(*document) bool { return false })
}

// Get returns the value of a key, "" if it has none.
func (s *Store) Get(token uint64, key string) (value string, err error) {
	err = s.call(token, func(d *document) bool {
		value = d.Values[key]
		return false
	})
	return value, err
}

// Put sets the value of a key.
func (s *Store) Put(token uint64, key, value string) error {
	return s.Update(token, key, func(string) string { return value })
}

// Update sets the value of a key to what change makes of the present one. All other calls wait
// meanwhile, so change must not call the store.
func (s *Store) Update(token uint64, key string, change func(value string) string) error {
	return s.call(token, func(d *document) bool {
		d.Values[key] = change(d.Values[key])
		return true
	})
}

// call is the rule. What it is called for returns whether it has changed the document.
func (s *Store) call(token uint64, act func(*document) (changed bool)) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	d, err := read(s.path)
	if err != nil {
		return err
	}
	if err := d.admit(token); err != nil {
		return err
	}
	raised := token > d.High
	d.High = token
	if changed := act(&d); !changed && !raised {
		// Whoever wrote what was read may have been killed before it had synced the name.
		return syncDirectory(s.path)
	}
	return write(s.path, d)
}

// admit compares a token with the mark.
func (d *document) admit(token uint64) error {
	var why error
	switch {
	case token == 0:
		why = ErrNoToken
	case token < d.High:
		why = ErrStale
	default:
		return nil
	}
	return fmt.Errorf("token %d is refused, token %d has been seen: %w", token, d.High, why)
}
