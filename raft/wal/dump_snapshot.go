package wal

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// snapshots prints a line for each snapshot's file.
func (p *printer) snapshots(dir directory) error {
	names, err := dir.Names()
	if err != nil {
		return err
	}
	slices.Sort(names)
	o := Options{Cluster: p.owner.cluster, Server: p.owner.server}
	for _, name := range names {
		at, ok := snapshotPosition(name)
		if !ok {
			continue
		}
		row := func(offset int64, crc, kind, text string) {
			p.rowOf("snap", offset, "", crc, kind, strconv.FormatUint(uint64(at.index), 10),
				strconv.FormatUint(uint64(at.term), 10), text)
		}
		data, err := dir.Read(name)
		if err != nil {
			row(0, "", "unread", err.Error())
			continue
		}
		size := len(data)
		s, err := readSnapshot(name, data, o, at)
		damage := (*DamageError)(nil)
		switch {
		case strings.HasSuffix(name, partSuffix):
			row(0, "", "part", fmt.Sprintf("%s, %d bytes, being written or left by a crash", name, size))
		case errors.As(err, &damage):
			row(damage.Offset, "BAD", "damaged", name+": "+damage.Reason)
		case err != nil:
			row(0, "", "foreign", err.Error())
		default:
			row(0, "ok", "file", fmt.Sprintf("%s, %d bytes, %d members, %d bytes of data",
				name, size, len(s.Members), len(s.Data)))
		}
	}
	return nil
}
