package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"ticketing/raft"
	"ticketing/rpc"
)

const memberAbout = `member changes which servers there are, one at a time, and returns when that is
committed. A new server is a learner first, which does not vote; promote waits
until it has caught up, for -timeout at most. To replace a server: add another
one, promote it, remove the old one, stop that. An id is never used again: a
server that has lost its directory has forgotten its votes. lockd -join adds the
server that it starts by itself. Whoever leads may be removed like any other.

  list              who they are, and how many entries each is behind
  add ID ADDRESS    a learner; ADDRESS is where all others can reach it
  promote ID        it votes from now on
  remove ID         it is no member any more`

// errMemberForm says how member is called.
var errMemberForm = errors.New("it is member list, add ID HOST:PORT, promote ID or remove ID")

// parseMember reads what stands behind member.
func (c *command) parseMember(words []string) error {
	if len(words) == 0 {
		return errMemberForm
	}
	c.verb = words[0]
	takes, ok := map[string]int{"list": 1, "add": 3, "promote": 2, "remove": 2}[c.verb]
	if !ok || len(words) != takes {
		return fmt.Errorf("%w, not %q", errMemberForm, words)
	}
	if takes > 1 {
		id, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil || id == 0 {
			return fmt.Errorf("%q is no server's id, which is a number from 1", words[1])
		}
		c.id = raft.ServerID(id)
	}
	if takes > 2 {
		c.address = words[2]
		return rpc.CheckAddr(c.address)
	}
	return nil
}

// memberChange is a change that was made, as JSON.
type memberChange struct {
	Change  string        `json:"change"`
	ID      raft.ServerID `json:"id"`
	Address string        `json:"address,omitempty"`
}

func (c *command) member(ctx context.Context, k *rpc.Client) (int, error) {
	var err error
	var says string
	switch c.verb {
	case "list":
		return c.memberList(ctx, k)
	case "add":
		err = k.Add(ctx, c.id, c.address)
		says = fmt.Sprintf("server %d is a learner, at %s; when it has caught up, lockctl member "+
			"promote %d lets it vote", c.id, c.address, c.id)
	case "promote":
		err = k.Promote(ctx, c.id)
		says = fmt.Sprintf("server %d votes", c.id)
	case "remove":
		err = k.Remove(ctx, c.id)
		says = fmt.Sprintf("server %d is no member any more; stop it", c.id)
	}
	switch {
	case errors.Is(err, rpc.ErrUnknownOutcome):
		return 0, fmt.Errorf("%w; lockctl member list tells; to ask again does no harm", err)
	case err != nil:
		return 0, err
	}
	return 0, c.print(memberChange{c.verb, c.id, c.address}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, says)
		return err
	})
}

// memberRecord is a server as JSON.
type memberRecord struct {
	ID      raft.ServerID `json:"id"`
	Voter   bool          `json:"voter"`
	Leader  bool          `json:"leader"`
	Address string        `json:"address"`
	Match   raft.Index    `json:"match"`
	Behind  raft.Index    `json:"behind"`
}

func (c *command) memberList(ctx context.Context, k *rpc.Client) (int, error) {
	y, err := k.Members(ctx)
	if err != nil {
		return 0, err
	}
	value := struct {
		Index   raft.Index     `json:"index"`
		Members []memberRecord `json:"members"`
	}{y.Index, []memberRecord{}}
	for _, m := range y.Members {
		value.Members = append(value.Members,
			memberRecord{m.ID, m.Voter, m.Leader, m.Address, m.Match, m.Behind})
	}
	return 0, c.print(value, func(w io.Writer) error {
		t := newTable(w)
		t.row("ID", "ROLE", "ADDRESS", "BEHIND", "LEADER")
		for _, m := range value.Members {
			role, leads := "learner", "-"
			if m.Voter {
				role = "voter"
			}
			if m.Leader {
				leads = "leads"
			}
			t.row(m.ID, role, m.Address, m.Behind, leads)
		}
		return t.Flush()
	})
}
