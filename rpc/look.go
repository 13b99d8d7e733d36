package rpc

import (
	"context"
	"errors"
	"fmt"

	"ticketing/raft"
)

// Get tells who holds a key; held is false if nobody does. The answer was true at some moment after the
// call: any server may give it, but none that was deposed or is behind. If none is found that can be
// sure before the context ends, the error is an ErrNoLeader.
func (c *Client) Get(ctx context.Context, key string) (info Info, held bool, err error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return Info{}, false, err
	}
	defer end()
	y, _, err := seek[GetReply](ctx, c, untilDone, "Lock.Get", &GetArgs{Key: key})
	if err != nil {
		return Info{}, false, readError(err)
	}
	return y.Info, y.Status == OK, nil
}

// GetLocal tells what the server at addr has in its own table, whether it leads or not. That is
// stale by as much as the server is behind; it has applied the log up to the index returned.
func (c *Client) GetLocal(
	ctx context.Context, addr, key string,
) (info Info, held bool, applied raft.Index, err error) {
	var y GetReply
	err = c.askOne(ctx, addr, "Lock.Get", &GetArgs{Key: key, Local: true}, &y)
	return y.Info, y.Status == OK, y.Applied, err
}

// List returns all locks that are held, by key. They are read in pages, so that locks that come and
// go meanwhile may be in it or not; each page is as good as Get's answer.
func (c *Client) List(ctx context.Context) ([]Info, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return collect(func(after string) (*ListReply, error) {
		y, _, err := seek[ListReply](ctx, c, untilDone, "Lock.List", &ListArgs{After: after})
		return y, readError(err)
	})
}

// ListLocal is List for the table of the server at addr alone, see GetLocal. The index is that of
// the first page; later ones are no older.
func (c *Client) ListLocal(
	ctx context.Context, addr string,
) (all []Info, applied raft.Index, err error) {
	first := true
	all, err = collect(func(after string) (*ListReply, error) {
		var y ListReply
		err := c.askOne(ctx, addr, "Lock.List", &ListArgs{After: after, Local: true}, &y)
		if first {
			applied, first = y.Applied, false
		}
		return &y, err
	})
	return all, applied, err
}

// collect puts pages together.
func collect(page func(after string) (*ListReply, error)) (all []Info, err error) {
	for after := ""; ; after = all[len(all)-1].Key {
		y, err := page(after)
		if err != nil {
			return nil, err
		}
		all = append(all, y.Locks...)
		if !y.More || len(y.Locks) == 0 {
			return all, nil
		}
	}
}

// readError is for requests that change nothing, so that there is no outcome to be unsure of.
func readError(err error) error {
	if errors.Is(err, ErrUnknownOutcome) {
		return fmt.Errorf("%w: a server was found, but it did not answer in time", ErrNoLeader)
	}
	return err
}

// Transfer makes the leader hand its place to the server with that id, or to the one with the most of
// the log if it is 0. It returns who leads then, and where; that can be a third one. With an
// ErrTransfer the old leader leads, and takes requests as before; with an ErrInvalid the id is none that
// it can hand over to; with an ErrUnknownOutcome it may have handed over.
func (c *Client) Transfer(ctx context.Context, to raft.ServerID) (raft.ServerID, string, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return 0, "", err
	}
	defer end()
	y, _, err := seek[TransferReply](ctx, c, once, "Lock.Transfer", &TransferArgs{To: to})
	switch {
	case err != nil:
		return 0, "", err
	case y.Status == GivenUp:
		return 0, "", fmt.Errorf("%w: %s", ErrTransfer, y.Detail)
	case y.Status != OK:
		return 0, "", refusal(y.Status, y.Detail, 0)
	}
	return y.ID, y.Leader, nil
}

// Status asks the server at addr how it is, whether it leads or not.
func (c *Client) Status(ctx context.Context, addr string) (StatusReply, error) {
	var y StatusReply
	err := c.askOne(ctx, addr, "Lock.Status", &StatusArgs{}, &y)
	return y, err
}

// askOne asks one server, once, for what it knows by itself.
func (c *Client) askOne(ctx context.Context, addr, method string, args any, reply answer) error {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	l, err := c.dial(ctx, addr)
	if err != nil {
		return fmt.Errorf("asking %s: %w", addr, err)
	}
	if _, err := c.call(ctx, l, method, args, reply); err != nil {
		return fmt.Errorf("asking %s: %w", addr, err)
	}
	switch status, _ := reply.outcome(); status {
	case OK, NotFound:
		return nil
	case Busy:
		return fmt.Errorf("asking %s: too many requests wait there", addr)
	}
	return fmt.Errorf("asking %s: %w", addr, errDeposed)
}
