package trace

import (
	"fmt"

	"ticketing/raft"
)

// Version is the version of the trace's schema. docs/trace.md describes it, kind by kind. In version
// 1 tokens were numbers.
const Version = 2

const schema = "ticketing-trace"

// Time is a moment of a trace, in microseconds. In a simulation it is true time since the start,
// which only a simulator knows; at a real node the time since the Unix epoch on its machine's wall
// clock. A node's decisions rest on neither: they rest on raft.Time.
type Time int64

// Milliseconds and seconds.
const (
	Millisecond Time = 1000
	Second      Time = 1_000_000
)

// String writes a time in milliseconds, with microseconds where there are any.
func (t Time) String() string {
	if t%Millisecond == 0 {
		return fmt.Sprintf("%dms", t/Millisecond)
	}
	return fmt.Sprintf("%d.%03dms", t/Millisecond, t%Millisecond)
}

// Trace is a whole run: what was run, and every event of it in one order. All that draws or
// explains reads a Trace and nothing else.
type Trace struct {
	Header Header
	Events []Event
}

// Header is a trace file's first line.
type Header struct {
	Schema   string   `json:"schema"` // "ticketing-trace"
	Version  int      `json:"version"`
	Scenario string   `json:"scenario"`
	Title    string   `json:"title,omitempty"`
	Text     string   `json:"text,omitempty"` // the scenario's file
	Seed     uint64   `json:"seed,string"`
	Without  []string `json:"without"` // rules that were off
	Nodes    []string `json:"nodes"`
	Clients  []string `json:"clients"`
	Members  string   `json:"members,omitempty"` // who of the nodes are servers at the start; "" for all

	// Of real nodes, whose traces have no scenario and no seed.
	Real    bool   `json:"real,omitempty"`           // Event.At counts from the Unix epoch
	Cluster uint64 `json:"cluster,string,omitempty"` // which cluster they belong to
	Zero    Time   `json:"zero,omitempty"`           // what Merge has taken from every At
}

// Event is one thing that happened. Times are integer microseconds: At on the trace's time, Local
// on the clock of Node. Cause is the event that this one follows from at once, 0 for none: a
// receipt's is the sending.
type Event struct {
	ID    int64     `json:"id"`
	Cause int64     `json:"cause,omitempty"`
	At    Time      `json:"at"`
	Node  string    `json:"node,omitempty"` // a node, a client, a resource's key, or "" for the world
	Local raft.Time `json:"local"`
	Kind  EventKind `json:"kind"`
	Rule  string    `json:"rule,omitempty"` // of docs/rules.txt, where one decides
	Text  string    `json:"text,omitempty"`
	More  bool      `json:"more,omitempty"` // of a real node's input: what follows is behind the next

	State   *StateRecord   `json:"state,omitempty"`
	Message *MessageRecord `json:"message,omitempty"`
	Write   *WriteRecord   `json:"write,omitempty"`
	Entry   *EntryRecord   `json:"entry,omitempty"`
	Client  *ClientRecord  `json:"client,omitempty"`

	Snapshot *SnapshotRecord `json:"snapshot,omitempty"` // of a start besides State
}

// EventKind names what happened.
type EventKind string

const (
	// Of the world. Text is the scenario's line.
	KindStart     EventKind = "start"     // a node starts; State is what it starts with
	KindProse     EventKind = "prose"     // the scenario speaks
	KindCommand   EventKind = "command"   // a line takes effect: cut, heal, hold, clock, disk …
	KindExpect    EventKind = "expect"    // an expectation held
	KindFailed    EventKind = "failed"    // an expectation did not hold
	KindViolation EventKind = "violation" // an invariant was broken; Rule is its name

	// Of a node: the input that it takes, …
	KindElectionTimeout  EventKind = "election-timeout"
	KindHeartbeatTimeout EventKind = "heartbeat-timeout"
	KindReceive          EventKind = "receive" // a message or a request
	KindSaved            EventKind = "saved"   // the process learns that a write is durable
	KindSynced           EventKind = "synced"  // a write is durable, and the process does not run or has not been told
	KindKept             EventKind = "kept"    // the process learns that a snapshot's file is durable
	KindWake             EventKind = "wake"    // its clock reached a lease's end
	KindCrash            EventKind = "crash"
	KindRestart          EventKind = "restart" // State and Entry records of the log follow as for start
	KindPause            EventKind = "pause"
	KindResume           EventKind = "resume"

	// … and what follows from it, each with the input as its Cause.
	KindTrim   EventKind = "trim"   // the log begins behind Snapshot from now on
	KindState  EventKind = "state"  // State is what it is afterwards, if anything of it changed
	KindAppend EventKind = "append" // Entry is appended to the log, in place of what was at its index and after
	KindWrite  EventKind = "write"  // Write was requested of the disk
	KindTable  EventKind = "table"  // the table becomes that of Snapshot
	KindApply  EventKind = "apply"  // Entry is applied
	KindKeep   EventKind = "keep"   // a file for Snapshot was requested of the disk
	KindSend   EventKind = "send"   // Message leaves
	KindReply  EventKind = "reply"  // a client's answer leaves
	KindStop   EventKind = "stop"   // the node stops itself; Text says why

	// Of the network.
	KindLost EventKind = "lost" // Cause is the sending; Text says why

	// Of clients and resources.
	KindRequest    EventKind = "request"    // a client sends a request
	KindAnswer     EventKind = "answer"     // a client gets an answer
	KindDisconnect EventKind = "disconnect" // a client leaves
	KindResource   EventKind = "resource"   // a fenced resource takes or refuses a write
)

// StateRecord is a node's Raft state.
type StateRecord struct {
	Role     string        `json:"role"`
	Term     raft.Term     `json:"term"`
	Vote     raft.ServerID `json:"vote"`
	Leader   raft.ServerID `json:"leader"`
	Commit   raft.Index    `json:"commit"`
	Applied  raft.Index    `json:"applied"`
	Last     raft.Index    `json:"last"`
	LastTerm raft.Term     `json:"lastTerm"`
}

// MessageRecord is every field of a message between servers, and who talks to whom.
type MessageRecord struct {
	From string    `json:"from"`
	To   string    `json:"to"`
	Kind string    `json:"kind"`
	Term raft.Term `json:"term,omitempty"`
	Call uint64    `json:"call,omitempty"`

	LastIndex raft.Index `json:"lastIndex,omitempty"` // vote; snapshot: its last included entry
	LastTerm  raft.Term  `json:"lastTerm,omitempty"`

	RequestTerm raft.Term `json:"requestTerm,omitempty"` // replies
	Granted     bool      `json:"granted,omitempty"`

	PrevIndex raft.Index    `json:"prevIndex,omitempty"` // append, append-reply
	PrevTerm  raft.Term     `json:"prevTerm,omitempty"`
	Entries   []EntryRecord `json:"entries,omitempty"`
	Commit    raft.Index    `json:"commit,omitempty"`

	Success       bool       `json:"success,omitempty"`
	Match         raft.Index `json:"match,omitempty"`
	ConflictTerm  raft.Term  `json:"conflictTerm,omitempty"`
	ConflictIndex raft.Index `json:"conflictIndex,omitempty"`

	Offset    uint64 `json:"offset,omitempty"`    // snapshot; snapshot-reply: the next expected
	Size      int    `json:"size,omitempty"`      // snapshot: how many bytes are in this chunk,
	Done      bool   `json:"done,omitempty"`      // and whether it is the last
	Installed bool   `json:"installed,omitempty"` // snapshot-reply

	Read  uint64     `json:"read,omitempty"`  // read, read-reply: the question's number
	Index raft.Index `json:"index,omitempty"` // read-reply
}

// EntryRecord is a log entry. Result and Hash, of the table afterwards, are of an apply; Cause and
// Meant are of an append by the leader that proposed it.
type EntryRecord struct {
	Index   raft.Index `json:"index"`
	Term    raft.Term  `json:"term"`
	Command string     `json:"command"`
	Members string     `json:"members,omitempty"`
	Result  string     `json:"result,omitempty"`
	Hash    string     `json:"hash,omitempty"`
	Cause   string     `json:"for,omitempty"`
	Meant   uint64     `json:"meant,omitempty,string"`
}

// SnapshotRecord is a snapshot: its last included entry, and how many bytes its data has.
type SnapshotRecord struct {
	Index raft.Index `json:"index"`
	Term  raft.Term  `json:"term"`
	Size  int        `json:"size"`
}

// WriteRecord is a write to stable storage. The entries are those of the append events since the
// last write: First to Last. Snapshot is what the log begins behind, if the write says so.
type WriteRecord struct {
	Seq   uint64        `json:"seq"`
	Term  raft.Term     `json:"term"`
	Vote  raft.ServerID `json:"vote"`
	First raft.Index    `json:"first,omitempty"`
	Last  raft.Index    `json:"last,omitempty"`

	Snapshot *SnapshotRecord `json:"snapshot,omitempty"`
}

// ClientRecord is a client's request or its answer, or a write to a resource.
type ClientRecord struct {
	Client  string `json:"client"`
	Server  string `json:"server,omitempty"`
	Op      string `json:"op"` // grant, release, extend, open, noop, write, read
	Key     string `json:"key,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
	Attempt uint32 `json:"attempt,omitempty"`
	LeaseMS int64  `json:"lease,omitempty"`
	Token   uint64 `json:"token,omitempty,string"`
	Status  string `json:"status,omitempty"` // of an answer
	Result  string `json:"result,omitempty"`
	High    uint64 `json:"high,omitempty,string"` // resource: the greatest token it had seen before
	Index   uint64 `json:"index,omitempty"`       // read: the last entry in the table that was read
	Until   int64  `json:"until,omitempty"`       // granted, extended: the client's own deadline, on its clock
}
