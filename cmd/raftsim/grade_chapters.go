package main

// chapter is one part of Raft, and the scenarios of the library that are about it.
type chapter struct {
	name      string
	about     string // what to write, and where ours is
	scenarios []string
}

// chapters are in the order in which somebody writes a Raft: each needs those before.
func chapters() []chapter {
	return []chapter{
		{"elections", "terms, votes and timers; ours: raft/election.go", []string{
			"single-node", "election", "split-vote", "slow-votes", "delayed-vote-requests", "dueling-candidates"}},
		{"log replication", "AppendEntries and its answers; ours: raft/replication.go, raft/log.go", []string{
			"lagging-commit", "log-repair", "rejoin", "window", "old-messages"}},
		{"safety", "what is committed, and who may lead; ours: raft/replication.go, raft/election.go", []string{
			"figure-8", "old-entries-commit", "overwrite-newer-log", "minority-partition", "deposed-proposals", "paused-leader"}},
		{"persistence", "what waits for the disk; ours: raft/durability.go", []string{
			"slow-disk", "restart-follower", "pause-restart", "crash-torn", "power-loss"}},
		{"disturbances", "PreVote and CheckQuorum; ours: raft/prevote.go, raft/checkquorum.go", []string{
			"dueling-pre-candidates", "flapping-link", "term-inflation", "asymmetric-cut", "bridge", "stalled-leader"}},
		{"snapshots", "a log that begins later; ours: raft/snapshot.go", []string{
			"snapshot-catch-up", "snapshot-suffix", "snapshot-conflict", "snapshot-lost-chunk", "snapshot-crash",
			"snapshot-power-loss", "snapshot-twice", "snapshot-idle"}},
		{"reads", "answers that are not old; ours: raft/readindex.go", []string{
			"read-index", "read-new-leader", "read-deposed", "stale-lease-read"}},
		{"transfer", "a leader hands over; ours: raft/transfer.go", []string{
			"transfer", "transfer-dead", "transfer-slow", "transfer-stale", "transfer-outrun"}},
		{"members", "servers come and go; ours: raft/membership.go", []string{
			"member-add", "member-learner", "member-too-early", "member-own-term", "member-higher-term", "member-fallback",
			"member-remove", "member-remove-leader", "member-removed-server", "member-read", "member-rolling"}},
	}
}
