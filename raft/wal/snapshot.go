package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"ticketing/raft"
)

// A snapshot file is a header and blocks. The package comment has a picture of it. Each block has a
// checksum of its own, over its place as well: a reader can say where the file is damaged, and a
// block of another snapshot does not fit.
const (
	snapshotMagic   = "raftsnp"
	snapshotVersion = 1

	snapshotHeaderSize = 64
	ownSize            = 40 // of the part of the header that a file's name and owner determine
	blockSize          = 1 << 20
	sumSize            = 4

	// syncEvery bounds what waits for the disk at once: the log's own fsync may have to wait for it.
	syncEvery = 8

	// maxSnapshot bounds what Open reads at once.
	maxSnapshot = maxRecord
)

// A position is the last entry that a snapshot includes.
type position struct {
	index raft.Index
	term  raft.Term
}

func positionOf(s *raft.Snapshot) position {
	return position{s.LastIncludedIndex, s.LastIncludedTerm}
}

const (
	snapshotSuffix = ".snapshot"
	partSuffix     = ".part" // behind the name of one that is being written
)

func snapshotName(p position) string {
	return fmt.Sprintf("%020d-%020d%s", p.index, p.term, snapshotSuffix)
}

// snapshotPosition reports whether a file has the name of a snapshot, or of one being written.
func snapshotPosition(name string) (p position, ok bool) {
	whole := strings.TrimSuffix(name, partSuffix)
	_, err := fmt.Sscanf(whole, "%d-%d"+snapshotSuffix, &p.index, &p.term)
	return p, err == nil && snapshotName(p) == whole
}

// kept is which snapshots are on the disk as a whole. Save and SaveSnapshot share it, and nothing
// else that changes.
type kept struct {
	mu   sync.Mutex
	list []position
}

func (k *kept) add(p position) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, p)
}

func (k *kept) has(p position) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(k.list, p)
}

// older takes out those that one makes superfluous, and returns them. One with a greater index has
// been saved in the meantime and waits for its marker.
func (k *kept) older(than position) (older []position) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = slices.DeleteFunc(k.list, func(p position) bool {
		if p.index > than.index || p == than {
			return false
		}
		older = append(older, p)
		return true
	})
	return older
}

// SaveSnapshot makes a snapshot durable in a file of its own. When it has returned nil, the
// snapshot may be in a write; until that write is saved, the log is what it was, and a crash drops
// the snapshot. It may be called while another goroutine is in Save: they touch different files,
// and Save waits no longer than it takes the disk to write 8 MiB more.
//
// An error leaves the log as it was. The caller may go on without this snapshot, or stop.
func (l *Log) SaveSnapshot(s *raft.Snapshot) error {
	p := positionOf(s)
	if p.index == 0 || p.term == 0 {
		panic(fmt.Sprintf("wal: a snapshot up to entry %d of term %d", p.index, p.term))
	}
	if l.kept.has(p) {
		return nil // what a machine is after an entry does not change
	}
	if err := l.writeSnapshot(s); err != nil {
		return fmt.Errorf("wal: saving the snapshot up to entry %d: %w", p.index, advised(err))
	}
	l.kept.add(p)
	return nil
}

// writeSnapshot writes a file under another name, so that one with the right name is whole.
func (l *Log) writeSnapshot(s *raft.Snapshot) error {
	name := snapshotName(positionOf(s))
	if size := membersSize(s.Members) + int64(len(s.Data)); size > maxSnapshot {
		return fmt.Errorf("it has %d bytes, the most is %d", size, maxSnapshot)
	}
	part := name + partSuffix
	f, err := l.dir.Open(part, true)
	if err != nil {
		return err
	}
	err = writeBlocks(f, l.options, s)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = l.dir.Rename(part, name)
	}
	if err != nil {
		_ = l.dir.Remove(part) // else the next Open does it
		return fmt.Errorf("writing %s: %w", part, err)
	}
	if err := l.dir.Sync(); err != nil {
		return fmt.Errorf("syncing the directory: %w", err)
	}
	return nil
}

// writeBlocks writes all that a snapshot file has and waits for the disk.
func writeBlocks(f file, o Options, s *raft.Snapshot) error {
	header := appendSnapshotHeader(nil, o, s)
	if _, err := f.WriteAt(header, 0); err != nil {
		return err
	}
	members := appendMembers(nil, s.Members)
	rest := io.MultiReader(bytes.NewReader(members), bytes.NewReader(s.Data))
	size, at := min(blockSize, len(members)+len(s.Data)), int64(len(header))
	buf := make([]byte, size, size+sumSize)
	for i := uint64(0); ; i++ {
		n, err := io.ReadFull(rest, buf)
		if err == io.EOF {
			return f.Sync()
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		block := binary.LittleEndian.AppendUint32(buf[:n], blockSum(positionOf(s), i, buf[:n]))
		if _, err := f.WriteAt(block, at); err != nil {
			return err
		}
		at += int64(len(block))
		if i%syncEvery == syncEvery-1 {
			if err := f.Sync(); err != nil {
				return err
			}
		}
	}
}

func appendSnapshotHeader(buf []byte, o Options, s *raft.Snapshot) []byte {
	start := len(buf)
	buf = appendOwn(buf, o, positionOf(s))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(membersSize(s.Members)))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(s.Data)))
	return binary.LittleEndian.AppendUint64(buf, uint64(checksum(buf[start:])))
}

// appendOwn appends the part of the header that is known before the file is read.
func appendOwn(buf []byte, o Options, p position) []byte {
	buf = append(append(buf, snapshotMagic...), snapshotVersion)
	for _, n := range []uint64{o.Cluster, uint64(o.Server), uint64(p.index), uint64(p.term)} {
		buf = binary.LittleEndian.AppendUint64(buf, n)
	}
	return buf
}

func blockSum(p position, number uint64, block []byte) uint32 {
	place := binary.LittleEndian.AppendUint64(make([]byte, 0, 24), uint64(p.index))
	place = binary.LittleEndian.AppendUint64(place, uint64(p.term))
	return checksum(binary.LittleEndian.AppendUint64(place, number), block)
}
