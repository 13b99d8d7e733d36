// Package wal is the durable log of a real server: the one package below raft that does IO.
//
// # What is promised
//
// When [Log.Save] has returned nil, the write is on the disk and every later [Open] returns it. A
// write is there as a whole or not at all: term, vote and entries are one record with one checksum.
// Writes survive in order, so what Open returns is the state after some number of them, and after
// at least all that Save has answered.
//
// When [Log.SaveSnapshot] has returned nil, the snapshot is on the disk. It counts when a write
// that names it is saved: from then on the log begins behind it, and what it stands for is removed.
// A crash at any moment leaves the old snapshot with the log behind it, or the new one with the log
// behind that. The log keeps one snapshot, the entries behind it, and those that share a segment
// with its last entry.
//
// What Open has returned once it never takes back, though the process that wrote it may have died
// before it heard from the disk.
//
// A record that a power failure cut is dropped at the next Open, and [Log.Recovered] says from
// where and how much. Damage to anything that was known to be synced is not dropped: Open refuses
// with a [DamageError] that names the file and the offset, and changes nothing. A server that
// forgets what it has promised can vote twice; it is better that it stays down.
//
// Nothing that this package did not write is changed or removed, and every refusal names the path
// and says what to do: about another server's directory, another version, a file of something else,
// a directory that cannot be written.
//
// # What the caller owes
//
//   - One goroutine at a time for Save, and one for SaveSnapshot, which may be another and work at
//     the same time; so a large snapshot does not keep the log waiting. Close when both have
//     returned. Writes in the order of their sequence numbers, which begin at 1
//     after every Open as they do after every raft.New.
//   - An error of Save is final, and so is the log's end: every later Save returns it. The caller
//     stops its server, as raft's contract says. That goes for a full disk too, though there may be
//     room again a moment later: what has reached the disk of the write that failed is unknown.
//   - An error of SaveSnapshot is not: there is no such snapshot, and the log is what it was.
//   - The directory is the log's. A lock keeps a second process out; a stamp in every file keeps
//     out a server to which it does not belong. Nobody deletes files in it.
//
// # What the disk owes
//
// Until fsync returns, nothing is certain about what was written: each sector of 512 bytes may be
// the old one, the new one or, where the file grew, zeros; they reach the disk in any order; the
// file's length is anything between. The same holds for names in a directory until the directory is
// fsynced. Once fsync returns, all of it survives a power failure.
//
// A sector is written whole or not at all, and writing one does not harm another. Devices that lie
// about fsync exist; nothing here helps against them.
//
// When fsync fails, the kernel may forget that the pages were never written: a second fsync can
// succeed and mean nothing, and a read shows bytes that are in memory alone. That is why no failed
// fsync is tried again, and why Open writes the last record it finds once more before it syncs. A
// directory cannot be written once more; Open takes its word when a later fsync of it succeeds.
//
// # How it works
//
// The log is a row of files, segments, numbered from 1. Each begins with a header; records follow
// until the segment has reached [Options.SegmentSize], and then the next begins. Nothing is ever
// changed in place: an entry at or below the last index replaces that one and all after it, which
// Open sees when it plays the records back in order.
//
// Each record tells the offset in its segment up to which everything was known to be synced when it
// was written. As Save waits for the disk, that is where the record itself begins; in the first
// record of a segment, which is written together with the header, it is 0. So any record that can
// be read vouches for all that is before it, and a later segment vouches for the whole of the
// earlier ones. When Open meets a record whose checksum is wrong, it looks behind it. If some
// record there vouches for the damaged place, then that was synced, and it is lost: Open refuses.
// If none does, the place is the tail of the last write before a crash, which nobody was told
// about: it is cut off.
//
// One case is left, the last record, for which nothing behind it can vouch. Open and [Log.Close]
// therefore add a record that repeats the term and the vote and changes nothing: a mark. What stays
// without a voucher is the last write before a crash, between the crash and the next Open; if the
// disk rots exactly there, it cannot be told from a write that was cut.
//
// # Snapshots
//
// A snapshot is a file of its own. It is written under another name, in pieces with an fsync after
// every 8 MiB, so that the log's own fsync never waits for the whole of it; then it is renamed, and
// the directory synced. A file with a snapshot's name is whole.
//
// A write with a snapshot is a record of another kind, a marker, and always the first of a new
// segment. The rule is raft's: if the snapshot's last entry stands in the log at that point, the
// entries behind it stay, and otherwise all go. The entries that stay are not written again. The
// segments in which they stand are kept, from the one that holds the snapshot's last entry on, and
// the marker has its number. To copy the entries behind the marker would need less room for a
// while, but a large write in the log's way, and every entry in memory. This way a marker is 80
// bytes, and it is right at every crash for one reason: nothing is removed before the marker is
// durable, and once it is, all that it does not need is ignored, whether it is still there or not.
//
// So Open looks for the last segment that begins with a marker, plays the row from the segment that
// the marker needs, and refuses if one of the row is missing. Markers in between are not played:
// what they dropped is in segments that are gone. If the last marker was synced and cannot be read
// any more, Open goes back to one before, or to segment 1, and finds a file missing, or the damaged
// place vouched for; it refuses either way, unless all is still there and nothing vouches for the
// marker: then that was the last write before a crash.
//
// Open removes what a crash has kept from being removed: segments before the row, snapshots that
// the marker does not name, those that were not whole. Before it does, it looks into each: it must
// begin as this server's would, or be what a crash leaves of that. If not, Open refuses.
//
// # The format
//
// A segment is a header and records; all numbers are little-endian, all checksums CRC32C.
//
//	segment  | header, 48 | record | record | record …
//
//	header   0         7   8         16        24        32         40         48
//	         | raftwal | 1 | cluster | server  | number  | previous | checksum |
//
//	record   0        8        12     16            20            24
//	         | synced | length | kind | sum of body | sum of head | body, of that length …
//
//	body     0      8      16      24      32
//	         | term | vote | first | count | entry | entry | … | zeros up to a multiple of 8
//
//	entry    0      8        12
//	         | term | length | command … | members, if the highest bit of length is set
//
//	members  0       4
//	         | count | member | member | …
//
//	member   0    8       9        13
//	         | id | voter | length | address …
//
//	marker   0       8      16      24
//	         | index | term | begin | body, as above
//
// In the header, 1 is the version of the format, number counts the segments from 1, and previous is
// the size of the segment before, 0 in the first. In a record, synced is the offset known to be
// synced. The sum of the head is over the segment's number, the record's offset and the 20 bytes
// before it. In a body, first is the index of the first entry and 0 if there is none.
//
// Kind 0 is a write none of whose entries has members, and kind 2 one with such an entry. Kind 1 is
// a marker: index and term are the snapshot's, and begin is the number of the first segment that is
// still needed; the entries behind it may have members. Logs that were written before there were
// kinds 1 and 2 are read as ever, and a log that has neither can be read by the programs of that
// time. They refuse any other, with the file and the offset: a kind that a program does not know
// makes Open refuse. What must not happen, that an older program skips a marker or cuts it off,
// does not.
//
// A snapshot file has the index and the term of the last entry in its name, and .part behind that
// while it is being written.
//
//	file     0        64
//	         | header | block | block | …
//
//	header   0         7   8         16       24      32     40        48     56
//	         | raftsnp | 1 | cluster | server | index | term | members | data | checksum |
//
//	block    | 1 MiB, the last one less | checksum, 4 |
//
// In the header, members and data are lengths. The blocks hold the members, as in an entry, and
// then the data. The sum of a block is over the index, the term, the block's number from 0, and its
// bytes.
//
// Reading order: format.go and body.go (the bytes), wal.go (Open, Save, Close), outline.go (what is
// known of the entries), row.go (which files count), load.go (what survived), snapshot.go and
// snapshot_load.go, dir.go (the operations that a disk needs), dump.go. Package storetest states
// what any store owes, as a suite of cases.
package wal
