package rpc

import (
	"context"
	"errors"
	"fmt"

	"ticketing/fsm"
)

// A pass is a session with the service, in which a request that is sent again is carried out once.
// The client's mutex guards it.
type pass struct {
	id   fsm.ClientID
	last uint64          // the last number given to a request
	open map[uint64]bool // the requests whose answers are waited for
}

// maxNumbers is how far apart the numbers of a session's open requests may be, see fsm. A client
// with one request that waits for long and many short ones comes to that, and opens another session.
const maxNumbers = 250

// A number names a request.
type number struct {
	client *Client
	pass   *pass
	seq    uint64
}

// number gives a new request its number, in a session that is opened if there is none with room. The
// caller calls done when it waits for the answer no longer.
func (c *Client) number(ctx context.Context) (number, error) {
	for {
		if n, ok := c.take(); ok {
			return n, nil
		}
		if err := c.openPass(ctx); err != nil {
			return number{}, err
		}
	}
}

func (c *Client) take() (number, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pass
	if p == nil || p.last+1-p.lowest() >= maxNumbers {
		return number{}, false
	}
	p.last++
	p.open[p.last] = true
	return number{c, p, p.last}, true
}

// lowest is the lowest open request, or the next one.
func (p *pass) lowest() uint64 {
	lowest := p.last + 1
	for seq := range p.open {
		lowest = min(lowest, seq)
	}
	return lowest
}

// Connect opens the client's session, which otherwise comes with its first request and costs that
// another round to the leader. Its error is an ErrNoLeader, ErrInvalid or ErrClosed.
func (c *Client) Connect(ctx context.Context) error {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	n, err := c.number(ctx)
	if err == nil {
		n.done()
	}
	return err
}

// openPass opens a session, unless somebody else has done so meanwhile.
func (c *Client) openPass(ctx context.Context) error {
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNoLeader, context.Cause(ctx))
	}
	if n, ok := c.take(); ok {
		n.done()
		return nil
	}
	y, _, err := seek[OpenReply](ctx, c, untilDone, "Lock.Open", &OpenArgs{Owner: c.options.Owner})
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		// A session that nobody knows of does no harm: it is forgotten in time.
		return fmt.Errorf("%w: no session was opened in time: %w", ErrNoLeader, context.Cause(ctx))
	case err != nil:
		return err
	case y.Status != OK:
		return refusal(y.Status, y.Detail, 0)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass = &pass{y.Client, 0, map[uint64]bool{}}
	return nil
}

// lowest is what a request says of the others, as of now.
func (n number) lowest() uint64 {
	n.client.mu.Lock()
	defer n.client.mu.Unlock()
	return n.pass.lowest()
}

// done tells that the answer is not waited for any more.
func (n number) done() {
	n.client.mu.Lock()
	defer n.client.mu.Unlock()
	delete(n.pass.open, n.seq)
}

// gone tells that the service has forgotten the session.
func (n number) gone() {
	n.client.mu.Lock()
	defer n.client.mu.Unlock()
	if n.client.pass == n.pass {
		n.client.pass = nil
	}
}
