package fsm_test

import (
	"fmt"

	"ticketing/fsm"
	"ticketing/raft"
)

// A lock is granted, released and granted again. The Expire that was on its way for the first
// tenure comes late, and does not touch the second.
func Example() {
	var table fsm.Table
	for i, command := range []fsm.Command{
		{Kind: fsm.Grant, Key: "door", LeaseMS: 10_000},
		{Kind: fsm.Release, Key: "door"},
		{Kind: fsm.Grant, Key: "door", LeaseMS: 10_000},
		{Kind: fsm.Expire, Key: "door", Token: 1},
	} {
		entry := fsm.Envelope{Command: command}
		fmt.Printf("%d  %s  ->  %s\n", i+1, entry, table.Apply(raft.Index(i)+1, entry))
	}
	holder, _ := table.Holder("door")
	fmt.Println("the door is held with token", holder.Token)

	// Output:
	// 1  - grant 10000 door  ->  Granted{1}
	// 2  - release 0 door  ->  Released
	// 3  - grant 10000 door  ->  Granted{2}
	// 4  - expire 1 door  ->  Expired{false}
	// the door is held with token 2
}
