//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package fenced

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// This file is what a fenced store must do, check by check. The store of this package must pass all
// of them; mistakes_test.go has six that each fail one.

// caller is what is judged.
type caller interface {
	Enter(token uint64) error
	Get(token uint64, key string) (string, error)
	Update(token uint64, key string, change func(string) string) error
}

// subject is a store in a file of its own.
type subject struct {
	path string
	open func(path string) (caller, error)
}

// A check is one sentence of the rule. It returns what is wrong.
type check struct {
	name string
	run  func(s subject, c caller) error
}

func checks() []check {
	return []check{
		{"an older token is refused and changes nothing", refusesOlder},
		{"a newer holder is served", servesNewer},
		{"a holder's second call is served", servesAgain},
		{"a call without a token is refused", refusesNoToken},
		{"the mark outlives the process", remembers},
		{"reading and entering raise the mark", readsRaise},
		{"nothing gets in between the check and the write", isOneStep},
	}
}

func refusesOlder(s subject, c caller) error {
	return errors.Join(
		taken(s, c, 5, "new"),
		refused(s, c, 4, ErrStale),
		refused(s, c, 1, ErrStale),
	)
}

func servesNewer(s subject, c caller) error {
	return errors.Join(
		taken(s, c, 1, "old"),
		taken(s, c, 2, "new"),
		taken(s, c, 1<<63, "far on"), // tokens have gaps: there are other locks
	)
}

func servesAgain(s subject, c caller) error {
	return errors.Join(
		taken(s, c, 7, "one"),
		taken(s, c, 7, "two"),
	)
}

func refusesNoToken(s subject, c caller) error {
	return errors.Join(
		refused(s, c, 0, ErrNoToken), // whether or not anybody has come before
		taken(s, c, 3, "three"),
		refused(s, c, 0, ErrNoToken),
	)
}

func remembers(s subject, c caller) error {
	err := taken(s, c, 9, "new")
	again, openErr := s.open(s.path)
	if openErr != nil {
		return openErr
	}
	return errors.Join(err, refused(s, again, 8, ErrStale))
}

func readsRaise(s subject, c caller) error {
	_, err := c.Get(2, "report")
	err = errors.Join(err, refused(s, c, 1, ErrStale))
	s.path += ".entered"
	c, openErr := s.open(s.path)
	if openErr != nil {
		return openErr
	}
	return errors.Join(err, c.Enter(2), refused(s, c, 1, ErrStale))
}

// isOneStep stands still between a call's check and its write, and sends a newer holder there.
func isOneStep(s subject, c caller) error {
	newer := make(chan error, 1)
	looked, gotIn := 0, false
	var failed error
	err := c.Update(1, "report", func(string) string {
		looked++
		if gotIn, failed = free(s.path); gotIn {
			newer <- put(c, 2, "new")
		} else {
			go func() { newer <- put(c, 2, "new") }() // it waits until this call is over
		}
		return "old"
	})
	switch newerErr := <-newer; {
	case failed != nil:
		return failed
	case err != nil || looked != 1:
		return fmt.Errorf("the older holder's change was made %d times: %w", looked, err)
	case gotIn:
		return errors.Join(errors.New("another call can get in there"), holds(s, "new"))
	case newerErr != nil: // whether it is served is another check's business
		return holds(s, "old")
	}
	return holds(s, "new")
}

func put(c caller, token uint64, value string) error {
	return c.Update(token, "report", func(string) string { return value })
}

func taken(s subject, c caller, token uint64, value string) error {
	if err := put(c, token, value); err != nil {
		return fmt.Errorf("%d should be served: %w", token, err)
	}
	return holds(s, value)
}

func refused(s subject, c caller, token uint64, why error) error {
	before, err := read(s.path)
	if err != nil {
		return err
	}
	if err := put(c, token, "wrong"); !errors.Is(err, why) {
		return fmt.Errorf("%d should be refused, and it says: %v", token, err)
	}
	return holds(s, before.Values["report"])
}

// holds reads the file without asking the store.
func holds(s subject, want string) error {
	d, err := read(s.path)
	if err == nil && d.Values["report"] != want {
		err = fmt.Errorf("the store has %q, not %q", d.Values["report"], want)
	}
	return err
}

// free reports whether another process could begin a call now.
func free(path string) (bool, error) {
	f, err := os.Open(path + ".lock")
	if err != nil {
		return false, err
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil, nil
}

// conform returns what is wrong with a store, by the check that says so.
func conform(t *testing.T, open func(path string) (caller, error)) map[string]error {
	t.Helper()
	wrong := map[string]error{}
	for _, check := range checks() {
		s := subject{filepath.Join(t.TempDir(), "store"), open}
		c, err := s.open(s.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := check.run(s, c); err != nil {
			wrong[check.name] = err
		}
	}
	return wrong
}

//spec:test Fence
func TestTheStoreKeepsTheRule(t *testing.T) {
	for name, err := range conform(t, func(path string) (caller, error) { return Open(path) }) {
		t.Errorf("%s: %v", name, err)
	}
}
