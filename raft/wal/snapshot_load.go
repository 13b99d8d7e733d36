package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"ticketing/raft"
)

// loadSnapshots reads the snapshot with which the log begins, if it begins with one, and notes the
// other snapshots of this log: from before, and those that a crash kept from getting a marker.
func (s *survivors) loadSnapshots(dir directory) error {
	names, err := dir.Names()
	if err != nil {
		return err
	}
	slices.Sort(names)
	needed := ""
	if s.durable.Snapshot != nil {
		needed = snapshotName(positionOf(s.durable.Snapshot))
	}
	for _, name := range names {
		p, ok := snapshotPosition(name)
		if !ok || name == needed {
			continue
		}
		data, err := dir.Read(name)
		if err != nil {
			return err
		}
		if err := s.isOwn(name, p, data); err != nil {
			return err
		}
		s.unneeded = append(s.unneeded, name)
	}
	if needed == "" {
		return nil
	}
	data, err := dir.Read(needed)
	if errors.Is(err, fs.ErrNotExist) {
		return &DamageError{needed, 0,
			"the file is missing, and " + segmentName(s.marker) + " begins behind it"}
	}
	if err != nil {
		return err
	}
	s.durable.Snapshot, err = readSnapshot(needed, data, s.options, positionOf(s.durable.Snapshot))
	return err
}

// isOwn checks that an unneeded file is what this server has written, or what a crash has left of
// it: a part of the header that this server would have written, and then nothing or whatever. Only
// that may be removed.
func (s *survivors) isOwn(name string, p position, data []byte) error {
	want, got := appendOwn(nil, s.options, p), data[:min(ownSize, len(data))]
	n := 0
	for n < len(got) && got[n] == want[n] {
		n++
	}
	if len(bytes.Trim(got[n:], "\x00")) == 0 {
		return nil
	}
	if bytes.HasPrefix(got, []byte(snapshotMagic)) && len(got) == ownSize {
		return ownSnapshot(name, data, s.options, p)
	}
	return fmt.Errorf("%s, offset 0: this is no snapshot of this server, it begins with %q; "+
		"move it away", name, got[:min(16, len(got))])
}

// ownSnapshot checks whose a snapshot is, of which at least that part can be read.
func ownSnapshot(name string, data []byte, o Options, p position) error {
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }
	cluster, server := number(8), raft.ServerID(number(16))
	is := position{raft.Index(number(24)), raft.Term(number(32))}
	switch {
	case data[7] != snapshotVersion:
		return fmt.Errorf("%s has version %d of the format, this program knows version %d; "+
			"start the program that wrote it", name, data[7], snapshotVersion)
	case cluster != o.Cluster || server != o.Server:
		return fmt.Errorf("%s belongs to server %d of cluster %d, this is server %d of cluster %d; "+
			"put back this server's own", name, server, cluster, o.Server, o.Cluster)
	case is != p:
		return &DamageError{name, 0, fmt.Sprintf(
			"this is the snapshot up to entry %d of term %d under another name", is.index, is.term)}
	}
	return nil
}

// readSnapshot returns the snapshot that a file holds, which uses the file's bytes.
func readSnapshot(name string, data []byte, o Options, p position) (*raft.Snapshot, error) {
	damage := func(at int, format string, args ...any) error {
		return &DamageError{name, int64(at), fmt.Sprintf(format, args...)}
	}
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }
	if len(data) < snapshotHeaderSize {
		return nil, damage(len(data), "the file ends within its header")
	}
	if !bytes.HasPrefix(data, []byte(snapshotMagic)) ||
		number(56) != uint64(checksum(data[:snapshotHeaderSize-8])) {
		return nil, damage(0, "the header is damaged")
	}
	if err := ownSnapshot(name, data, o, p); err != nil {
		return nil, err
	}
	members, size := number(40), number(48)
	if members > maxSnapshot || size > maxSnapshot {
		return nil, damage(0, "the header tells of %d and %d bytes, the most is %d",
			members, size, maxSnapshot)
	}
	blocks := (members + size + blockSize - 1) / blockSize
	switch want := snapshotHeaderSize + int(members+size+blocks*sumSize); {
	case len(data) < want:
		return nil, damage(len(data), "the file ends here and should have %d bytes", want)
	case len(data) > want:
		return nil, damage(want, "the file should end here and has %d bytes", len(data))
	}
	content, at, ok := joined(data[snapshotHeaderSize:], p)
	if !ok {
		return nil, damage(snapshotHeaderSize+at, "the block's checksum is wrong")
	}
	snapshot, ok := decodeSnapshot(content, int(members), p)
	if !ok {
		return nil, damage(snapshotHeaderSize, "the members do not fill their %d bytes", members)
	}
	return snapshot, nil
}

// decodeSnapshot splits what the blocks hold. What is empty is nil.
func decodeSnapshot(content []byte, members int, p position) (*raft.Snapshot, bool) {
	s := &raft.Snapshot{LastIncludedIndex: p.index, LastIncludedTerm: p.term}
	configuration, rest, err := decodeMembers(content[:members])
	if len(configuration) > 0 {
		s.Members = configuration
	}
	if len(content) > members {
		s.Data = content[members:]
	}
	return s, err == nil && len(rest) == 0
}

// joined checks the blocks and moves them together over their checksums, so that a snapshot is not
// twice in memory. If a block is wrong, it returns the block's offset.
func joined(data []byte, p position) (content []byte, at int, ok bool) {
	content = data[:0]
	for i := uint64(0); at < len(data); i++ {
		end := min(at+blockSize+sumSize, len(data))
		block := data[at : end-sumSize]
		if binary.LittleEndian.Uint32(data[end-sumSize:end]) != blockSum(p, i, block) {
			return nil, at, false
		}
		content = append(content, block...)
		at = end
	}
	return slices.Clip(content), 0, true
}
