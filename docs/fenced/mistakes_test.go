//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package fenced

import "testing"

// The six classic mistakes. Each is Store.call as somebody might have written it, and each looks
// right to whoever tries it with one holder and no crash. Compare them with the original.

// act is what a call is made for; it returns whether it changed the document.
type act func(*document) (changed bool)

// equality takes the first token for the only one. It must be "at least": after the first holder
// nobody is served any more, and somebody will turn the check off.
func equality(s *flawed, token uint64, do act) error {
	return s.locked(func(d *document) error {
		if token == 0 || d.High != 0 && token != d.High {
			return refusal(d, token)
		}
		d.High = token
		do(d)
		return nil
	})
}

// checkThenAct is tidy: it does not keep others waiting while the caller works out the new value.
// So they come in, and then it writes over what they wrote.
func checkThenAct(s *flawed, token uint64, do act) error {
	var seen document
	err := s.locked(func(d *document) error {
		if err := d.admit(token); err != nil {
			return err
		}
		d.High = token
		seen = *d
		return nil
	})
	if err != nil {
		return err
	}
	do(&seen)
	return s.locked(func(d *document) error {
		d.Values = seen.Values
		return nil
	})
}

// strict wants each token to be greater than the last. The holder's first call is its last one.
func strict(s *flawed, token uint64, do act) error {
	return s.locked(func(d *document) error {
		if token <= d.High {
			return refusal(d, token)
		}
		d.High = token
		do(d)
		return nil
	})
}

// zeroAccepted lets calls through that come without a token, for the programs that do not know of
// tokens yet. The paused one may be one of them.
func zeroAccepted(s *flawed, token uint64, do act) error {
	return s.locked(func(d *document) error {
		if token != 0 && token < d.High {
			return refusal(d, token)
		}
		d.High = max(d.High, token)
		do(d)
		return nil
	})
}

// notDurable keeps the mark in a variable, beside data that is on the disk. After a restart the
// data is there, and any token is good.
func notDurable(s *flawed, token uint64, do act) error {
	return s.locked(func(d *document) error {
		d.High = s.high
		if err := d.admit(token); err != nil {
			return err
		}
		s.high = token
		do(d)
		return nil
	})
}

// readUnfenced asks for tokens only where something changes. So the new holder reads, the old one
// writes, and the new one writes what it made of what it had read.
func readUnfenced(s *flawed, token uint64, do act) error {
	return s.locked(func(d *document) error {
		if err := d.admit(token); err != nil {
			return err
		}
		if changed := do(d); changed {
			d.High = token
		}
		return nil
	})
}

// flawed is a store whose calls are made by one of the functions above.
type flawed struct {
	*Store
	flaw func(s *flawed, token uint64, do act) error
	high uint64 // of notDurable
}

func (s *flawed) Enter(token uint64) error {
	return s.flaw(s, token, func(*document) bool { return false })
}

func (s *flawed) Get(token uint64, key string) (value string, err error) {
	err = s.flaw(s, token, func(d *document) bool {
		value = d.Values[key]
		return false
	})
	return value, err
}

func (s *flawed) Update(token uint64, key string, change func(string) string) error {
	return s.flaw(s, token, func(d *document) bool {
		d.Values[key] = change(d.Values[key])
		return true
	})
}

// locked is the part that none of them gets wrong.
func (s *flawed) locked(do func(*document) error) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	d, err := read(s.path)
	if err != nil {
		return err
	}
	if err := do(&d); err != nil {
		return err
	}
	return write(s.path, d)
}

// refusal is what the original says of a token, where it would have said something.
func refusal(d *document, token uint64) error {
	if token == 0 {
		return ErrNoToken
	}
	return ErrStale
}

// The checks that the store passes are worth something only if they fail where something is wrong,
// and nowhere else.
//
//spec:test Fence
func TestEachMistakeFailsTheOneCheckThatIsAboutIt(t *testing.T) {
	for _, m := range []struct {
		name  string
		flaw  func(*flawed, uint64, act) error
		fails string
	}{
		{"equality", equality, "a newer holder is served"},
		{"check-then-act", checkThenAct, "nothing gets in between the check and the write"},
		{"strict", strict, "a holder's second call is served"},
		{"zero-accepted", zeroAccepted, "a call without a token is refused"},
		{"not-durable", notDurable, "the mark outlives the process"},
		{"read-unfenced", readUnfenced, "reading and entering raise the mark"},
	} {
		wrong := conform(t, func(path string) (caller, error) {
			s, err := Open(path)
			return &flawed{Store: s, flaw: m.flaw}, err
		})
		if wrong[m.fails] == nil {
			t.Errorf("%s passes: %s", m.name, m.fails)
		}
		for name, err := range wrong {
			if t.Logf("%s fails: %s: %v", m.name, name, err); name != m.fails {
				t.Errorf("%s also fails: %s: %v", m.name, name, err)
			}
		}
	}
}
