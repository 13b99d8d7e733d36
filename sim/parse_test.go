package sim

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ticketing/raft"
)

func ptr[T any](v T) *T { return &v }

// goodLines holds every command of the language, in the way that String writes it. A set-up that
// five nodes need stands before each.
var goodLines = []struct {
	text string
	want Command
}{
	{"seed 7", SetSeed{Seed: 7}},
	{"seed 18446744073709551615", SetSeed{Seed: 1<<64 - 1}},
	{"manual", SetManual{}},
	{"config election=1s", SetConfig{Election: time.Second}},
	{"config election=300ms heartbeat=100ms prevote=off checkquorum=off",
		SetConfig{Election: 300 * time.Millisecond, Heartbeat: 100 * time.Millisecond,
			PreVote: ptr(false), CheckQuorum: ptr(false)}},
	{"config pipeline=off batch=1 window=9",
		SetConfig{Pipeline: ptr(false), Batch: 1, Window: 9}},
	{"config pipeline=on", SetConfig{Pipeline: ptr(true)}},
	{"config snapshot=10 keep=2 chunk=64", SetConfig{SnapshotEvery: ptr(raft.Index(10)), Keep: 2, Chunk: 64}},
	{"config snapshot=0", SetConfig{SnapshotEvery: ptr(raft.Index(0))}},
	{"without expire-token release-token gate noop-wait request-ids",
		SetWithout{Rules: []string{"expire-token", "release-token", "gate", "noop-wait", "request-ids"}}},
	{"node S1", SetNode{Node: 1}},
	{"node S1 term=3 vote=S2 log=1,1,2",
		SetNode{Node: 1, Term: 3, Vote: 2, Log: []raft.Term{1, 1, 2}}},
	{"node S1 term=3 log=2,3 snapshot=4@1",
		SetNode{Node: 1, Term: 3, Log: []raft.Term{2, 3}, Snapshot: Position{4, 1}}},
	{"node S1 term=1 snapshot=4@1", SetNode{Node: 1, Term: 1, Snapshot: Position{4, 1}}},
	{"network delay=5ms..20ms tail=3%:1.5s loss=1% duplicate=0.25%",
		SetNetwork{LinkSpec: LinkSpec{DelaySet: true, DelayMin: 5 * time.Millisecond,
			DelayMax: 20 * time.Millisecond, TailSet: true, TailPPM: 30000,
			Tail: 1500 * time.Millisecond, LossPPM: ptr(10000), DuplicatePPM: ptr(2500)}}},
	{"network delay=0s loss=0%",
		SetNetwork{LinkSpec: LinkSpec{DelaySet: true, LossPPM: ptr(0)}}},
	{"link S1->S2 loss=100%",
		SetNetwork{From: "S1", To: "S2", LinkSpec: LinkSpec{LossPPM: ptr(1000000)}}},
	{"link A->* duplicate=0.0001%",
		SetNetwork{From: "A", To: "*", LinkSpec: LinkSpec{DuplicatePPM: ptr(1)}}},
	{"clock S2 rate=1.5 offset=250ms",
		SetClock{Actor: "S2", RatePPM: 1500000, Offset: 250 * time.Millisecond}},
	{"disk S3 sync=2ms..8ms",
		SetDisk{Node: "S3", SyncSet: true, SyncMin: 2 * time.Millisecond,
			SyncMax: 8 * time.Millisecond}},
	{"disk * sync=1ms",
		SetDisk{Node: "*", SyncSet: true, SyncMin: time.Millisecond, SyncMax: time.Millisecond}},

	{"run 500ms", RunFor{For: 500 * time.Millisecond}},
	{"run 1h", RunFor{For: time.Hour}},
	{"run 1h0m1s", RunFor{For: time.Hour + time.Second}},
	{"until leader S1", Until{Cond: CondLeader{Node: 1}}},
	{"until A granted token=1 within 2s",
		Until{Cond: CondClient{Client: "A", State: "granted", Token: 1}, Within: 2 * time.Second}},
	{"until converged within 1m", Until{Cond: CondConverged{}, Within: time.Minute}},
	{"at 404ms crash S1", At{Time: 404 * time.Millisecond, Command: Crash{Node: "S1"}}},
	{"at 0s A: write door", At{Command: Write{Client: "A", Key: "door"}}},
	{"at 1s clock S2 rate=2",
		At{Time: time.Second, Command: SetClock{Actor: "S2", RatePPM: 2000000}}},
	{"at 1s expect no leader", At{Time: time.Second, Command: Expect{Cond: CondLeader{}}}},
	{"timeout S1", Timeout{Node: 1}},
	{"beat S5", Beat{Node: 5}},
	{"deliver", Deliver{Verb: "deliver"}},
	{"deliver all", Deliver{Verb: "deliver", All: true}},
	{"deliver append", Deliver{Verb: "deliver", Messages: Messages{Kind: "append"}}},
	{"deliver S1->S2 append #2", Deliver{Verb: "deliver",
		Messages: Messages{From: "S1", To: "S2", Kind: "append"}, Nth: 2}},
	{"drop A->S1 request", Deliver{Verb: "drop",
		Messages: Messages{From: "A", To: "S1", Kind: "request"}}},
	{"drop S1->A", Deliver{Verb: "drop", Messages: Messages{From: "S1", To: "A"}}},
	{"duplicate *->S2 vote-reply #1", Deliver{Verb: "duplicate",
		Messages: Messages{From: "*", To: "S2", Kind: "vote-reply"}, Nth: 1}},
	{"hold S1->*", Hold{Messages: Messages{From: "S1", To: "*"}}},
	{"hold A->S1 request-reply",
		Hold{Messages: Messages{From: "A", To: "S1", Kind: "request-reply"}}},
	{"release S1->*", Hold{Again: true, Messages: Messages{From: "S1", To: "*"}}},
	{"release *->* append-reply",
		Hold{Again: true, Messages: Messages{From: "*", To: "*", Kind: "append-reply"}}},

	{"cut S1 S2 | S3 S4 S5", Cut{Groups: [][]Actor{{"S1", "S2"}, {"S3", "S4", "S5"}}}},
	{"cut S1 | S2 | A", Cut{Groups: [][]Actor{{"S1"}, {"S2"}, {"A"}}}},
	{"cut S1->S2", CutOne{From: "S1", To: "S2"}},
	{"isolate S1", Isolate{Node: 1}},
	{"heal", Heal{}},
	{"heal S1->S2", Heal{From: "S1", To: "S2"}},
	{"pause S1", Pause{Node: 1}},
	{"resume S1", Resume{Node: 1}},
	{"crash S1", Crash{Node: "S1"}},
	{"crash S1 torn", Crash{Node: "S1", How: "torn"}},
	{"crash S1 all", Crash{Node: "S1", How: "all"}},
	{"crash S1 lost", Crash{Node: "S1", How: "lost"}},
	{"crash S1 keep=2", Crash{Node: "S1", Keep: 2}},
	{"crash S1 writing", Crash{Node: "S1", Writing: true}},
	{"crash S1 writing torn", Crash{Node: "S1", Writing: true, How: "torn"}},
	{"disk S1 reorder", SetDisk{Node: "S1", Do: "reorder"}},
	{"crash * some", Crash{Node: "*", How: "some"}},
	{"crash *", Crash{Node: "*"}},
	{"restart S1", Restart{Node: "S1"}},
	{"restart *", Restart{Node: "*"}},
	{"disk S1 stall", SetDisk{Node: "S1", Do: "stall"}},
	{"disk S1 fail", SetDisk{Node: "S1", Do: "fail"}},
	{"disk S1 ok", SetDisk{Node: "S1", Do: "ok"}},
	{"disk S1 finish", SetDisk{Node: "S1", Do: "finish"}},
	{"disk S1 finish #3", SetDisk{Node: "S1", Do: "finish", Nth: 3}},
	{"clock S1 rate=0.5", SetClock{Actor: "S1", RatePPM: 500000}},
	{"clock A rate=1.000001", SetClock{Actor: "A", RatePPM: 1000001}},
	{"clock S1 stop", SetClock{Actor: "S1", Stop: true}},
	{"clock S1 jump=+1h", SetClock{Actor: "S1", Jump: time.Hour}},
	{"clock S1 jump=-10s", SetClock{Actor: "S1", Jump: -10 * time.Second}},
	{"clock S1 slew=-1s pace=0.1%", SetClock{Actor: "S1", Slew: -time.Second, Pace: 1000}},
	{"clock A wander=5% every=250ms", SetClock{Actor: "A", Wander: 50_000, Every: 250 * time.Millisecond}},
	{"clock S1 strobe=+1s every=10ms for=2s", SetClock{
		Actor: "S1", Strobe: time.Second, Every: 10 * time.Millisecond, For: 2 * time.Second}},
	{"clock S1 coarse=15ms late=20ms", SetClock{
		Actor: "S1", Coarse: 15 * time.Millisecond, Late: 20 * time.Millisecond}},
	{"clock A timely", SetClock{Actor: "A", Timely: true}},
	{"suspend S1", Suspend{Node: 1}},
	{"suspend S1 clock=on", Suspend{Node: 1, ClockOn: true}},
	{"A: suspend", ClientDo{Client: "A", Do: "suspend"}},
	{"expect S1 ahead=+1ms wall=0s", Expect{CondNode{Node: 1, Fields: []Field{{"ahead", "+1ms"}, {"wall", "0s"}}}}},

	{"A: acquire door lease=10s", Acquire{Client: "A", Key: "door", Lease: 10 * time.Second}},
	{"A: acquire door lease=0s", Acquire{Client: "A", Key: "door"}},
	{"Bob: acquire door=1/ü lease=10000h try via=S2", Acquire{Client: "Bob", Key: "door=1/ü",
		Lease: 10000 * time.Hour, Try: true, Via: 2}},
	{"A: release door", ReleaseLock{Client: "A", Key: "door"}},
	{"A: extend door lease=1m", Extend{Client: "A", Key: "door", Lease: time.Minute}},
	{"A: extend door lease=2s via=S3", Extend{Client: "A", Key: "door", Lease: 2 * time.Second, Via: 3}},
	{"connect A Bob", Connect{Clients: []Actor{"A", "Bob"}}},
	{"connect others=4096", Connect{Others: 4096}},
	{"at 1s connect A", At{Time: time.Second, Command: Connect{Clients: []Actor{"A"}}}},
	{"A: release door token=0 via=S1",
		ReleaseLock{Client: "A", Key: "door", TokenSet: true, Via: 1}},
	{"A: release door token=7", ReleaseLock{Client: "A", Key: "door", TokenSet: true, Token: 7}},
	{"A: write door", Write{Client: "A", Key: "door"}},
	{"A: write door token=0", Write{Client: "A", Key: "door", TokenSet: true}},
	{"A: write door token=7 takes=300ms",
		Write{Client: "A", Key: "door", TokenSet: true, Token: 7, Takes: 300 * time.Millisecond}},
	{"A: read door", Read{Client: "A", Key: "door"}},
	{"at 1s A: read door", At{Time: time.Second, Command: Read{Client: "A", Key: "door"}}},
	{"resource door mistake=check-then-act", SetResource{Key: "door", Mistake: "check-then-act"}},
	{"strike crash leader for 300ms", Strike{What: "crash", Who: "leader", For: 300 * time.Millisecond}},
	{"strike isolate S4", Strike{What: "isolate", Who: "S4"}},
	{"strike swizzle for 900ms", Strike{What: "swizzle", For: 900 * time.Millisecond}},
	{"at 1s strike pause candidate", At{Time: time.Second, Command: Strike{What: "pause", Who: "candidate"}}},
	{"on committed strike crash it for 300ms",
		On{Moment: "committed", Strike: Strike{What: "crash", Who: "it", For: 300 * time.Millisecond}}},
	{"on voted #3 strike tear S2", On{Moment: "voted", Nth: 3, Strike: Strike{What: "tear", Who: "S2"}}},
	{"recover", Recover{}},
	{"resource door restart", SetResource{Key: "door", Restart: true}},
	{"at 1s resource door restart", At{Time: time.Second, Command: SetResource{Key: "door", Restart: true}}},
	{"expect A read", Expect{Cond: CondClient{Client: "A", State: "read"}}},
	{"A: disconnect", ClientDo{Client: "A", Do: "disconnect"}},
	{"A: retry", ClientDo{Client: "A", Do: "retry"}},
	{"A: pause", ClientDo{Client: "A", Do: "pause"}},
	{"A: resume", ClientDo{Client: "A", Do: "resume"}},
	{"read S1", ReadTable{Node: 1}},
	{"snapshot S2", Compact{Node: 2}},
	{"at 1s snapshot S2", At{Time: time.Second, Command: Compact{Node: 2}}},
	{"disk S1 finish snapshot", SetDisk{Node: "S1", Do: "finish", File: true}},
	{"hold S1->S3 snapshot", Hold{Messages: Messages{From: "S1", To: "S3", Kind: "snapshot"}}},
	{"deliver S3->S1 snapshot-reply", Deliver{Verb: "deliver", Messages: Messages{From: "S3", To: "S1", Kind: "snapshot-reply"}}},
	{"expect S1 snapshot=4@1 durable.snapshot=none", Expect{Cond: CondNode{Node: 1,
		Fields: []Field{{"snapshot", "4@1"}, {"durable.snapshot", "none"}}}}},
	{"expect in-flight S1->S2 snapshot last=4@1 offset=64 done=yes", Expect{Cond: CondInFlight{
		Messages: Messages{From: "S1", To: "S2", Kind: "snapshot"},
		Fields:   []Field{{"last", "4@1"}, {"offset", "64"}, {"done", "yes"}}}}},
	{"expect in-flight S1->S2 snapshot-reply installed=no", Expect{Cond: CondInFlight{
		Messages: Messages{From: "S1", To: "S2", Kind: "snapshot-reply"}, Fields: []Field{{"installed", "no"}}}}},
	{"expect count snapshots.installed >= 1", Expect{Cond: CondCount{Name: "snapshots.installed", Op: ">=", N: 1}}},
	{"read S2 local", ReadTable{Node: 2, Local: true}},
	{"at 1s read S1", At{Time: time.Second, Command: ReadTable{Node: 1}}},
	{"transfer S1 S3", Transfer{From: 1, To: 3}},
	{"add S6", Change{Do: "add", Node: 6}},
	{"add S6 learner", Change{Do: "add", Node: 6, Learner: true}},
	{"at 1s promote S5", At{Time: time.Second, Command: Change{Do: "promote", Node: 5}}},
	{"remove S2", Change{Do: "remove", Node: 2}},
	{"expect S1 members=S1,S2,S3+S4,S5",
		Expect{Cond: CondNode{Node: 1, Fields: []Field{{"members", "S1,S2,S3+S4,S5"}}}}},
	{"expect S1 members=none", Expect{Cond: CondNode{Node: 1, Fields: []Field{{"members", "none"}}}}},
	{"expect count members.taken-back = 1", Expect{Cond: CondCount{Name: "members.taken-back", Op: "=", N: 1}}},
	{"deliver S2->S1 read-reply", Deliver{Verb: "deliver", Messages: Messages{From: "S2", To: "S1", Kind: "read-reply"}}},
	{"drop transfer", Deliver{Verb: "drop", Messages: Messages{Kind: "transfer"}}},
	{"expect S1 read=failed", Expect{Cond: CondNode{Node: 1, Fields: []Field{{"read", "failed"}}}}},
	{"propose S1 x", Propose{Node: 1, Text: "x"}},
	{"propose S1 set x to 3", Propose{Node: 1, Text: "set x to 3"}},
	{"# ? What next? | nothing | a vote",
		Question{Text: "What next?", Answers: []string{"nothing", "a vote"}}},

	{"expect leader S1", Expect{Cond: CondLeader{Node: 1}}},
	{"expect leader S1 term=2", Expect{Cond: CondLeader{Node: 1, Term: 2}}},
	{"expect no leader", Expect{Cond: CondLeader{}}},
	{"expect S1 role=follower term=3 vote=S2 commit=5 applied=5 last=7 log=1,1,2 leader=S3",
		Expect{Cond: CondNode{Node: 1, Fields: []Field{{"role", "follower"}, {"term", "3"},
			{"vote", "S2"}, {"commit", "5"}, {"applied", "5"}, {"last", "7"}, {"log", "1,1,2"},
			{"leader", "S3"}}}}},
	{"expect S2 durable.log=none durable.vote=none durable.term=0",
		Expect{Cond: CondNode{Node: 2, Fields: []Field{{"durable.log", "none"},
			{"durable.vote", "none"}, {"durable.term", "0"}}}}},
	{"expect in-flight S1->S2 append prev=3@2 entries=2 commit=4 term=3",
		Expect{Cond: CondInFlight{Messages: Messages{From: "S1", To: "S2", Kind: "append"},
			Fields: []Field{{"prev", "3@2"}, {"entries", "2"}, {"commit", "4"}, {"term", "3"}}}}},
	{"expect in-flight S1->S2 vote last=2@1", Expect{Cond: CondInFlight{
		Messages: Messages{From: "S1", To: "S2", Kind: "vote"}, Fields: []Field{{"last", "2@1"}}}}},
	{"expect in-flight S1->S2 vote-reply granted=yes", Expect{Cond: CondInFlight{
		Messages: Messages{From: "S1", To: "S2", Kind: "vote-reply"},
		Fields:   []Field{{"granted", "yes"}}}}},
	{"expect in-flight S1->S2 success=no match=3", Expect{Cond: CondInFlight{
		Messages: Messages{From: "S1", To: "S2"},
		Fields:   []Field{{"success", "no"}, {"match", "3"}}}}},
	{"expect no in-flight S1->S2", Expect{Cond: CondInFlight{No: true,
		Messages: Messages{From: "S1", To: "S2"}}}},
	{"expect no in-flight A->S2 request", Expect{Cond: CondInFlight{No: true,
		Messages: Messages{From: "A", To: "S2", Kind: "request"}}}},
	{"expect holder door A", Expect{Cond: CondHolder{Key: "door", Client: "A"}}},
	{"expect holder door A token=2 at S3",
		Expect{Cond: CondHolder{Key: "door", Client: "A", Token: 2, At: "S3"}}},
	{"expect holder violated A at *",
		Expect{Cond: CondHolder{Key: "violated", Client: "A", At: "*"}}},
	{"expect free door", Expect{Cond: CondFree{Key: "door"}}},
	{"until free within at S3 within 1s",
		Until{Cond: CondFree{Key: "within", At: "S3"}, Within: time.Second}},
	{"expect A granted", Expect{Cond: CondClient{Client: "A", State: "granted"}}},
	{"expect A waiting", Expect{Cond: CondClient{Client: "A", State: "waiting"}}},
	{"expect A rejected", Expect{Cond: CondClient{Client: "A", State: "rejected"}}},
	{"expect A released", Expect{Cond: CondClient{Client: "A", State: "released"}}},
	{"expect A not-found", Expect{Cond: CondClient{Client: "A", State: "not-found"}}},
	{"expect A unknown", Expect{Cond: CondClient{Client: "A", State: "unknown"}}},
	{"expect A written", Expect{Cond: CondClient{Client: "A", State: "written"}}},
	{"expect A refused", Expect{Cond: CondClient{Client: "A", State: "refused"}}},
	{"expect count expire.newer >= 1",
		Expect{Cond: CondCount{Name: "expire.newer", Op: ">=", N: 1}}},
	{"expect count elections != 0", Expect{Cond: CondCount{Name: "elections", Op: "!="}}},
	{"expect converged", Expect{Cond: CondConverged{}}},
	{"expect converged within 2s", Expect{Cond: CondConverged{Within: 2 * time.Second}}},
	{"expect election-safety violated", Expect{Cond: CondViolated{Invariant: "election-safety"}}},
}

func parseLine(t *testing.T, text string) Command {
	t.Helper()
	s, err := Parse("t", "# T\nnodes 5\n"+text)
	if err != nil {
		t.Fatal(err)
	}
	return s.Lines[1].Command
}

func TestEveryCommandParsesAndStringWritesItBack(t *testing.T) {
	for _, tt := range goodLines {
		t.Run(tt.text, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, parseLine(t, tt.text)); diff != "" {
				t.Errorf("parsed (-want +got):\n%s", diff)
			}
			if got := tt.want.String(); got != tt.text {
				t.Errorf("String wrote %q", got)
			}
		})
	}
}

// A person may write more freely than String does.
func TestOtherWaysToWriteTheSame(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"run 1900ms", "run 1.9s"},
		{"  run\t1s  ", "run 1s"},
		{"run 1s\r", "run 1s"},
		{"cut S1|S2 S3", "cut S1 | S2 S3"},
		{"deliver #2 append S1->S2", "deliver S1->S2 append #2"},
		{"A: acquire door via=S1 try lease=1s", "A: acquire door lease=1s try via=S1"},
		{"network delay=5ms..5ms loss=01.50%", "network delay=5ms loss=1.5%"},
		{"clock S1 jump=1h", "clock S1 jump=+1h"},
		{"clock S1 slew=1s", "clock S1 slew=+1s pace=0.05%"},
		{"clock S1 wander=5%", "clock S1 wander=5% every=1s"},
		{"expect S1 ahead=1000ms wall=-0s", "expect S1 ahead=+1s wall=0s"},
		{"expect holder door A at S2 token=2", "expect holder door A token=2 at S2"},
		{"expect S1 term=007 log=01,2", "expect S1 term=7 log=1,2"},
		{"expect in-flight S1->S2 append prev=03@02", "expect in-flight S1->S2 append prev=3@2"},
		{"node S1 log=1,1,2", "node S1 term=2 log=1,1,2"},
		{"node S1 term=2 log=none", "node S1 term=2"},
		{"#? q|a|b", "# ? q | a | b"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			if got := parseLine(t, tt.text).String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseKeepsTitleProseAndBlankLines(t *testing.T) {
	text := "# A title\r\n# prose\n\n#   a picture\n#\nnodes 4\n# ? q | a | b | c\nrun 1s"
	got, err := Parse("sim/scenarios/demo.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	want := &Scenario{Name: "demo", File: "sim/scenarios/demo.txt", Title: "A title", Text: text, Lines: []Line{
		{No: 2, Prose: "prose"},
		{No: 3},
		{No: 4, Prose: "  a picture"},
		{No: 5},
		{No: 6, Command: SetNodes{N: 4}},
		{No: 7, Command: Question{Text: "q", Answers: []string{"a", "b", "c"}}},
		{No: 8, Command: RunFor{For: time.Second}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const written = "# A title\n# prose\n\n#   a picture\n\nnodes 4\n# ? q | a | b | c\nrun 1s\n"
	if diff := cmp.Diff(written, got.String()); diff != "" {
		t.Errorf("String (-want +got):\n%s", diff)
	}
}

// lateExpire is the example of the language's description.
const lateExpire = `# A late Expire meets a fresh lock
# A gives the lock back just before its lease runs out, while B waits.
nodes 3
config election=1s
timeout S1
until leader S1
A: acquire door lease=2s
until A granted token=1
B: acquire door lease=2s
C: acquire door lease=2s
run 1900ms
# Nothing that S1 sends gets through for a moment: commits stop.
hold S1->*
A: release door
# S1 has Release and, for B, Grant in its log. Now its clock says that A's lease is over.
run 200ms
# ? An Expire for token 1 stands behind B's Grant. What will it do? | nothing: token 1 is not 2 | free the door
release S1->*
until B granted token=2
until count expire.newer >= 1
expect holder door B token=2 at *
`

func TestTheExampleParsesAndPasses(t *testing.T) {
	s, err := Parse("late-expire", lateExpire)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Run(s, Options{}); err != nil || !r.Held() {
		t.Errorf("%v, %v, %v", err, r.Failure, r.Unexpected())
	}
	if got, want := len(s.Lines), strings.Count(lateExpire, "\n")-1; got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
}

const trailingComment = `"#" does not belong to the command; ` +
	`expected a comment to have a line of its own`

// badLines holds a line for each thing that can be wrong. Each stands behind "nodes 3" and
// "node S3", in line 4.
var badLines = []struct{ text, problem string }{
	{"delivr S1->S2", `no command "delivr"; expected a verb such as run, or a client as in ` +
		`"A: write door"; did you mean "deliver"?`},
	{"EXPECT no leader", `no command "EXPECT"; expected a verb such as run, or a client as in ` +
		`"A: write door"; did you mean "expect"?`},
	{"A:acquire door",
		`no command "A:acquire"; expected a verb such as run, or a client as in "A: ` +
			`write door"`},
	{"run 1s # a while", trailingComment},
	{"deliver append # one", trailingComment},
	{"config batch=3 # one", trailingComment},
	{"propose S1 x # one", trailingComment},
	{"run", "the line ends too soon; expected run DURATION"},
	{"run 5", `"5" is not a duration; expected a duration such as 250ms or 10s`},
	{"run -5s", `"-5s" is negative; expected a duration such as 250ms or 10s, not negative`},
	{"run 1001h", `"1001h" is too long; expected at most 1000h`},
	{"run 1s 2s", `"2s" is too much; expected run DURATION`},
	{"timeout S4", `"S4" is not a node of this scenario; expected S1 to S3`},
	{"timeout S01", `"S01" is not a node of this scenario; expected S1 to S3`},
	{"timeout A", `"A" is not a node of this scenario; expected S1 to S3`},
	{"timeout S1000", `"S1000" is not a node of this scenario; expected S1 to S3`},
	{"timeout Sx", `"Sx" is not a node of this scenario; expected S1 to S3`},
	{"beat *", `"*" is not a node of this scenario; expected S1 to S3`},
	{"bell\x07", `the line has the control character '\a'; expected text`},
	{"\xff", "the line is not UTF-8; expected text"},

	{"nodes 3", "a second line says nodes; expected nodes once"},
	{"seed x", `"x" is not a whole number; expected digits, and less than 2^64`},
	{"config", "the line says nothing; expected config KEY=VALUE …"},
	{"config elections=123456789s",
		`no option "elections="; expected batch=, checkquorum=, chunk=, election=, ` +
			`heartbeat=, keep=, pipeline=, prevote=, snapshot= or window=; did you mean "election="?`},
	{"config election=1s election=2s", `"election=" stands twice; expected config KEY=VALUE …`},
	{"config election=0s",
		`"0s" is no time at all; expected a duration such as 250ms or 10s, more than 0`},
	{"config election=1s heartbeat=1s",
		"heartbeat is 1s and election is 1s; expected heartbeat below election"},
	{"config heartbeat=150ms",
		"heartbeat is 150ms and election is 150ms; expected heartbeat below election"},
	{"config batch=0", `"0" is out of range; expected at least 1 and not a giant number`},
	{"config window=9999999999",
		`"9999999999" is out of range; expected at least 1 and not a giant number`},
	{"config pipeline=yes", `"yes" is neither on nor off; expected on or off`},
	{"config snapshot=often", `"often" is not a whole number; expected digits, and less than 2^63`},
	{"config keep=0", `"0" is out of range; expected at least 1 and not a giant number`},
	{"config chunk=0", `"0" is out of range; expected at least 1 and not a giant number`},
	{"without", "the line says nothing; expected without RULE …"},
	{"without token", `no rule "token"; expected expire-token, release-token, gate, noop-wait or request-ids; ` +
		`did you mean "expire-token" or "release-token"?`},
	{"without expire-tokn",
		`no rule "expire-tokn"; expected expire-token, release-token, gate, ` +
			`noop-wait or request-ids; did you mean "expire-token"?`},
	{"without gate gate", `"gate" stands twice; expected without RULE …`},
	{"node S3", "a second line says node S3; expected node S3 once"},
	{"node S1 log=2,1",
		`"2,1" is not a log; expected terms from 1 up that never fall, such as ` +
			"log=1,1,2"},
	{"node S1 log=0",
		`"0" is not a log; expected terms from 1 up that never fall, such as log=1,1,2`},
	{"node S1 log=", `"" is not a whole number; expected digits, and less than 2^63`},
	{"node S1 term=1 log=1,2",
		"the log has term 2, the node only 1; expected term= not below the log's"},
	{"node S1 term=2 vote=A", `"A" is not a node of this scenario; expected S1 to S3`},
	{"node S1 vote=S2", "nobody votes in term 0; expected term= along with vote="},
	{"node S1 snapshot=3", `"3" is not the end of a snapshot; expected an index and a term, such as 4@1`},
	{"node S1 snapshot=0@1", `"0" is too small; expected a number from 1 up`},
	{"node S1 snapshot=3@0", `"0" is too small; expected a number from 1 up`},
	{"node S1 snapshot=100001@1", "entry 100001 is too far; expected at most 100000"},
	{"node S1 snapshot=3@2 log=1", "the log begins with term 1, the snapshot ends with 2; " +
		"expected a log that goes on where the snapshot ends"},
	{"node S1 term=1 snapshot=3@2", "the log has term 2, the node only 1; expected term= not below the log's"},
	{"network", "the line says nothing; expected network KEY=VALUE …"},
	{"network delay=9ms..2ms",
		`"9ms..2ms" is an empty range; expected the smaller one first, such as ` +
			"5ms..20ms"},
	{"network loss=101%",
		`"101%" is not a share; expected 0% to 100%, such as 2.5%, with at most 4 ` +
			"places"},
	{"network loss=5",
		`"5" is not a share; expected 0% to 100%, such as 2.5%, with at most 4 places`},
	{"network loss=1.00001%",
		`"1.00001%" is not a share; expected 0% to 100%, such as 2.5%, with at most 4 places`},
	{"network tail=3%", `"3%" is not a tail; expected a share and a delay, such as tail=3%:1500ms`},
	{"network delay=1ms..9ms tail=3%:5ms",
		"the tail ends at 5ms and the delay at 9ms; expected a tail of at least the delay"},
	{"link loss=1%",
		`"loss=1%" is not a link; expected two ends and an arrow, such as S1->S2, ` +
			"S1->* or A->S1"},
	{"link S1->S1 loss=1%", `"S1->S1" leads nowhere; expected two different ends`},
	{"link A->B loss=1%", `"A->B" joins two clients; expected a node at one end`},
	{"link S1->S4 loss=1%", `"S4" is not a node of this scenario; expected S1 to S3`},
	{"link S1-> loss=1%", `"" is not a node of this scenario; expected S1 to S3`},
	{"clock S1", "the line says nothing; expected " + clockUsage},
	{"clock S1 rate=0.001",
		`"0.001" is not a rate; expected 0.01 to 100, such as 1.5, with at most 6 ` +
			"places"},
	{"clock S1 rate=101",
		`"101" is not a rate; expected 0.01 to 100, such as 1.5, with at most 6 places`},
	{"clock S1 rate=1e0",
		`"1e0" is not a rate; expected 0.01 to 100, such as 1.5, with at most 6 places`},
	{"clock S1 rate=-1",
		`"-1" is not a rate; expected 0.01 to 100, such as 1.5, with at most 6 places`},
	{"clock S1 stop rate=1", "stop and jump= stand alone; expected a line for each"},
	{"clock S1 rate=2 slew=+1s", "the line says several things about the clock; expected a line for each"},
	{"clock S1 wander=5% strobe=+1s every=1s for=1s", "the line says several things about the clock; expected a line for each"},
	{"clock S1 timely late=1s", "the line says several things about the clock; expected a line for each"},
	{"clock S1 pace=1%", "pace= is a slew's; expected slew=+1s pace=0.05%"},
	{"clock S1 slew=+1s pace=51%", `"51%" is out of range; expected 0.0001% to 50%`},
	{"clock S1 wander=0%", `"0%" is out of range; expected 0.0001% to 50%`},
	{"clock S1 rate=2 every=1s", "every= is a strobe's or a wandering clock's; expected strobe=+1s every=10ms for=2s or wander=5% every=1s"},
	{"clock S1 wander=1% for=1s", "for= is a strobe's; expected strobe=+1s every=10ms for=2s"},
	{"clock S1 strobe=+1s for=1s", "a strobe needs every= and for=; expected strobe=+1s every=10ms for=2s"},
	{"clock S1 strobe=+1s every=1s", "a strobe needs every= and for=; expected strobe=+1s every=10ms for=2s"},
	{"clock S1 coarse=0s", `"0s" is no time at all; expected a duration such as 250ms or 10s, more than 0`},
	{"clock S1 offset=-1s",
		`"-1s" is negative; expected a duration such as 250ms or 10s, not negative`},
	{"clock S1 jump=0s",
		`"0s" is no time at all; expected a duration such as 250ms or 10s, more than 0`},
	{"disk S1 stal",
		`no disk command "stal"; expected disk S1 sync=2ms..8ms, stall, fail, reorder, ok or ` +
			`finish [#2 | snapshot]; did you mean "stall"?`},
	{"disk S1 finish 2", `"2" is not a position; expected #N, counting from #1`},
	{"crash * lost", "one disk at a time is lost, and none in the middle of a write; expected crash S1 lost"},
	{"crash S1 writing lost", "one disk at a time is lost, and none in the middle of a write; expected crash S1 lost"},
	{"crash S1 keep=0", `"0" is out of range; expected at least 1 and not a giant number`},
	{"crash S1 non", `"non" is too much; expected crash S1 [writing] [torn|some|all|keep=2|lost]`},
	{"A: write door takes=0s", `"0s" is no time at all; expected a duration such as 250ms or 10s, more than 0`},
	{"A: write door at=1s", `no option "at="; expected takes= or token=`},
	{"A: read door token=1", `"token=1" is too much; expected A: read KEY`},
	{"resource door", "the line ends too soon; expected resource KEY mistake=NAME, or resource KEY restart"},
	{"resource door mistake=strikt", `no mistake "strikt"; expected equality, check-then-act, strict, zero-accepted, ` +
		`not-durable or read-unfenced; did you mean "strict"?`},
	{"resource door crash", `no resource command "crash"; expected resource KEY mistake=NAME, or resource KEY restart`},
	{"at 1s resource door mistake=strict",
		"resource mistake= is set-up, not an event; expected it in a line before the first event"},

	{"until leader S1 within 0s",
		`"0s" is no time at all; expected a duration such as 250ms or 10s, more than 0`},
	{"until leader S1 in 2s", `no option "in"; expected term=`},
	{"at 1s nodes 3",
		"nodes is set-up, not an event; expected it in a line before the first event"},
	{"at 1s clock S1 offset=1s",
		"clock offset= is set-up, not an event; expected it in a line before the first event"},
	{"at 1s disk S1 sync=1ms",
		"disk sync= is set-up, not an event; expected it in a line before the first " +
			"event"},
	{"at 1s at 2s heal", "at cannot be scheduled; expected a command that happens at once"},
	{"at 1s until leader S1", "until cannot be scheduled; expected a command that happens at once"},
	{"at 1s run 1s", "run cannot be scheduled; expected a command that happens at once"},
	{"at 1s expect converged within 1s",
		"a scheduled expect cannot wait; expected expect converged"},
	{"deliver S1->S2 S2->S3",
		"a second link stands in the line; expected deliver [S1->S2] [KIND] [#N], or " +
			"deliver all"},
	{"deliver append vote",
		`"vote" is too much; expected deliver [S1->S2] [KIND] [#N], or deliver all`},
	{"deliver apend",
		`no kind of message "apend"; expected vote, vote-reply, append, append-reply, ` +
			`prevote, prevote-reply, read, read-reply, transfer, transfer-reply, snapshot, snapshot-reply, request or request-reply; ` +
			`did you mean "append"?`},
	{"deliver #1 #2",
		`"#2" does not belong to the command; expected a comment to have a line of its ` +
			"own"},
	{"deliver append #0", `"0" is out of range; expected at least 1 and not a giant number`},
	{"hold", "the line ends too soon; expected hold S1->S2 [KIND]"},
	{"release door",
		`"door" is not a link; expected two ends and an arrow, such as S1->S2, S1->* ` +
			"or A->S1"},
	{"propose S1", "the text is missing; expected propose S1 TEXT"},

	{"cut S1 S2",
		"the line does not have somebody on both sides of a bar; expected cut S1 S2 | " +
			"S3 S4, or cut S1->S2"},
	{"cut S1 | S2 S1", "S1 stands twice; expected everyone at most once"},
	{"cut S1 | *", `"*" is not a node of this scenario; expected S1 to S3`},
	{"suspend S4", `"S4" is not a node of this scenario; expected S1 to S3`},
	{"suspend S1 clock=no", `"no" is neither on nor off; expected on or off`},
	{"suspend S1 off", `no option "off"; expected clock=`},

	{"S1: write door",
		`"S1" is not a client; expected a capitalised name, but not a node's, such as ` +
			"A or Bob"},
	{"A-1: write door",
		`"A-1" is not a client; expected a capitalised name, but not a node's, such as ` +
			"A or Bob"},
	{"a: write door",
		`"a" is not a client; expected a capitalised name, but not a node's, such as A ` +
			"or Bob"},
	{"A: aquire door",
		`no client command "aquire"; expected acquire, release, extend, write, read, disconnect, ` +
			`retry, pause, suspend or resume; did you mean "acquire"?`},
	{"A: acquire door", "the lease is missing; expected A: acquire KEY lease=10s [try] [via=S2]"},
	{"A: acquire door lease",
		`no option "lease"; expected lease=, try or via=; did you mean "lease="?`},
	{"A: acquire door lease=1", `"1" is not a duration; expected a duration such as 250ms or 10s`},
	{"A: write " + strings.Repeat("k", 256), "the key has 256 bytes; expected at most 255"},
	{"A: release door token=-1", `"-1" is not a whole number; expected digits, and less than 2^63`},
	{"A: extend door", "the lease is missing; expected A: extend KEY lease=10s [via=S2]"},
	{"connect", "the line says nothing; expected connect A B, or connect others=N"},
	{"connect S1", `"S1" is not a client; expected a capitalised name, but not a node's, such as A or Bob`},
	{"connect others=10001", "10001 are too many; expected others=1 to others=10000"},
	{"connect others=9 A", `"A" is too much; expected connect A B, or connect others=N`},
	{"read", "the line ends too soon; expected read S1 [local], or A: read KEY"},
	{"read S9", `"S9" is not a node of this scenario; expected S1 to S3`},
	{"read S1 locally", `no option "locally"; expected local; did you mean "local"?`},
	{"expect S1 read=old", `no end of a read "old"; expected none, waiting, answered, stale or failed`},
	{"snapshot", "the line ends too soon; expected snapshot S1"},
	{"snapshot S9", `"S9" is not a node of this scenario; expected S1 to S3`},
	{"disk S1 finish snapshots", `"snapshots" is not a position; expected #N, counting from #1`},
	{"transfer S1", "the line ends too soon; expected transfer S1 S2"},
	{"transfer S1 S2 S3", `"S3" is too much; expected transfer S1 S2`},
	{"add", "the line ends too soon; expected add S4 [learner]"},
	{"add S5", `"S5" cannot be added; expected S4, or one that was removed`},
	{"add A", `"A" cannot be added; expected S4, or one that was removed`},
	{"add S04", `"S04" cannot be added; expected S4, or one that was removed`},
	{"add S3", "S3 is there already; expected S4, or one that was removed"},
	{"add S4 voter", `no option "voter"; expected learner`},
	{"promote S4", `"S4" is not a node of this scenario; expected S1 to S3`},
	{"promote S3", "S3 votes already; expected a learner"},
	{"remove S7", `"S7" is not a node of this scenario; expected S1 to S3`},
	{"remove S2 S3", `"S3" is too much; expected remove S2`},
	{"expect S1 members=S1,S4", `"S4" is not a node of this scenario; expected S1 to S3`},
	{"expect S1 members=S2,S1",
		`"S2,S1" is out of order; expected each once, by rising number, learners behind a plus: S1,S2,S3+S4`},

	{"# ?",
		`the question or an answer is empty; expected "# ? question | right answer | ` +
			`wrong answer …"`},
	{"# ? q | a",
		`the question needs at least two answers; expected "# ? question | right ` +
			`answer | wrong answer …"`},
	{"# ? q | a |",
		`the question or an answer is empty; expected "# ? question | right answer | ` +
			`wrong answer …"`},

	{"strike swizle for 1s", `no strike "swizle"; expected crash, tear, scatter, pause, stall, wreck, spoil, ` +
		"transfer, isolate, mute, deafen, delay, swizzle, rolling-restart, ping-pong, bridge, candidate-storm, " +
		`pause-holder or clock-fan-out; did you mean "swizzle"?`},
	{"strike swizzle", "the line ends too soon; expected strike WHAT [leader|candidate|S1] [for 300ms]"},
	{"strike swizzle S1", `"S1" does not say for how long; expected strike WHAT [leader|candidate|S1] [for 300ms]`},
	{"strike crash it", `"it" is not a node of this scenario; expected S1 to S3`},
	{"strike crash S1 for 0s", `"0s" is no time at all; expected a duration such as 250ms or 10s, more than 0`},
	{"on comitted strike crash it", `no moment "comitted"; expected committed, elected, granted, expiring, deposed, ` +
		"voted, stored, sending-snapshot, saving-snapshot, handing-over or changing-members; " +
		`did you mean "committed"?`},
	{"on committed crash S1", `"crash" is no strike; expected on MOMENT [#N] strike WHAT ` +
		"[it|leader|candidate|S1] [for 300ms]"},
	{"at 1s recover", "recover cannot be scheduled; expected a command that happens at once"},
	{"expect leader S1 within 1s",
		"expect looks only once; expected until CONDITION within 2s, or expect " +
			"converged within 2s"},
	{"expect leadr S1",
		`no condition "leadr"; expected leader, no, in-flight, holder, free, count or ` +
			`converged, a node, a client, or "NAME violated"; did you mean "leader"?`},
	{"expect leader S1 term=0", `"0" is too small; expected a number from 1 up`},
	{"expect no leadr",
		`no condition behind no "leadr"; expected leader or in-flight; did you mean ` +
			`"leader"?`},
	{"expect S1", "nothing is said about S1; expected role=, term=, log= or the like"},
	{"until S1 within 2s", "nothing is said about S1; expected role=, term=, log= or the like"},
	{"expect S9 term=1", `"S9" is not a node of this scenario; expected S1 to S3`},
	{"expect S1 role=folower",
		`no role "folower"; expected follower, candidate, leader or ` +
			`pre-candidate; did you mean "follower"?`},
	{"expect S1 vote=A", `"A" is not a node of this scenario; expected S1 to S3`},
	{"expect S1 snapshot=4", `"4" is not a position; expected an index and a term, such as 3@2`},
	{"expect in-flight S1->S2 append done=yes", "messages of kind append have no done; expected it with snapshot"},
	{"expect in-flight S1->S2 append prev=3",
		`"3" is not a position; expected an index and a term, such as 3@2`},
	{"expect in-flight S1->S2 vote-reply granted=on",
		`"on" is neither yes nor no; expected yes or no`},
	{"expect in-flight S1->S2 append granted=yes",
		"messages of kind append have no granted; expected it with vote-reply or prevote-reply"},
	{"expect holder door S1",
		`"S1" is not a client; expected a capitalised name, but not a node's, such as ` +
			"A or Bob"},
	{"expect free", "the line ends too soon; expected free KEY [at S3]"},
	{"expect free door at A", `"A" is not a node of this scenario; expected S1 to S3`},
	{"expect A grantd",
		`no state of a client "grantd"; expected granted, waiting, rejected, released, ` +
			`extended, connected, not-found, unknown, forgotten, written, read, refused, not-leader, late, invalid or nothing; did you mean "granted"?`},
	{"expect A waiting token=2",
		`"token=2" is too much; expected A granted, waiting, rejected, released, ` +
			"extended, connected, not-found, unknown, forgotten, written, read, refused, not-leader, late, invalid or nothing"},
	{"expect count expire.never = 0",
		`no counter "expire.never"; expected one such as expire.newer; did you mean ` +
			`"expire.newer"?`},
	{"expect count elections == 1", `"==" does not compare; expected =, !=, <, <=, > or >=`},
	{"expect converged now", `"now" is too much; expected converged [within 2s]`},
	{"expect electon-safety violated", `no invariant "electon-safety"; expected one that ` +
		`"raftsim list -invariants" prints; did you mean "election-safety"?`},
}

func TestAMalformedLineIsExplained(t *testing.T) {
	for _, tt := range badLines {
		t.Run(tt.text, func(t *testing.T) {
			_, err := Parse("bad.txt", "# T\nnodes 3\nnode S3\n"+tt.text+"\n")
			got, ok := errors.AsType[*SyntaxError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			want := &SyntaxError{File: "bad.txt", Line: 4, Problem: tt.problem}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMalformedFileIsExplained(t *testing.T) {
	const untitled = `expected "# " and the scenario's title in the first line`
	for _, tt := range []struct{ text, want string }{
		{"", "f:1: the file is empty; " + untitled},
		{"\n# T", "f:1: the scenario has no title; " + untitled},
		{"nodes 3", "f:1: the scenario has no title; " + untitled},
		{"#  ", "f:1: the scenario has no title; " + untitled},
		{"# T\nnodes 0", `f:2: "0" is out of range; expected at least 1 and not a giant number`},
		{"# T\nnodes 10", "f:2: 10 nodes are too many; expected 1 to 9"},
		{"# T\nnodes 3 learners 0", `f:2: "0" is out of range; expected at least 1 and not a giant number`},
		{"# T\nnodes 1000000000", "f:2: 1000000000 nodes are too many; expected 1 to 9"},
		{"# T\nnodes 7 learners 3", "f:2: 10 nodes are too many; expected 1 to 9"},
		{"# T\nnodes 9\nadd S10", "f:3: S10 is one server too many; expected at most 9"},
		{"# T\nnodes 3 learners 1\npromote S4\npromote S1", "f:4: S1 votes already; expected a learner"},
		{"# T\nremove S1\nadd S1\nadd S4\nadd S4\nadd S2", "f:6: S2 is there already; expected S5, or one that was removed"},
		{"# T\ntimeout S4\nadd S4", `f:2: "S4" is not a node of this scenario; expected S1 to S3`},
		{"# T\nadd S4\ntimeout S4\ncut S4 | S1\ntimeout S5", `f:5: "S5" is not a node of this scenario; expected S1 to S4`},
		{"# T\ntimeout S4", `f:2: "S4" is not a node of this scenario; expected S1 to S3`},
		{"# T\nnodes 1\ntimeout S2",
			`f:3: "S2" is not a node of this scenario; expected S1, the only node`},
		{"# T\nnode S2\nnodes 5",
			"f:3: nodes comes too late; expected nodes before the first line that names a node"},
		{"# T\nrun 1s\n\nseed 1",
			"f:4: seed is set-up, but line 2 is an event; expected it before all events"},
		{"# T\nat 1s heal\nclock S1 rate=2\nclock S1 offset=1s",
			"f:4: clock offset= is set-up, but line 2 is an event; expected it before all events"},
		{"# T\nresource door mistake=strict\nresource door restart\nresource gate mistake=strict",
			"f:4: resource mistake= is set-up, but line 3 is an event; expected it before all events"},
		{"# T\nresource door mistake=strict\nresource door mistake=equality",
			"f:3: a second line says resource door; expected resource door once"},
		{"# T\ndisk S1 stall\ndisk S1 sync=1ms",
			"f:3: disk sync= is set-up, but line 2 is an event; expected it before all events"},
		{"# T\nclock S1 rate=2\n# ? q | a | b\ndisk S1 sync=1ms\nseed 1\nclock S2 stop\nmanual",
			"f:7: manual is set-up, but line 6 is an event; expected it before all events"},
		{"# T\nconfig election=1s\nconfig heartbeat=900ms\nconfig heartbeat=1s",
			"f:4: heartbeat is 1s and election is 1s; expected heartbeat below election"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			_, err := Parse("f", tt.text)
			if got := fmt.Sprint(err); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNearestOffersNamesThatLookLikeTheWord(t *testing.T) {
	rules := RuleNames()
	for _, tt := range []struct{ word, want string }{
		{"gate", `; did you mean "gate"?`},
		{"gaet", `; did you mean "gate"?`},
		{"Noop-Wait", `; did you mean "noop-wait"?`},
		{"token", `; did you mean "expire-token" or "release-token"?`},
		{"e", ""},
		{"request", `; did you mean "request-ids"?`},
		{strings.Repeat("gate", 1000), ""},
	} {
		if got := Nearest(tt.word, rules); got != tt.want {
			t.Errorf("Nearest(%.20q) = %q, want %q", tt.word, got, tt.want)
		}
	}
}

// FuzzParse tries that no text makes Parse panic, that an error has its form, and that what parses
// can be written and read again.
func FuzzParse(f *testing.F) {
	f.Add(lateExpire)
	for _, good := range goodLines {
		f.Add("# T\nnodes 5\n" + good.text)
	}
	for _, bad := range badLines {
		f.Add("# T\n" + bad.text + "\n")
	}
	shape := regexp.MustCompile(`^fuzz:[1-9][0-9]*: (not supported yet: .+|.+; expected .+)$`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("fuzz", text)
		if err != nil {
			if !shape.MatchString(err.Error()) {
				t.Errorf("the error is %q", err)
			}
			return
		}
		again, err := Parse("fuzz", s.String())
		if err != nil {
			t.Fatalf("%v, in what was written:\n%s", err, s)
		}
		again.Text = s.Text
		if diff := cmp.Diff(s, again); diff != "" {
			t.Errorf("read again (-first +second):\n%s", diff)
		}
	})
}
