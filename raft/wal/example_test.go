package wal_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"ticketing/raft"
	"ticketing/raft/wal"
)

// A server starts, saves what its core hands out, loses power while it saves once more, and starts
// again.
func Example() {
	parent, err := os.MkdirTemp("", "wal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "server 1")
	options := wal.Options{Cluster: 7, Server: 1}

	l, durable, err := wal.Open(dir, options)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("at first:", len(durable.Entries), "entries in term", durable.Term)
	err = l.Save(raft.Write{
		Seq:       1, // as core.Take numbers them
		HardState: raft.HardState{Term: 1, VotedFor: 1},
		Entries: []raft.Entry{
			{Index: 1, Term: 1},
			{Index: 2, Term: 1, Command: []byte("grant the lock")},
		},
	})
	if err != nil {
		log.Fatal(err) // the log has stopped, and so must the server
	}
	// Now core.Saved(1).
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}

	segment := filepath.Join(dir, "00000000000000000001.wal")
	f, err := os.OpenFile(segment, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(f, "the beginning of a record")
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}

	l, durable, err = wal.Open(dir, options)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	fmt.Printf("then: entry %d is %q\n", durable.Entries[1].Index, durable.Entries[1].Command)
	r := l.Recovered()
	fmt.Printf("dropped: %d bytes at offset %d, %s\n", r.Bytes, r.Offset, r.Reason)
	if err := wal.Dump(dir, os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// at first: 0 entries in term 0
	// then: entry 2 is "grant the lock"
	// dropped: 25 bytes at offset 200, there is no record
	// FILE      OFFSET     SYNCED  CRC  KIND         INDEX    TERM  TEXT
	// 1              0             ok   header                      00000000000000000001.wal, 200 bytes, version 1, cluster 7, server 1
	// 1             48          0  ok   state                    1  vote 1
	// 1             48          0  ok   entry            1       1  ""
	// 1             48          0  ok   entry            2       1  grant the lock
	// 1            144        144  ok   mark                     1  vote 1
	// Open would return 2 entries, term 1, vote 1.
}
