package sim

import (
	"fmt"
	"strings"
	"time"

	"ticketing/raft"
)

// A Scenario is one file of the scenario language, parsed: what to set up and what to do, in order.
// The lines say everything; the random search makes scenarios of the same kind, and a line that is
// taken out leaves the others as they were.
type Scenario struct {
	Name  string // the file's name without .txt
	File  string // where it was read from, "" if it was not
	Title string // its first line, without the #
	Text  string // the file as it stands
	Lines []Line
}

// A Line is one line of a scenario: a command, or prose.
type Line struct {
	No      int     // from 1 up; 0 in a scenario that was not read from a file
	Prose   string  // the text after #, when Command is nil
	Command Command // nil for prose and blank lines
}

// Command is one of the structs below. String writes it in the language, so that parsing what it
// writes gives it back.
type Command interface{ String() string }

// Actor names a node ("S1"), a client ("A", "Bob"), or every node ("*").
type Actor string

// Everyone is every node.
const Everyone Actor = "*"

// NodeActor is the actor that a server is.
func NodeActor(id raft.ServerID) Actor { return Actor(fmt.Sprintf("S%d", id)) }

// Node returns the server's id, or 0 for clients and for every node.
func (a Actor) Node() raft.ServerID {
	if len(a) < 2 || len(a) > 4 || a[0] != 'S' {
		return 0
	}
	id := raft.ServerID(0)
	for _, r := range a[1:] {
		if r < '0' || r > '9' {
			return 0
		}
		id = id*10 + raft.ServerID(r-'0')
	}
	return id
}

// Set-up commands. They stand before all others.
type (
	// SetNodes is "nodes N [learners M]": S1 to SN vote, the next M are learners.
	SetNodes struct{ N, Learners int }
	// SetSeed is "seed N".
	SetSeed struct{ Seed uint64 }
	// SetManual is "manual".
	SetManual struct{}
	// SetConfig is "config KEY=VALUE …"; nil and 0 leave the default.
	SetConfig struct {
		Election, Heartbeat  time.Duration
		PreVote, CheckQuorum *bool
		Pipeline             *bool
		Batch, Window        int
		SnapshotEvery        *raft.Index // a snapshot after so many entries; 0 is by command alone
		Keep                 raft.Index  // how many entries stay before a snapshot's end
		Chunk                int         // bytes of a snapshot in one message
	}
	// SetWithout is "without RULE …".
	SetWithout struct{ Rules []string }
	// SetNode is "node S1 term=3 vote=S2 log=1,1,2 snapshot=4@1": the log is what stands behind the
	// snapshot, if there is one.
	SetNode struct {
		Node     raft.ServerID
		Term     raft.Term
		Vote     raft.ServerID
		Log      []raft.Term
		Snapshot Position
	}
	// SetNetwork is "network KEY=VALUE …" (From and To empty), or "link S1->S2 KEY=VALUE …".
	SetNetwork struct {
		From, To Actor
		LinkSpec
	}
)

// Position names an entry: "3@2". Index 0 is none.
type Position struct {
	Index raft.Index
	Term  raft.Term
}

// LinkSpec says how messages fare. Unset fields leave the default; shares are in parts per million.
type LinkSpec struct {
	DelaySet           bool
	DelayMin, DelayMax time.Duration // uniform in this range
	TailSet            bool
	TailPPM            int // this share takes up to Tail instead
	Tail               time.Duration
	LossPPM            *int
	DuplicatePPM       *int
}

// Time and delivery.
type (
	// RunFor is "run 500ms".
	RunFor struct{ For time.Duration }
	// Until is "until COND [within 2s]". Within 0 is the default, 30 s.
	Until struct {
		Cond   Cond
		Within time.Duration
	}
	// At is "at 404ms COMMAND".
	At struct {
		Time    time.Duration
		Command Command
	}
	// Timeout is "timeout S1"; Beat is "beat S1".
	Timeout struct{ Node raft.ServerID }
	Beat    struct{ Node raft.ServerID }
	// Deliver is "deliver …", "drop …" or "duplicate …", by Verb.
	Deliver struct {
		Verb string // deliver, drop, duplicate
		All  bool   // deliver all
		Messages
		Nth int // #N; 0 is the oldest, the same as 1
	}
	// Hold is "hold S1->S2 [KIND]"; Release (Again true) is "release S1->S2 [KIND]".
	Hold struct {
		Again bool
		Messages
	}
)

// Messages selects messages. Empty fields select all; From and To may be Everyone.
type Messages struct {
	From, To Actor
	Kind     string // vote, append, prevote, read, transfer, snapshot or request, or with -reply; "" for all
}

// Faults.
type (
	// Cut is "cut S1 S2 | S3": both directions between the groups. CutOne is "cut S1->S2".
	Cut    struct{ Groups [][]Actor }
	CutOne struct{ From, To Actor }
	// Isolate is "isolate S1": it and all other nodes.
	Isolate struct{ Node raft.ServerID }
	// Heal is "heal" (both empty) or "heal S1->S2".
	Heal struct{ From, To Actor }
	// Pause is "pause S1"; Resume is "resume S1".
	Pause  struct{ Node raft.ServerID }
	Resume struct{ Node raft.ServerID }
	// Suspend is "suspend S1 [clock=on]": its machine sleeps until resume, and misses what is sent to it.
	// ClockOn is for machines whose monotonic clock goes on meanwhile.
	Suspend struct {
		Node    raft.ServerID
		ClockOn bool
	}
	// Crash is "crash S1 [writing] [torn|some|all|keep=N|lost]" or "crash *": the power fails, now or in
	// the middle of the next write.
	Crash struct {
		Node    Actor
		Writing bool
		How     string // "", torn, some, all or lost
		Keep    int    // so many of the oldest unsynced writes survive
	}
	// Restart is "restart S1" or "restart *".
	Restart struct{ Node Actor }
	// SetDisk is "disk S3 [sync=2ms..8ms]" (set-up), or "disk S1 stall|fail|ok|reorder", or
	// "disk S1 finish [#N | snapshot]".
	SetDisk struct {
		Node             Actor // may be Everyone
		SyncSet          bool
		SyncMin, SyncMax time.Duration
		Do               string // "", stall, fail, ok, finish, reorder
		Nth              int
		File             bool // finish the snapshot that is being saved, and no write
	}
	// SetClock is "clock S1 [rate=1.5] [offset=250ms]" (set-up), and from then on one of rate=, stop,
	// jump=, slew=, wander=, strobe=, coarse=, late= and timely with what belongs to it.
	SetClock struct {
		Actor        Actor
		RatePPM      int64 // 1,000,000 is true time; 0 is unset
		Stop         bool
		Offset       time.Duration
		Jump         time.Duration // of the wall clock
		Slew         time.Duration // both clocks are to gain so much,
		Pace         int           // running faster or slower by so many parts per million
		Wander       int           // the rate goes up and down, this far from the true one at most, in ppm,
		Every        time.Duration // by a step in such a time
		Strobe, For  time.Duration // the wall clock is this far ahead every other time Every, for so long
		Coarse, Late time.Duration // timers fire on ticks this far apart; up to so much late, and some later
		Timely       bool          // they are on time again
	}
	// SetResource is "resource door mistake=strict" (set-up), which makes a resource with a mistake, or
	// "resource door restart": it loses power, and is back at once.
	SetResource struct {
		Key     string
		Mistake string // "" if it restarts
		Restart bool
	}
)

// Doing things.
type (
	// Connect is "connect A B": each opens a new session, and the run goes on until all have, unless
	// the line is scheduled. Without such a line clients open theirs together, when one of them first
	// wants something. "connect others=N" is as many clients that nobody hears of again: more than 4096
	// sessions are not remembered, so they make that those of A and B are forgotten.
	Connect struct {
		Clients []Actor
		Others  int
	}
	// Extend is "A: extend door lease=10s [via=S2]": a new lease for the token that A was given.
	Extend struct {
		Client Actor
		Key    string
		Lease  time.Duration
		Via    raft.ServerID
	}

	// Acquire is "A: acquire door lease=10s [try] [via=S2]".
	Acquire struct {
		Client Actor
		Key    string
		Lease  time.Duration
		Try    bool
		Via    raft.ServerID
	}
	// ReleaseLock is "A: release door [token=N]".
	ReleaseLock struct {
		Client   Actor
		Key      string
		TokenSet bool
		Token    uint64
		Via      raft.ServerID
	}
	// Write is "A: write door [token=N] [takes=300ms]": to the resource that door guards, with A's token
	// unless one is named; it is carried out when it has been there for so long.
	Write struct {
		Client   Actor
		Key      string
		TokenSet bool
		Token    uint64
		Takes    time.Duration
	}
	// Read is "A: read door": of the same resource, with A's token.
	Read struct {
		Client Actor
		Key    string
	}
	// ClientDo is "A: disconnect", "A: retry" (the last request, answered or not, under its number),
	// "A: pause", "A: suspend" or "A: resume".
	ClientDo struct {
		Client Actor
		Do     string
	}
	// ReadTable is "read S1": a linearizable read of the lock table at S1; or "read S1 local": of S1's
	// table as it is, which may be old.
	ReadTable struct {
		Node  raft.ServerID
		Local bool
	}
	// Transfer is "transfer S1 S2": S1 is to hand its leadership to S2.
	Transfer struct{ From, To raft.ServerID }
	// Compact is "snapshot S1": it is to take a snapshot.
	Compact struct{ Node raft.ServerID }
	// Change is "add S4", "add S4 learner", "promote S4" or "remove S2", by Do, at whoever leads. An added
	// server is a learner first. Without the word it is promoted when the leader would do so, and added
	// again if that came to nothing: whoever adds it looks again after each heartbeat.
	Change struct {
		Do      string
		Node    raft.ServerID
		Learner bool
	}
	// Propose is "propose S1 TEXT".
	Propose struct {
		Node raft.ServerID
		Text string
	}
)

// Asking and expecting.
type (
	// Expect is "expect COND".
	Expect struct{ Cond Cond }
	// Question is "# ? question | right | wrong | wrong".
	Question struct {
		Text    string
		Answers []string // the first is right
	}
)

// Cond is what expect and until take.
type Cond interface{ String() string }

type (
	// CondLeader is "leader S1 [term=2]", or with Node 0 "no leader".
	CondLeader struct {
		Node raft.ServerID
		Term raft.Term
	}
	// CondNode is "S1 role=follower term=3 …". Fields keep the order of the file.
	CondNode struct {
		Node   raft.ServerID
		Fields []Field
	}
	// CondInFlight is "[no] in-flight S1->S2 append prev=3@2 entries=2 commit=4".
	CondInFlight struct {
		No bool
		Messages
		Fields []Field
	}
	// CondHolder is "holder door A [token=2] [at S3]", CondFree "free door [at S3]".
	CondHolder struct {
		Key    string
		Client Actor
		Token  uint64
		At     Actor // a node, Everyone, or "" for the live node that has applied most
	}
	CondFree struct {
		Key string
		At  Actor
	}
	// CondClient is "A granted [token=2]", "A waiting", …: what the client makes of its last answer.
	// Of requests: waiting granted rejected released extended not-found unknown invalid not-leader; late,
	// if the lease or what the request was granted is over by now; connected, if it has a new session,
	// and forgotten, if its session is over. Of calls to a resource: written read refused. And nothing, if
	// it has no token to send.
	CondClient struct {
		Client Actor
		State  string
		Token  uint64
	}
	// CondCount is "count NAME >= 1".
	CondCount struct {
		Name string
		Op   string // = != < <= > >=
		N    int64
	}
	// CondConverged is "converged [within 2s]". Within is only for expect: run for as long as it
	// takes.
	CondConverged struct{ Within time.Duration }
	// CondViolated is "INVARIANT violated".
	CondViolated struct{ Invariant string }
)

// Field is one KEY=VALUE of a condition, checked when parsed and compared as text with what is.
type Field struct{ Key, Value string }

func fields(fs []Field) string {
	var b strings.Builder
	for _, f := range fs {
		fmt.Fprintf(&b, " %s=%s", f.Key, f.Value)
	}
	return b.String()
}
