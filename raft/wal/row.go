package wal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// This file finds out which of the files in a directory are the log's and which of those count, and
// removes those that do not any more.

const suffix = ".wal"

// segmentName has as many digits as it takes for names to sort as numbers do.
func segmentName(number uint64) string { return fmt.Sprintf("%020d%s", number, suffix) }

func segmentNumber(name string) (number uint64, ok bool) {
	number, err := strconv.ParseUint(strings.TrimSuffix(name, suffix), 10, 64)
	return number, err == nil && number > 0 && segmentName(number) == name
}

// segmentNames returns the names that end as a segment's does, in order.
func segmentNames(dir directory) ([]string, error) {
	names, err := dir.Names()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, suffix) })
	slices.Sort(names)
	return names, nil
}

// segments returns the numbers of the segments that are there, rising.
func segments(dir directory) ([]uint64, error) {
	names, err := segmentNames(dir)
	if err != nil {
		return nil, err
	}
	numbers := make([]uint64, len(names))
	for i, name := range names {
		number, ok := segmentNumber(name)
		if !ok {
			return nil, fmt.Errorf("%s is not the name of a file of this log; move it away", name)
		}
		numbers[i] = number
	}
	return numbers, nil
}

// row returns the segments that are needed, which are numbered from s.begin without a gap.
//
// It reads them from the last one back, until one begins with a marker: that says where the row
// begins. A marker that cannot be read does not count, and the row begins where an earlier one
// says, or with segment 1. If the marker had been synced, that is found out when the row is played
// back, or when segments are missing that it has made superfluous.
func (s *survivors) row(dir directory) ([][]byte, error) {
	numbers, err := segments(dir)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	var row [][]byte
	s.begin = 1
	count, last := len(numbers), numbers[len(numbers)-1]
	for i := count - 1; i >= 0 && numbers[i] >= s.begin; i-- {
		number := numbers[i]
		if want := last - uint64(count-1-i); number != want {
			return nil, missing(want, number)
		}
		data, err := dir.Read(segmentName(number))
		if err != nil {
			return nil, err
		}
		row = append(row, data)
		if begin, ok := readMarker(number, data); ok && s.marker == 0 {
			s.marker, s.begin = number, begin
		}
	}
	if begin := last + 1 - uint64(len(row)); begin != s.begin {
		return nil, missing(s.begin, begin)
	}
	slices.Reverse(row)
	return row, s.leftovers(dir, numbers[:count-len(row)])
}

func missing(number, there uint64) error {
	return &DamageError{segmentName(number), 0,
		fmt.Sprintf("the file is missing, though %s is there, and no snapshot that can be found "+
			"stands for it", segmentName(there))}
}

// readMarker reports whether a segment begins with a marker, and the first segment that it needs.
func readMarker(number uint64, data []byte) (begin uint64, ok bool) {
	if _, ok := readHeader(data); !ok {
		return 0, false
	}
	r, problem := readRecord(number, data, headerSize)
	if problem != "" || r.kind != kindMarker {
		return 0, false
	}
	b, err := decode(r.kind, r.body)
	return b.begin, err == nil && b.begin <= number
}

// leftovers notes segments that a crash has kept from being removed. They were synced before a
// marker made them superfluous, so each has a header; a file without one is somebody else's.
func (s *survivors) leftovers(dir directory, numbers []uint64) error {
	for _, number := range numbers {
		name := segmentName(number)
		data, err := dir.Read(name)
		if err != nil {
			return err
		}
		h, ok := readHeader(data)
		if !ok {
			return fmt.Errorf("%s is not needed, and it is not known to be this log's, as it has no "+
				"header; move it away", name)
		}
		if err := s.belongs(h, number); err != nil {
			return err
		}
		s.unneeded = append(s.unneeded, name)
	}
	return nil
}

// forget removes what a marker has made superfluous: the segments before the one in which the
// snapshot's last entry stands, and older snapshots. The marker is durable by now. A crash may
// leave any of these files, and Open removes them then.
func (l *Log) forget(begin uint64, p position) error {
	var names []string
	for ; l.begin < begin; l.begin++ {
		names = append(names, segmentName(l.begin))
	}
	for _, older := range l.kept.older(p) {
		names = append(names, snapshotName(older))
	}
	return l.remove(names...)
}

func (l *Log) remove(names ...string) error {
	for _, name := range names {
		if err := l.dir.Remove(name); err != nil {
			return fmt.Errorf("removing %s, which is not needed: %w", name, err)
		}
	}
	return nil
}
