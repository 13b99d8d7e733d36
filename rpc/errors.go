package rpc

import (
	"errors"
	"fmt"

	"ticketing/fsm"
)

// Errors of a Client and its Locks, to be asked for with errors.Is. Each says who found it out:
// this client by itself, or the service.
var (
	// ErrHeld is what TryLock returns when somebody else holds the key, as the service says. The
	// error is a *HeldError.
	ErrHeld = errors.New("the lock is held")

	// ErrAlreadyHeld says that this very Client holds the key, or waits for it, in another call.
	// A lock is not reentrant: a second Lock would wait for the first to end.
	ErrAlreadyHeld = errors.New("this client holds the lock already, or waits for it")

	// ErrNotHeld says that a lock was over before it was given back, as the service says or this
	// client's clock. Somebody else may have held it since: look at what was done meanwhile.
	ErrNotHeld = errors.New("the lock is not held, or not any more")

	// ErrLost says that the lease ran out on this client's clock. It is an ErrNotHeld too.
	ErrLost = fmt.Errorf("%w: its lease has run out", ErrNotHeld)

	// ErrUnknownOutcome says that a request left this client and no answer came that tells whether
	// it was carried out, before the context ended; or that the service has forgotten this client
	// meanwhile, as it does with those that were silent for longest when there are too many. Until
	// then the client asks again, whoever leads: a request is carried out once.
	//
	// After it the client sends nothing more for a lock. Its connection is closed, and a leader that
	// sees this gives the lock back, by token, once the Grant is applied. If that leader is gone as
	// well, the lease ends the lock.
	ErrUnknownOutcome = errors.New("it is not known whether the request was carried out")

	// ErrNoLeader says that no server took the request: nothing was done. If it was a server's
	// refusal, the error is a *NotLeaderError.
	ErrNoLeader = errors.New("no leader was found; nothing was done")

	// ErrInvalid says that a key, an owner or a lease is none that the service takes. Nothing was
	// done, and asking again is no use.
	ErrInvalid = errors.New("the request is not valid")

	// ErrLeaseRange says that a lease is zero, negative, longer than 24 h, or shorter than the
	// service allows, which is at least twice its longest election timeout unless it was told
	// otherwise: a lock should outlive its leader. The first three this client finds out by
	// itself. It is an ErrInvalid too.
	ErrLeaseRange = fmt.Errorf("%w: the lease is out of range", ErrInvalid)

	// ErrTooMany says that as many wait for locks, or hold them, as the service takes. Nothing was
	// done; later there may be room.
	ErrTooMany = errors.New("the service has no room for another lock or waiter")

	// ErrClosed says that the Client's Close was called.
	ErrClosed = errors.New("the client is closed")
)

// HeldError says who holds a key that TryLock was refused. It is an ErrHeld.
type HeldError struct {
	Key   string
	Token fsm.Token // 0 if the key is promised to somebody by an entry that is not applied yet
	Owner string    // its label
}

func (e *HeldError) Error() string {
	if e.Token == 0 {
		return fmt.Sprintf("%v: %q is promised to somebody else", ErrHeld, e.Key)
	}
	return fmt.Sprintf("%v: %q, with token %d, owner %q", ErrHeld, e.Key, e.Token, e.Owner)
}

// Is reports whether the target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// NotLeaderError is the refusal of a server that does not lead, for a client with
// Options.NoHints. It is an ErrNoLeader.
type NotLeaderError struct {
	Addr   string // who was asked
	Leader string // who leads, as that server believes; "" if it does not know
}

func (e *NotLeaderError) Error() string {
	if e.Leader == "" {
		return fmt.Sprintf("the server at %s does not lead, and knows of no leader", e.Addr)
	}
	return fmt.Sprintf("the server at %s does not lead; the one at %s does", e.Addr, e.Leader)
}

// Is reports whether the target is ErrNoLeader.
func (e *NotLeaderError) Is(target error) bool { return target == ErrNoLeader }
