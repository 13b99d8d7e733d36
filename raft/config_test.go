package raft_test

import (
	"strings"
	"testing"

	"ticketing/raft"
)

// The error says which field is wrong.
func TestNewRefusesAConfigThatCannotWork(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*raft.Config)
		reason string
	}{
		"not a voter":    {func(c *raft.Config) { c.ID = 4 }, "ID 4 is not among"},
		"nobody":         {func(c *raft.Config) { c.ID, c.Voters = 0, nil }, "ID 0"},
		"voter 0":        {func(c *raft.Config) { c.Voters[2] = 0 }, "ID 0"},
		"a voter twice":  {func(c *raft.Config) { c.Voters[2] = 2 }, "twice"},
		"no heartbeat":   {func(c *raft.Config) { c.HeartbeatTimeout = 0 }, "must be positive"},
		"heartbeat < 0":  {func(c *raft.Config) { c.HeartbeatTimeout *= -1 }, "must be positive"},
		"slow heartbeat": {func(c *raft.Config) { c.HeartbeatTimeout *= 3 }, "less than"},
		"no jitter":      {func(c *raft.Config) { c.Jitter = nil }, "Jitter"},
		"no batch":       {func(c *raft.Config) { c.MaxBatch = 0 }, "MaxBatch"},
		"no window":      {func(c *raft.Config) { c.Window = 0 }, "Window"},
		"no room":        {func(c *raft.Config) { c.MaxUncommitted = -1 }, "MaxUncommitted"},
		"no snapshots":   {func(c *raft.Config) { c.MaxSnapshot = -1 }, "MaxSnapshot (-1)"},
		"no parts":       {func(c *raft.Config) { c.ChunkSize = -1 }, "ChunkSize (-1)"},
	} {
		config := setup{}.filled().config(1)
		row.change(&config)
		_, err := raft.New(config, raft.Durable{}, 0)
		if err == nil || !strings.Contains(err.Error(), row.reason) {
			t.Errorf("%s: error %v, want %q", name, err, row.reason)
		}
	}
}

// A disk that holds what no correct server writes must not be served from.
func TestNewRefusesADiskThatNoServerCanHaveWritten(t *testing.T) {
	gap := state(3, 0, 1, 1)
	gap.Entries[1].Index = 3
	nobody := state(3, 0, 1)
	nobody.Entries[0].Members = raft.Configuration{{ID: 1}}
	both := state(3, 0, 1)
	both.Entries[0].Members = servers(1, 2, 3)
	unknown := raft.Durable{HardState: raft.HardState{Term: 3}, Snapshot: &raft.Snapshot{
		LastIncludedIndex: 1, LastIncludedTerm: 1}}
	for name, row := range map[string]struct {
		durable raft.Durable
		reason  string
	}{
		"a gap":                   {gap, "entry 3 stands"},
		"not from the first":      {raft.Durable{Entries: entries(2, 1)}, "entry 2 stands"},
		"a term falls":            {state(3, 0, 2, 1), "entry 2 has term 1"},
		"term 0":                  {state(3, 0, 0), "entry 1 has term 0"},
		"a later term (B02)":      {state(1, 0, 1, 2), "in term 1"},
		"a vote before the first": {state(0, 1), "in term 0"},
		"servers that cannot be":  {nobody, "entry 1: no server votes"},
		"a command and servers":   {both, "entry 1 is a command and a change"},
		"a snapshot for nobody":   {unknown, "the members of a snapshot: no server votes"},
	} {
		_, err := raft.New(setup{}.filled().config(1), row.durable, 0)
		if err == nil || !strings.Contains(err.Error(), row.reason) {
			t.Errorf("%s: error %v, want %q", name, err, row.reason)
		}
	}
}

// The core's log is its own: what the caller does with the slice afterwards changes nothing.
func TestNewCopiesTheDurableLog(t *testing.T) {
	d := state(1, 0, 1, 1)
	core, err := raft.New(setup{}.filled().config(1), d, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.Entries[0] = raft.Entry{}
	same(t, "log", entries(1, 1, 1), logOf(core))
}
