// Package faults has tests and nothing else: real servers, as processes, on a machine that fails
// them. Processes are killed and stand still, disks are full, fail, lie and lose power, and
// networks are cut, lossy and down. Then the tests look at what clients were told, at what is in
// the logs, and at whether the servers agree.
//
// What needs rights that a process does not have by itself (mounting, network namespaces) runs in
// namespaces of its own, which vanish with it, however it ends: nothing is left on the machine, and
// no packet leaves it. Where the machine does not permit that, the test is skipped and says what is
// missing: root, unshare, strace, nft, ip, ss, mkfs.ext4.
//
//	go test ./cmd/internal/faults
//	TICKETING_LONG=1 go test -timeout 30m ./cmd/internal/faults
//
// The second form does the same for longer. With TICKETING_HISTORY=DIR each test leaves what its
// clients saw in that directory, for cmd/linearize to judge.
//
// The simulator does all of this faster, with clocks that are wrong, and repeats it exactly. What
// it cannot find is that a system call does not do what its simulation does.
package faults
