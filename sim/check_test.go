package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ticketing/fsm"
	"ticketing/fsm/trace"
	"ticketing/raft"
)

// An invariant that cannot fail protects nothing. So each is shown what is wrong, and must say so,
// and its nearest right neighbour, and must be silent. They are called as the world calls them,
// with states and messages that no correct server would make.

// A showing is a case for an invariant: what to do before, and a call of which the answer counts.
type showing struct {
	what  string
	says  string // part of the answer; "" for one that is right
	shown func(w *World, i *invariant) string
}

func following(term raft.Term) *raft.Status { return &raft.Status{Role: raft.Follower, Term: term} }
func leading(term raft.Term) *raft.Status   { return &raft.Status{Role: raft.Leader, Term: term} }

// elect tells an invariant that a node has begun to lead a term.
func elect(w *World, i *invariant, id raft.ServerID, term raft.Term) string {
	return i.change(w, w.node(id), following(term-1), leading(term))
}

// say tells an invariant that a node sends something.
func say(w *World, i *invariant, from, to raft.ServerID, term raft.Term, body raft.Body) string {
	return i.send(w, w.node(from), &raft.Message{From: from, To: to, Term: term, Body: body})
}

func grant(of raft.Term) raft.RequestVoteReply {
	return raft.RequestVoteReply{RequestTerm: of, VoteGranted: true}
}

// log makes a log from its terms; entries of a higher flavour differ from others of the same term.
func log(flavour string, terms ...raft.Term) (entries []raft.Entry) {
	for i, term := range terms {
		entries = append(entries, raft.Entry{Index: raft.Index(i) + 1, Term: term, Command: []byte(flavour)})
	}
	return entries
}

func chains(entries []raft.Entry) (hashes []uint64) {
	for _, e := range entries {
		hashes = append(hashes, chain(last(hashes), e))
	}
	return hashes
}

// appendTo tells an invariant that a node has come to hold a log, all of it new.
func appendTo(w *World, i *invariant, id raft.ServerID, before *raft.Status, entries []raft.Entry) string {
	n := w.node(id)
	n.chains = chains(entries)
	return i.append(w, n, before, entries)
}

// commit puts a log into the ledger, all of it committed by the leader of a term.
func commit(w *World, by raft.Term, entries []raft.Entry) {
	w.ledger.committed = nil
	for i, hash := range chains(entries) {
		w.ledger.committed = append(w.ledger.committed, commitRecord{hash, entries[i].Term, by})
	}
}

func committing(role raft.Role, term raft.Term, i raft.Index) *raft.Status {
	return &raft.Status{Role: role, Term: term, CommitIndex: i, LastIndex: i}
}

func granted(i raft.Index, token fsm.Token) *fsm.Applied {
	return &fsm.Applied{
		Index: i, Term: 1, Envelope: fsm.Envelope{Client: 1, Seq: uint64(i), Command: fsm.Command{Kind: fsm.Grant, Key: "door"}},
		Result: fsm.Result{Kind: fsm.Granted, Token: token},
	}
}

func released(i raft.Index, kind fsm.Kind, token fsm.Token) *fsm.Applied {
	a := &fsm.Applied{
		Index: i, Term: 1, Envelope: fsm.Envelope{Command: fsm.Command{Kind: kind, Key: "door", Token: token}},
		Result: fsm.Result{Kind: fsm.Released},
	}
	if kind == fsm.Expire {
		a.Result = fsm.Result{Kind: fsm.Expired, Existed: true}
	}
	return a
}

// lapsed is a leader's proposal to end a tenure because its lease ran out.
func lapsed(i raft.Index, meant fsm.Token, e fsm.Envelope) *fsm.Proposed {
	return &fsm.Proposed{Index: i, Term: 1, Cause: fsm.ForLease, Meant: meant, Envelope: e}
}

// numbered is a Grant that a request came to.
func numbered(i raft.Index, seq uint64, token fsm.Token) *fsm.Applied {
	a := granted(i, token)
	a.Envelope.Seq = seq
	return a
}

func rejected(i raft.Index, holder fsm.Token) *fsm.Applied {
	a := granted(i, 0)
	a.Result, a.Holder = fsm.Result{Kind: fsm.GrantRejected}, holder
	return a
}

// cleanup is the proposal of a leader whose client has gone before it heard of token 1.
func cleanup(i raft.Index, e fsm.Envelope) *fsm.Proposed {
	return &fsm.Proposed{Index: i, Term: 1, Cause: fsm.ForCleanup, Meant: 1, Envelope: e}
}

// begins shows a leader of term 2 that has applied so much and proposes, behind its first entry.
func begins(w *World, i *invariant, applied raft.Index) string {
	n := w.nodes[0]
	n.status = raft.Status{Role: raft.Leader, Term: 2, LastApplied: applied}
	problem := i.append(w, n, following(1), log("", 1, 1, 2)[2:])
	return problem + i.propose(w, n, &fsm.Proposed{Index: 4, Term: 2})
}

// grants shows a leader that has proposed a Grant for a client, and applies it.
func grants(w *World, i *invariant, out fsm.Output) string {
	n := w.nodes[0]
	n.status = *leading(1)
	out.Applied = []fsm.Applied{*granted(1, 1)}
	return i.propose(w, n, &fsm.Proposed{Index: 1, Term: 1, Envelope: granted(1, 1).Envelope}) + i.took(w, n, &out)
}

// extends shows a leader that has seen out the lease of token 2 and proposes its end behind entries
// that are not applied.
func extends(t *testing.T, i *invariant, commands ...string) string {
	w := settled(t)
	n := w.nodes[0]
	for _, command := range commands {
		if _, _, err := n.replica.Core().Propose([]byte(command)); err != nil {
			t.Fatal(err)
		}
	}
	n.tenures = map[string]tenureSeen{"door": {token: 2, lease: 1}}
	return i.propose(w, n, lapsed(3+raft.Index(len(commands)), 2, released(5, fsm.Expire, 2).Envelope))
}

func showings(t *testing.T) map[string][]showing {
	all := showingsOfLogsAndLocks(t)
	maps.Copy(all, showingsOfSnapshots(t))
	maps.Copy(all, showingsOfMembers())
	maps.Copy(all, showingsOfHistories())
	return all
}

func showingsOfLogsAndLocks(t *testing.T) map[string][]showing {
	answered := &fsm.Reply{Status: fsm.Answered, Result: granted(3, 1).Result, Index: 3}
	request := &fsm.Request{Client: 1, Seq: 3}
	return map[string][]showing{
		"election-safety": {
			{"a second leader", "term 2 has a second leader; the first was S1", func(w *World, i *invariant) string {
				return elect(w, i, 1, 2) + elect(w, i, 2, 2)
			}},
			{"a leader of the next term", "", func(w *World, i *invariant) string {
				return elect(w, i, 1, 2) + elect(w, i, 2, 3) + elect(w, i, 1, 2)
			}},
		},
		"leader-quorum": {
			{"its own vote alone", "votes of 1 of 3", func(w *World, i *invariant) string {
				w.nodes[0].disk.durable.HardState = raft.HardState{Term: 2, VotedFor: 1}
				return say(w, i, 2, 1, 2, raft.RequestVoteReply{RequestTerm: 2}) + say(w, i, 2, 3, 2, grant(2)) + elect(w, i, 1, 2)
			}},
			{"another's vote and its own that is not durable", "votes of 1 of 3", func(w *World, i *invariant) string {
				return say(w, i, 2, 1, 2, grant(2)) + elect(w, i, 1, 2)
			}},
			{"a vote of an earlier term", "votes of 1 of 3", func(w *World, i *invariant) string {
				w.nodes[0].disk.durable.HardState = raft.HardState{Term: 2, VotedFor: 1}
				return say(w, i, 2, 1, 1, grant(1)) + elect(w, i, 1, 2)
			}},
			{"two votes", "", func(w *World, i *invariant) string {
				w.nodes[0].disk.durable.HardState = raft.HardState{Term: 2, VotedFor: 1}
				return say(w, i, 2, 1, 2, grant(2)) + elect(w, i, 1, 2)
			}},
		},
		"vote-once": {
			{"two grants", "in term 2 it voted for S1 and for S3", func(w *World, i *invariant) string {
				return say(w, i, 2, 1, 2, grant(2)) + say(w, i, 2, 3, 2, grant(2))
			}},
			{"a grant by a candidate", "in term 2 it voted for S2 and for S3", func(w *World, i *invariant) string {
				return say(w, i, 2, 3, 2, raft.RequestVote{}) + say(w, i, 2, 3, 2, grant(2))
			}},
			{"a grant twice, a refusal, another term", "", func(w *World, i *invariant) string {
				return say(w, i, 2, 1, 2, grant(2)) + say(w, i, 2, 1, 2, grant(2)) +
					say(w, i, 2, 3, 2, raft.RequestVoteReply{RequestTerm: 2}) + say(w, i, 2, 3, 3, grant(3))
			}},
		},
		"term-monotone": {
			{"a term that falls", "its term is 4, it has spoken in term 5", func(w *World, i *invariant) string {
				return say(w, i, 1, 2, 5, raft.RequestVote{}) + i.change(w, w.nodes[0], following(5), following(4))
			}},
			{"a term that a crash has taken", "it came back in term 4", func(w *World, i *invariant) string {
				w.nodes[0].status.Term = 4
				return say(w, i, 1, 2, 5, raft.RequestVote{}) + i.restart(w, w.nodes[0])
			}},
			{"a term that stays, and another server", "", func(w *World, i *invariant) string {
				w.nodes[0].status.Term = 5
				return say(w, i, 1, 2, 5, raft.RequestVote{}) + i.restart(w, w.nodes[0]) + i.change(w, w.nodes[1], following(1), following(2))
			}},
		},
		"leader-authentic": {
			{"entries sent by a follower", "AppendEntries of term 2, which S1 leads", func(w *World, i *invariant) string {
				return elect(w, i, 1, 2) + say(w, i, 2, 3, 2, raft.AppendEntries{})
			}},
			{"an entry of a term without a leader", "entry 1 is of term 2, which nobody led", func(w *World, i *invariant) string {
				return appendTo(w, i, 2, following(3), log("", 2))
			}},
			{"an entry of a second leader", "it makes entry 1 of term 2, which S1 leads", func(w *World, i *invariant) string {
				w.nodes[1].status = *leading(2)
				return elect(w, i, 1, 2) + appendTo(w, i, 2, leading(2), log("", 2))
			}},
			{"a leader's first entry, and a copy", "", func(w *World, i *invariant) string {
				w.nodes[0].status = *leading(2)
				return appendTo(w, i, 1, following(1), log("", 2)) + elect(w, i, 1, 2) +
					say(w, i, 1, 2, 2, raft.AppendEntries{}) + appendTo(w, i, 2, following(2), log("", 2))
			}},
			{"entries that the run began with", "", func(w *World, i *invariant) string {
				w.firstTerm = 2
				return appendTo(w, i, 2, following(3), log("", 2))
			}},
		},
		"persist-before-send": {
			{"a term", "it says term 3, its disk 2", func(w *World, i *invariant) string {
				w.nodes[0].disk.durable.Term = 2
				return say(w, i, 1, 2, 3, raft.AppendEntries{})
			}},
			{"its own vote", "it campaigns in term 2, its disk has its vote as S0", func(w *World, i *invariant) string {
				w.nodes[0].disk.durable.Term = 2
				return say(w, i, 1, 2, 2, raft.RequestVote{})
			}},
			{"a vote for another", "it grants S2 its vote of term 2, its disk has S3", func(w *World, i *invariant) string {
				w.nodes[0].disk.durable.HardState = raft.HardState{Term: 2, VotedFor: 3}
				return say(w, i, 1, 2, 2, grant(2))
			}},
			{"an entry", "it acknowledges entry 3, its disk ends at 2", func(w *World, i *invariant) string {
				w.nodes[0].disk.startFrom(raft.Durable{HardState: raft.HardState{Term: 1}, Entries: log("", 1, 1)})
				return say(w, i, 1, 2, 1, raft.AppendEntriesReply{RequestTerm: 1, Success: true, MatchIndex: 3})
			}},
			{"what is durable, and what is refused", "", func(w *World, i *invariant) string {
				w.nodes[0].disk.startFrom(raft.Durable{HardState: raft.HardState{Term: 2, VotedFor: 1}, Entries: log("", 1, 1)})
				return say(w, i, 1, 2, 2, raft.RequestVote{}) + say(w, i, 1, 2, 2, raft.RequestVoteReply{RequestTerm: 2}) +
					say(w, i, 1, 2, 2, raft.AppendEntriesReply{RequestTerm: 2, Success: true, MatchIndex: 2}) +
					say(w, i, 1, 2, 2, raft.AppendEntriesReply{RequestTerm: 2, PrevLogIndex: 9}) + say(w, i, 1, 2, 1, raft.RequestVote{})
			}},
		},
		"leader-append-only": {
			{"an entry in the place of another", "the leader of term 2 replaces entry 1; its log ended at 1", func(w *World, i *invariant) string {
				w.nodes[0].status = *leading(2)
				return appendTo(w, i, 1, &raft.Status{Role: raft.Leader, Term: 2, LastIndex: 1}, log("", 2))
			}},
			{"an entry behind the others", "", func(w *World, i *invariant) string {
				w.nodes[0].status = *leading(2)
				return i.append(w, w.nodes[0], &raft.Status{Role: raft.Leader, Term: 2, LastIndex: 1}, log("", 1, 2)[1:])
			}},
			{"a leader that was deposed in between", "", func(w *World, i *invariant) string {
				w.nodes[0].status = *following(3)
				return appendTo(w, i, 1, &raft.Status{Role: raft.Leader, Term: 2, LastIndex: 1}, log("", 3))
			}},
		},
		logMatching: {
			{"two entries of one index and term", "entry 2 of term 1", func(w *World, i *invariant) string {
				other := log("a", 1, 1)
				other[1].Command = []byte("b")
				return appendTo(w, i, 1, following(1), log("a", 1, 1)) + appendTo(w, i, 2, following(1), other)
			}},
			{"equal entries behind different ones", "entry 2 of term 3", func(w *World, i *invariant) string {
				return appendTo(w, i, 1, following(3), log("", 1, 3)) + appendTo(w, i, 2, following(3), log("", 2, 3))
			}},
			{"a disk that came back different", "entry 1 of term 1", func(w *World, i *invariant) string {
				problem := appendTo(w, i, 1, following(1), log("a", 1))
				w.nodes[1].disk.startFrom(raft.Durable{HardState: raft.HardState{Term: 1}, Entries: log("b", 1)})
				w.nodes[1].chains = w.nodes[1].disk.chains
				return problem + i.restart(w, w.nodes[1])
			}},
			{"a log that was replaced, in several terms", "", func(w *World, i *invariant) string {
				a, b, c := log("a", 1, 1), log("b", 2, 2), log("c", 3, 3)
				return appendTo(w, i, 1, following(1), a) + appendTo(w, i, 2, following(2), b) + appendTo(w, i, 3, following(3), c) +
					appendTo(w, i, 1, following(1), b) + appendTo(w, i, 2, following(2), c) + appendTo(w, i, 3, following(3), c)
			}},
		},
		"entry-term": {
			{"terms that fall", "entry 2 has term 1, after 2", func(w *World, i *invariant) string {
				w.nodes[0].status.Term = 3
				return appendTo(w, i, 1, following(3), log("", 2, 1))
			}},
			{"a term from the future", "entry 1 has term 4, after 0 and in term 3", func(w *World, i *invariant) string {
				w.nodes[0].status.Term = 3
				return appendTo(w, i, 1, following(3), log("", 4))
			}},
			{"a log that ends in the future", "its log ends in term 4, its term is 3", func(w *World, i *invariant) string {
				return i.change(w, w.nodes[0], following(3), &raft.Status{Term: 3, LastTerm: 4})
			}},
			{"terms that rise", "", func(w *World, i *invariant) string {
				w.nodes[0].status.Term = 3
				return appendTo(w, i, 1, following(3), log("", 1, 3)) + i.change(w, w.nodes[0], following(3), &raft.Status{Term: 3, LastTerm: 3})
			}},
		},
		"commit-monotone": {
			{"a commitIndex that falls", "commitIndex fell from 3 to 2", func(w *World, i *invariant) string {
				return i.change(w, w.nodes[0], committing(raft.Follower, 1, 3), committing(raft.Follower, 1, 2))
			}},
			{"beyond the log", "commitIndex 3, last index 2", func(w *World, i *invariant) string {
				return i.change(w, w.nodes[0], following(1), &raft.Status{CommitIndex: 3, LastIndex: 2})
			}},
			{"applied and not committed", "lastApplied 3, commitIndex 2", func(w *World, i *invariant) string {
				return i.change(w, w.nodes[0], following(1), &raft.Status{CommitIndex: 2, LastApplied: 3, LastIndex: 3})
			}},
			{"a commitIndex that rises", "", func(w *World, i *invariant) string {
				return i.change(w, w.nodes[0], committing(raft.Follower, 1, 2), committing(raft.Follower, 1, 3))
			}},
		},
		"commit-agreement": {
			{"a follower ahead of every leader", "entry 1 as committed, which no leader has", func(w *World, i *invariant) string {
				w.nodes[0].chains = chains(log("", 1))
				return i.change(w, w.nodes[0], following(1), committing(raft.Follower, 1, 1))
			}},
			{"other entries", "its entries up to 1 are not those that were committed", func(w *World, i *invariant) string {
				commit(w, 1, log("a", 1))
				w.nodes[1].chains = chains(log("b", 1))
				return i.change(w, w.nodes[1], following(1), committing(raft.Follower, 1, 1))
			}},
			{"a leader and then a follower", "", func(w *World, i *invariant) string {
				w.nodes[0].chains, w.nodes[1].chains = chains(log("", 1)), chains(log("", 1))
				return i.change(w, w.nodes[0], leading(1), committing(raft.Leader, 1, 1)) +
					i.change(w, w.nodes[1], following(1), committing(raft.Follower, 1, 1))
			}},
		},
		"commit-durable": {
			{"an entry on one disk", "on the disks of 1 of 3", func(w *World, i *invariant) string {
				commit(w, 1, log("", 1))
				w.nodes[0].disk.startFrom(raft.Durable{Entries: log("", 1)})
				w.nodes[1].disk.startFrom(raft.Durable{Entries: log("other", 1)})
				return i.change(w, w.nodes[0], leading(1), committing(raft.Leader, 1, 1))
			}},
			{"an entry that leaves a disk", "entry 1 was committed and is now on the disks of 1 of 3", func(w *World, i *invariant) string {
				commit(w, 1, log("", 1))
				for _, n := range w.nodes[:2] {
					n.disk.startFrom(raft.Durable{Entries: log("", 1)})
				}
				problem := i.store(w, w.nodes[1])
				w.nodes[1].disk = disk{}
				return problem + i.store(w, w.nodes[1])
			}},
			{"an entry on two disks, and one of three gone", "", func(w *World, i *invariant) string {
				commit(w, 1, log("", 1))
				for _, n := range w.nodes {
					n.disk.startFrom(raft.Durable{Entries: log("", 1)})
				}
				problem := i.store(w, w.nodes[2])
				w.nodes[2].disk = disk{}
				return problem + i.store(w, w.nodes[2]) + i.change(w, w.nodes[0], leading(1), committing(raft.Leader, 1, 1))
			}},
		},
		"leader-completeness": {
			{"a leader without what an earlier one committed", "the leader of term 3 lacks entry 2, committed in term 2", func(w *World, i *invariant) string {
				commit(w, 2, log("", 1, 2))
				w.nodes[0].chains = chains(log("", 1))
				return elect(w, i, 1, 3)
			}},
			{"another entry in its place", "lacks entry 2", func(w *World, i *invariant) string {
				commit(w, 2, log("", 1, 2))
				w.nodes[0].chains = chains(log("", 1, 1, 1))
				return elect(w, i, 1, 3)
			}},
			{"a leader that has it", "", func(w *World, i *invariant) string {
				commit(w, 2, log("", 1, 2))
				w.nodes[0].chains = chains(log("", 1, 2))
				return elect(w, i, 1, 3)
			}},
			{"an old term's leader, elected late", "", func(w *World, i *invariant) string {
				commit(w, 4, log("", 1, 4))
				w.nodes[0].chains = chains(log("", 1))
				return elect(w, i, 1, 3)
			}},
		},
		"match-sound": {
			{"a belief that the follower's disk does not bear out", "it believes that S2 has its log up to 2", func(w *World, i *invariant) string {
				w.nodes[1].disk.durable.Entries, w.nodes[1].disk.chains = log("", 1), w.nodes[1].disk.chains[:1]
				return hears(w, i)
			}},
			{"another entry there", "it believes that S2 has its log up to 2", func(w *World, i *invariant) string {
				w.nodes[1].disk.chains[1]++
				return hears(w, i)
			}},
			{"a follower that has gone on", "", func(w *World, i *invariant) string {
				w.nodes[1].disk.chains, w.nodes[1].status.Term = nil, 2
				return hears(w, i)
			}},
			{"a belief that is true", "", hears},
		},
		"state-machine-safety": {
			{"an entry too early", "it applies entry 2 where 1 is due", func(w *World, i *invariant) string {
				return i.apply(w, w.nodes[0], &fsm.Applied{Index: 2, Term: 1})
			}},
			{"an entry twice", "it applies entry 1 where 2 is due", func(w *World, i *invariant) string {
				return i.apply(w, w.nodes[0], &fsm.Applied{Index: 1, Term: 1}) + i.apply(w, w.nodes[0], &fsm.Applied{Index: 1, Term: 1})
			}},
			{"another entry", "it applies an entry of term 2 at 1; another applied one of term 1", func(w *World, i *invariant) string {
				return i.apply(w, w.nodes[0], &fsm.Applied{Index: 1, Term: 1}) + i.apply(w, w.nodes[1], &fsm.Applied{Index: 1, Term: 2})
			}},
			{"another table", "after entry 1 its table has hash b, another server's had a", func(w *World, i *invariant) string {
				return i.apply(w, w.nodes[0], &fsm.Applied{Index: 1, Term: 1, Hash: 10}) + i.apply(w, w.nodes[1], &fsm.Applied{Index: 1, Term: 1, Hash: 11})
			}},
			{"the same again after a restart", "", func(w *World, i *invariant) string {
				return i.apply(w, w.nodes[0], &fsm.Applied{Index: 1, Term: 1, Hash: 10}) + i.restart(w, w.nodes[0]) +
					i.apply(w, w.nodes[0], &fsm.Applied{Index: 1, Term: 1, Hash: 10}) + i.apply(w, w.nodes[1], &fsm.Applied{Index: 1, Term: 1, Hash: 10})
			}},
		},
		"acknowledged-durable": {
			{"an answer to what is not committed", "request 3, in entry 3, which is not committed", func(w *World, i *invariant) string {
				return i.answer(w, w.nodes[0], request, answered)
			}},
			{"another result than it came to", "answered Granted{1} for request 3, in entry 3, which is not committed or came to something else", func(w *World, i *invariant) string {
				return i.firstApply(w, w.nodes[0], granted(3, 2)) + i.answer(w, w.nodes[0], request, answered)
			}},
			{"a later leader without it", "the leader of term 2 lacks entry 3", func(w *World, i *invariant) string {
				commit(w, 1, log("", 1, 1, 1))
				w.nodes[0].status.Term = 1
				return i.firstApply(w, w.nodes[0], granted(3, 1)) + i.answer(w, w.nodes[0], request, answered) + elect(w, i, 2, 2)
			}},
			{"a later leader with it, an earlier one, other answers", "", func(w *World, i *invariant) string {
				commit(w, 2, log("", 1, 1, 1))
				w.nodes[0].status.Term = 2
				w.nodes[1].chains = chains(log("", 1, 1, 1))
				return i.answer(w, w.nodes[0], request, &fsm.Reply{Status: fsm.NotLeader}) + i.firstApply(w, w.nodes[0], granted(3, 1)) +
					i.answer(w, w.nodes[0], request, answered) + elect(w, i, 2, 3) + elect(w, i, 3, 1)
			}},
		},
		"tokens-increase": {
			{"a token twice", "entry 2 was granted token 1 after 1", func(w *World, i *invariant) string {
				return i.firstApply(w, w.nodes[0], granted(1, 1)) + i.firstApply(w, w.nodes[0], granted(2, 1))
			}},
			{"tokens that rise", "", func(w *World, i *invariant) string {
				return i.firstApply(w, w.nodes[0], granted(1, 1)) + i.firstApply(w, w.nodes[0], released(2, fsm.Release, 1)) +
					i.firstApply(w, w.nodes[0], granted(3, 2))
			}},
		},
		"one-holder": {
			{"a key that is held", `entry 2 grants "door" with token 2 while token 1 holds it`, func(w *World, i *invariant) string {
				w.ledger.note(granted(1, 1))
				return i.firstApply(w, w.nodes[0], granted(2, 2))
			}},
			{"a key that was released", "", func(w *World, i *invariant) string {
				w.ledger.note(granted(1, 1))
				w.ledger.note(released(2, fsm.Release, 1))
				return i.firstApply(w, w.nodes[0], granted(3, 2))
			}},
		},
		"removal-meant": {
			{"an Expire that removes a later tenure", `was meant for token 1 and removed token 2 from "door"`, func(w *World, i *invariant) string {
				w.ledger.note(granted(1, 2))
				a := released(5, fsm.Expire, 1)
				return i.propose(w, w.nodes[0], lapsed(5, 1, a.Envelope)) + i.firstApply(w, w.nodes[0], a)
			}},
			{"a bare Release in an Expire's place", "was meant for token 1 and removed token 2", func(w *World, i *invariant) string {
				w.ledger.note(granted(1, 2))
				a := released(5, fsm.Release, 0)
				return i.propose(w, w.nodes[0], lapsed(5, 1, a.Envelope)) + i.firstApply(w, w.nodes[0], a)
			}},
			{"a client's bare Release", "was meant for token 1 and removed token 2", func(w *World, i *invariant) string {
				w.ledger.note(granted(1, 2))
				w.clients[0].meant = map[uint64]fsm.Token{4: 1}
				a := released(5, fsm.Release, 0)
				a.Envelope.Client, a.Envelope.Seq, a.Envelope.Owner = 1, 4, "A"
				return i.firstApply(w, w.nodes[0], a)
			}},
			{"a client's Release with the token taken out", "was meant for token 1 and removed token 2", func(w *World, i *invariant) string {
				w.ledger.note(granted(1, 2))
				a := released(5, fsm.Release, 0)
				return i.propose(w, w.nodes[0], &fsm.Proposed{Index: 5, Term: 1, Meant: 1, Envelope: a.Envelope}) + i.firstApply(w, w.nodes[0], a)
			}},
			{"what was meant, and a late one that removes nothing", "", func(w *World, i *invariant) string {
				w.ledger.note(granted(1, 2))
				a, late := released(5, fsm.Expire, 2), released(6, fsm.Expire, 1)
				late.Result.Existed = false
				return i.propose(w, w.nodes[0], lapsed(5, 2, a.Envelope)) + i.firstApply(w, w.nodes[0], a) +
					i.propose(w, w.nodes[0], lapsed(6, 1, late.Envelope)) + i.firstApply(w, w.nodes[0], late)
			}},
		},
		"granted-once": {
			{"two tenures of one request", "request 7 of client 1 was granted token 1 and, sent again, token 2", func(w *World, i *invariant) string {
				return i.firstApply(w, w.nodes[0], numbered(1, 7, 1)) + i.firstApply(w, w.nodes[0], numbered(2, 7, 2))
			}},
			{"two answers to it, when the log has no numbers", "request 3 of client 1 was granted token 1 and, sent again, token 2", func(w *World, i *invariant) string {
				again := *answered
				again.Result.Token = 2
				return i.answer(w, w.nodes[0], request, answered) + i.answer(w, w.nodes[0], request, &again)
			}},
			{"the same again, another request, another answer", "", func(w *World, i *invariant) string {
				again := numbered(2, 7, 1)
				again.Result.Again = true
				return i.firstApply(w, w.nodes[0], numbered(1, 7, 1)) + i.firstApply(w, w.nodes[0], again) +
					i.firstApply(w, w.nodes[0], numbered(3, 8, 2)) + i.answer(w, w.nodes[0], &fsm.Request{Client: 1, Seq: 7}, answered) +
					i.answer(w, w.nodes[0], request, &fsm.Reply{Status: fsm.Superseded})
			}},
		},
		"fenced-writes": {
			{"an older holder's write, after a newer one has read", "with token 1 is carried out, after token 2 was shown",
				func(w *World, i *invariant) string {
					return i.shown(w, "door", 1, true) + i.landed(w, "door", 1) + i.shown(w, "door", 2, true) +
						i.shown(w, "door", 1, true) + i.landed(w, "door", 1)
				}},
			{"a write without a token, before anybody came", "with token 0 is carried out", func(w *World, i *invariant) string {
				return i.shown(w, "door", 0, true) + i.landed(w, "door", 0)
			}},
			{"a write by one whom a newer holder's refused call has overtaken", "with token 1 is carried out, after token 2 was shown",
				func(w *World, i *invariant) string {
					return i.shown(w, "door", 1, true) + i.shown(w, "door", 2, false) + i.landed(w, "door", 1)
				}},
			{"each holder's writes, and those of another key", "", func(w *World, i *invariant) string {
				return i.shown(w, "door", 2, true) + i.landed(w, "door", 2) + i.landed(w, "door", 2) +
					i.shown(w, "gate", 1, true) + i.landed(w, "gate", 1) + i.shown(w, "door", 1, false)
			}},
		},
		"holder-served": {
			{"a newer holder that is refused", "token 2 is refused, and the greatest shown before is 1",
				func(w *World, i *invariant) string {
					return i.shown(w, "door", 1, true) + i.shown(w, "door", 2, false)
				}},
			{"a holder whose second call is refused", "token 2 is refused, and the greatest shown before is 2",
				func(w *World, i *invariant) string {
					return i.shown(w, "door", 2, true) + i.shown(w, "door", 2, false)
				}},
			{"refusals of an older holder and of no token, and calls for another key", "", func(w *World, i *invariant) string {
				return i.shown(w, "door", 0, false) + i.shown(w, "door", 2, true) + i.shown(w, "door", 1, false) +
					i.shown(w, "door", 0, false) + i.shown(w, "gate", 1, true)
			}},
		},
		"never-withdrawn": {
			{"a clean-up of what a client was told to hold", "entry 5 cleans token 1 up, which A was told to hold", func(w *World, i *invariant) string {
				w.ledger.note(granted(1, 1))
				a := released(5, fsm.Release, 1)
				return i.heard(w, w.clients[0], 1) + i.propose(w, w.nodes[0], cleanup(5, a.Envelope)) + i.firstApply(w, w.nodes[0], a)
			}},
			{"what was cleaned up and is told afterwards", "it is told to hold token 1, which a clean-up has ended", func(w *World, i *invariant) string {
				w.ledger.note(granted(1, 1))
				a := released(5, fsm.Release, 1)
				return i.propose(w, w.nodes[0], cleanup(5, a.Envelope)) + i.firstApply(w, w.nodes[0], a) + i.heard(w, w.clients[0], 1)
			}},
			{"its own Release, and a clean-up of a ghost and of nothing", "", func(w *World, i *invariant) string {
				w.ledger.note(granted(1, 1))
				own, ghost, nothing := released(5, fsm.Release, 1), released(6, fsm.Release, 2), released(7, fsm.Release, 1)
				nothing.Result = fsm.Result{Kind: fsm.NotFound}
				problem := i.heard(w, w.clients[0], 1) + i.firstApply(w, w.nodes[0], own)
				w.ledger.note(granted(5, 2))
				return problem + i.propose(w, w.nodes[0], cleanup(6, ghost.Envelope)) + i.firstApply(w, w.nodes[0], ghost) +
					i.propose(w, w.nodes[0], cleanup(7, nothing.Envelope)) + i.firstApply(w, w.nodes[0], nothing)
			}},
		},
		"leader-waits": {
			{"a proposal before the first entry is applied", "it proposes entry 4 in term 2; its first entry is 3, and it has applied 2", func(w *World, i *invariant) string {
				return begins(w, i, 2)
			}},
			{"one after it", "", func(w *World, i *invariant) string { return begins(w, i, 3) }},
			{"one before it, with the rule taken away", "", func(w *World, i *invariant) string {
				w.config.rules.NoNoopWait = true
				return begins(w, i, 2)
			}},
		},
		"reads-linearizable": {
			{"a read as of an entry before one that was told", "told of entry 4, and is answered as of entry 3", func(w *World, i *invariant) string {
				return shows(w, i, 4, 3, 9)
			}},
			{"a read from a table that is not so far", "as of entry 5, and the table has applied 4", func(w *World, i *invariant) string {
				return shows(w, i, 4, 5, 4)
			}},
			{"a read as of what was told", "", func(w *World, i *invariant) string { return shows(w, i, 4, 4, 4) }},
			{"one that is refused", "", func(w *World, i *invariant) string {
				return i.read(w, w.nodes[0], &openRead{floor: 4}, &fsm.Reply{Status: fsm.Unknown})
			}},
		},
		"gate-holds": {
			{"a Grant that fails", `grant 0 door", is rejected: token 1 holds the key`, func(w *World, i *invariant) string {
				return i.firstApply(w, w.nodes[0], granted(1, 1)) + i.firstApply(w, w.nodes[0], rejected(2, 1))
			}},
			{"one that fails when there is no gate", "", func(w *World, i *invariant) string {
				w.config.rules.NoGate = true
				return i.firstApply(w, w.nodes[0], rejected(2, 1))
			}},
			{"one behind a Release that was closed, and that key granted", "", func(w *World, i *invariant) string {
				closed := released(2, fsm.Release, 1)
				closed.Result = fsm.Result{}
				return i.firstApply(w, w.nodes[0], granted(1, 1)) + i.firstApply(w, w.nodes[0], closed) +
					i.firstApply(w, w.nodes[0], rejected(3, 1))
			}},
			{"one that fails later on", "is rejected: token 2 holds the key", func(w *World, i *invariant) string {
				closed := released(2, fsm.Release, 1)
				closed.Result = fsm.Result{Kind: fsm.SessionUnknown}
				return i.firstApply(w, w.nodes[0], closed) + i.firstApply(w, w.nodes[0], granted(3, 2)) +
					i.firstApply(w, w.nodes[0], rejected(4, 2))
			}},
		},
		"one-expire": {
			{"a second Expire of a term", "it proposes at 7, for token 1, what it has proposed at 5", func(w *World, i *invariant) string {
				e := released(5, fsm.Expire, 1).Envelope
				return i.propose(w, w.nodes[0], lapsed(5, 1, e)) + i.propose(w, w.nodes[0], lapsed(7, 1, e))
			}},
			{"another term's, another tenure's, a clean-up", "", func(w *World, i *invariant) string {
				e := released(5, fsm.Expire, 1).Envelope
				later := lapsed(8, 1, e)
				later.Term = 2
				return i.propose(w, w.nodes[0], lapsed(5, 1, e)) + i.propose(w, w.nodes[0], lapsed(6, 2, e)) +
					i.propose(w, w.nodes[0], cleanup(7, released(7, fsm.Release, 1).Envelope)) + i.propose(w, w.nodes[1], later)
			}},
		},
		"ghost-cleaned": {
			{"a grant of which nobody hears", "entry 1 grants token 1, of which nobody is told and which is not given back", func(w *World, i *invariant) string {
				return grants(w, i, fsm.Output{Replies: []fsm.Reply{{Status: fsm.Unknown}}})
			}},
			{"the clean-up of another one", "of which nobody is told", func(w *World, i *invariant) string {
				other := *cleanup(2, released(2, fsm.Release, 9).Envelope)
				other.Meant = 9
				return grants(w, i, fsm.Output{Proposed: []fsm.Proposed{other}})
			}},
			{"one that is told", "", func(w *World, i *invariant) string {
				return grants(w, i, fsm.Output{Replies: []fsm.Reply{{Index: 1, Result: granted(1, 1).Result}}})
			}},
			{"one that is given back", "", func(w *World, i *invariant) string {
				return grants(w, i, fsm.Output{Proposed: []fsm.Proposed{*cleanup(2, released(2, fsm.Release, 1).Envelope)}})
			}},
			{"one from before this leader", "", func(w *World, i *invariant) string {
				w.nodes[0].status = raft.Status{Role: raft.Leader, Term: 2}
				return i.took(w, w.nodes[0], &fsm.Output{Applied: []fsm.Applied{*granted(1, 1)}})
			}},
		},
		"expire-earned": {
			{"an Extend that it has not applied", "it expires token 2 behind the Extend in entry 3, which it has not applied", func(w *World, i *invariant) string {
				return extends(t, i, "0.0 \"A\" extend 2 9000 door")
			}},
			{"an Extend of another tenure, and of another key", "", func(w *World, i *invariant) string {
				return extends(t, i, "0.0 \"A\" extend 1 9000 door", "0.0 \"A\" extend 2 9000 gate")
			}},
			{"a tenure that it has not applied", "it expires token 2, whose Grant it has not applied", func(w *World, i *invariant) string {
				return i.propose(w, w.nodes[0], lapsed(1, 2, released(1, fsm.Expire, 2).Envelope))
			}},
			{"a lease that its clock has not seen out", "it expires token 2 after 999.999ms of a lease of 1000ms", func(w *World, i *invariant) string {
				w.nodes[0].tenures = map[string]tenureSeen{"door": {token: 2, local: 500_000, lease: 1_000_000}}
				w.now = 1_499_999
				return i.propose(w, w.nodes[0], lapsed(1, 2, released(1, fsm.Expire, 2).Envelope))
			}},
			{"a lease that it has seen out", "", func(w *World, i *invariant) string {
				w.nodes[0].tenures = map[string]tenureSeen{"door": {token: 2, local: 500_000, lease: 1_000_000}}
				w.now = 1_500_000
				return i.propose(w, w.nodes[0], lapsed(1, 2, released(1, fsm.Expire, 2).Envelope))
			}},
		},
		stormName: {
			{"a storm", "it has taken 20001 inputs since 3000ms", func(w *World, i *invariant) string {
				w.now = 3*trace.Second + 7
				return inputs(w, i, stormy+1)
			}},
			{"as many in two seconds", "", func(w *World, i *invariant) string {
				w.now = 3*trace.Second - 1
				problem := inputs(w, i, stormy)
				w.now++
				return problem + inputs(w, i, stormy)
			}},
		},
	}
}

func inputs(w *World, i *invariant, n int) (problem string) {
	for range n {
		problem += i.step(w, w.nodes[0])
	}
	return problem
}

// hears lets the leader S1 of a world in which entry 2 is everywhere look at an answer of S2.
func hears(w *World, i *invariant) string {
	return i.received(w, w.nodes[0], &raft.Message{From: 2, To: 1, Term: 1, Body: raft.AppendEntriesReply{}})
}

// shows tells an invariant that a read is answered as of an entry, by a table that has applied some.
func shows(w *World, i *invariant, floor, as, applied raft.Index) string {
	w.nodes[0].status.LastApplied = applied
	return i.read(w, w.nodes[0], &openRead{floor: floor}, &fsm.Reply{Status: fsm.Answered, Index: as})
}

// settled is a world in which S1 leads term 1 and its two entries are on all disks.
func settled(t *testing.T) *World {
	return played(t, `
		config election=1s
		timeout S1
		until leader S1
		propose S1 a
		run 500ms
		expect S2 durable.log=1,1`)
}

// fresh is a world whose servers run and have done nothing.
func fresh(t *testing.T) *World {
	t.Helper()
	w := newWorld(1, defaultConfig(), []Actor{"A"})
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestEveryInvariantCanFailAndIsSilentWhenItHolds(t *testing.T) {
	shown := showings(t)
	for _, i := range invariants() {
		fails, holds := false, false
		for _, s := range shown[i.name] {
			w := fresh(t)
			if i.name == "match-sound" || i.name == "commit-agreement" {
				w = settled(t) // they look into a core
			}
			if i.name == "commit-agreement" {
				w.ledger = ledger{}
			}
			again := invariants()
			of := slices.IndexFunc(again, func(o invariant) bool { return o.name == i.name })
			got := s.shown(w, &again[of])
			if s.says == "" && got != "" || !strings.Contains(got, s.says) {
				t.Errorf("%s, shown %s, said %q, want %q", i.name, s.what, got, s.says)
			}
			fails, holds = fails || s.says != "", holds || s.says == ""
		}
		if elsewhere := i.name == wellFormed || i.name == readable || i.name == coreState ||
			strings.HasPrefix(i.name, "progress-"); !elsewhere && !(fails && holds) {
			t.Errorf("%s is not shown both what is wrong and what is right", i.name)
		}
		if i.sentence == "" {
			t.Errorf("%s has no sentence", i.name)
		}
		delete(shown, i.name)
	}
	for name := range shown {
		t.Errorf("there is no invariant %s", name)
	}
}

// The world must not only ask the invariants but also heed them.
func TestAViolationIsRecordedOnceAndEndsTheRunUnlessItIsTolerated(t *testing.T) {
	w := fresh(t)
	for range 2 {
		w.checks.send(w, w.nodes[0], &raft.Message{From: 1, To: 2, Term: 9, Body: raft.RequestVote{}})
	}
	if len(w.broken) != 1 || w.broken[0].Invariant != "persist-before-send" || w.broken[0].Node != "S1" || !w.halted {
		t.Errorf("halted: %v, broken: %v", w.halted, w.broken)
	}
	if w.next(1 << 62) {
		t.Error("the run goes on")
	}
	w = fresh(t)
	w.tolerate = map[string]bool{"*": true}
	w.checks.send(w, w.nodes[0], &raft.Message{From: 1, To: 2, Term: 9, Body: raft.RequestVote{}})
	if len(w.broken) != 1 || w.halted {
		t.Errorf("halted: %v, broken: %v", w.halted, w.broken)
	}
}

func checkBroken(t *testing.T, w *World, invariant string) {
	t.Helper()
	if len(w.broken) == 0 || w.broken[0].Invariant != invariant {
		t.Errorf("broken: %v, want %s", w.broken, invariant)
	}
}

func TestAStormEndsARunWhateverIsTolerated(t *testing.T) {
	w := settled(t)
	w.tolerate = map[string]bool{"*": true}
	for range stormy {
		if err := w.do(Beat{Node: 1}); err != nil || w.halted {
			break
		}
	}
	checkBroken(t, w, stormName)
	if !w.halted || len(w.broken) != 1 {
		t.Errorf("halted: %v, broken: %v", w.halted, w.broken)
	}
}

func TestAMessageThatNoCorrectPeerSendsIsNoticed(t *testing.T) {
	w := settled(t)
	w.handOver(&flight{from: 0, to: 1, kind: messageAppend, raft: raft.Message{
		From: 1, To: 2, Term: 1, Body: raft.AppendEntries{PrevLogIndex: 2},
	}})
	checkBroken(t, w, wellFormed)
}

func TestACommittedCommandThatCannotBeReadStopsTheServerAndIsNoticed(t *testing.T) {
	w := settled(t)
	if _, _, err := w.nodes[0].replica.Core().Propose([]byte("gibberish")); err != nil {
		t.Fatal(err)
	}
	w.step(w.nodes[0], nil)
	w.advance(w.now + trace.Second)
	checkBroken(t, w, readable)
}

func TestACoreThatForgetsIsNoticedWhenLookedAtDeeply(t *testing.T) {
	w := settled(t)
	n := w.nodes[1]
	core := n.replica.Core().Clone()
	if err := core.Receive(raft.Message{From: 1, To: 2, Term: 2, Body: raft.AppendEntries{}}); err != nil {
		t.Fatal(err)
	}
	n.shadow = core // as if it had been in term 2 before
	w.checkDeep(n)
	checkBroken(t, w, coreState)
}

func TestAnEntryBeyondTheLogsEndIsNoticed(t *testing.T) {
	w := settled(t)
	out := fsm.Output{Write: raft.Write{Entries: []raft.Entry{{Index: 4, Term: 1}}}}
	w.observeAppend(w.nodes[1], &w.nodes[1].status, &out)
	checkBroken(t, w, logMatching)
}

// Half an hour of everything: all invariants are asked, and none has anything to say.
func TestInALongRunAllInvariantsAreAskedAndHold(t *testing.T) {
	t.Parallel()
	clients := []Actor{"A", "B", "C", "D"}
	w := newWorld(1, defaultConfig(), clients)
	for i := range w.links {
		for j := range w.links[i] {
			w.links[i][j].lossPPM, w.links[i][j].duplicatePPM = 2000, 2000
		}
	}
	for _, n := range w.nodes {
		n.disk.syncMin, n.disk.syncMax = 10*trace.Millisecond, 40*trace.Millisecond
	}
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	do := func(c Command) {
		t.Helper()
		if err := w.do(c); err != nil || w.halted {
			t.Fatal(err, w.broken)
		}
	}
	victim := raft.ServerID(1)
	for i := range 18_000 {
		w.advance(trace.Time(i) * 100 * trace.Millisecond)
		client, key := clients[i%4], []string{"door", "gate"}[i/2%2]
		if i/4%2 == 0 {
			do(Acquire{Client: client, Key: key, Lease: 500 * time.Millisecond})
		} else {
			do(ReleaseLock{Client: client, Key: key})
		}
		w.advance(w.now + 30*trace.Millisecond) // in the middle of that
		switch i % 100 {
		case 40, 70:
			victim = raft.ServerID(i/100%3) + 1
			if l := w.leader(); l != nil && i%200 < 100 {
				victim = l.id
			}
			if i%100 == 40 {
				do(Crash{Node: NodeActor(victim), How: []string{"", "torn"}[i/200%2]})
			} else {
				do(Isolate{Node: victim})
			}
		case 45:
			do(Restart{Node: NodeActor(victim)})
		case 80:
			do(Heal{})
		}
	}
	for _, name := range []string{"leaders", "grant.granted", "release.released", "expire.existed", "truncations", "torn"} {
		c, _ := counterNamed(name)
		if n := w.counters[c]; n < 10 {
			t.Errorf("%s: %d", name, n)
		}
	}
}
