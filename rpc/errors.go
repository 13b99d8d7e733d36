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
	// meanwhile, see ErrForgotten. Until then the client asks again, whoever leads: a request is
	// carried out once.
	//
	// After it the client sends nothing more for a lock. Its connection is closed, and a leader
	// that sees this gives the lock back, by token, once the Grant is applied. If that leader is
	// gone as well, the lease ends the lock.
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

	// ErrExpiring says that an Extend came too late: the lease has run out by the leader's count,
	// and the end of the lock is on its way. It is an ErrNotHeld too.
	ErrExpiring = fmt.Errorf("%w: its lease has run out, and its end is on the way", ErrNotHeld)

	// ErrTokenAhead says that no such token has been given out yet: a mistyped one, or one of
	// another cluster. If it was given out by this one, then the service has lost what it knew, and
	// nothing that it says of locks is to be trusted. It is an ErrNotHeld too.
	ErrTokenAhead = fmt.Errorf("%w: no such token has been given out yet", ErrNotHeld)

	// ErrTooMany says that the service has no room: it is an ErrQueueFull or an ErrTableFull.
	// Nothing was done; later there may be room.
	ErrTooMany = errors.New("the service has no room for another lock or waiter")

	// ErrQueueFull says that too many requests wait there. Some servers say so at once, others keep
	// a client asking until its context ends.
	ErrQueueFull = fmt.Errorf("%w: too many requests wait", ErrTooMany)

	// ErrTableFull says that as many locks are held as there may be.
	ErrTableFull = fmt.Errorf("%w: as many locks are held as there may be", ErrTooMany)

	// ErrForgotten says that the service has ended this client's session, as it does with those
	// that were silent for longest when there are too many. A request that may have been carried
	// out before is not sent again then: it is an ErrUnknownOutcome as well.
	ErrForgotten = errors.New("the service has forgotten this client")

	// ErrNumberReused, ErrNumberClosed and ErrNumberTooFar say that a request's number is none that
	// its session can use: it names another request, or one whose answer is not waited for any
	// more, or is 256 or more above the lowest that is. This Client sends no such number. Two
	// programs that share a session do, such as a virtual machine and its copy. Nothing was done;
	// each needs a Client of its own.
	ErrNumberReused = errors.New("the number names another request of this session")
	ErrNumberClosed = errors.New("the request's number is below its session's lowest open one")
	ErrNumberTooFar = errors.New("the request's number is too far above its session's lowest open one")

	// ErrMembers says that a change of the servers can never be made so, and why. Nothing was done.
	ErrMembers = errors.New("the members cannot be changed so")

	// ErrChanging says that it was too early for a change until the context ended: another one is on
	// its way, or a learner has not caught up. Nothing was done.
	ErrChanging = errors.New("the members cannot be changed yet")

	// ErrTransfer says that leadership was not handed over: the server that led leads.
	ErrTransfer = errors.New("leadership was not handed over")

	// ErrClosed says that the Client's Close was called.
	ErrClosed = errors.New("the client is closed")
)

// refusal is the error for an answer that is none of those which a method handles by itself. Detail
// is the service's word for what is wrong; least is not 0 if the lease was too short.
func refusal(status Status, detail string, least int64) error {
	switch status {
	case NotFound:
		return ErrNotHeld
	case Expiring:
		return ErrExpiring
	case Ahead:
		return ErrTokenAhead
	case Full, Busy:
		return ErrQueueFull
	case TableFull:
		return ErrTableFull
	case Gone:
		return ErrForgotten
	case Reused:
		return ErrNumberReused
	case Below:
		return ErrNumberClosed
	case TooFar:
		return ErrNumberTooFar
	case Invalid:
		if least > 0 {
			return fmt.Errorf("%w: %s", ErrLeaseRange, detail)
		}
		return fmt.Errorf("%w: %s", ErrInvalid, detail)
	}
	return fmt.Errorf("%w: it is answered with status %d, which this program does not know", ErrInvalid,
		status)
}

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
