package sim

import "ticketing/raft"

// This file gives the states of the search their fingerprints.

func (l *scope) appendState(b []byte) []byte {
	return append(b, byte(l.acquires), byte(l.extends), byte(l.lapses), byte(l.duplicates),
		byte(l.disconnects), byte(l.elections))
}

// appendWide appends all that decides what the servers and the network will do.
func (s *locks) appendWide(b []byte) []byte {
	for i := range s.nodes {
		if s.own&(1<<i) != 0 {
			s.prints[i] = digest(s.nodes[i].AppendState(make([]byte, 0, 1024)))
		}
		b = raft.AppendNumber(b, s.prints[i])
		for j := range s.network[i] {
			b = append(b, byte(len(s.network[i][j])))
			for _, m := range s.network[i][j] {
				b = raft.AppendMessage(b, m)
			}
		}
	}
	return b
}

// appendNarrow appends what the short cuts leave to be looked at. That is the leader and what its
// log holds beyond the applied entries: S3 has those that are committed, gets the rest before it is
// asked for anything, and what it believes to be committed matters to nobody. As long as S2 may be
// elected, it is S2 as well, with what it must have got, and how the messages end that it may get.
func (s *locks) appendNarrow(b []byte, n int) []byte {
	leader := s.status(n)
	b = s.nodes[n].AppendService(append(b, byte(n)))
	from := leader.LastApplied
	if n == 0 && s.left.elections > 0 {
		from = s.status(second).LastApplied
		b = s.nodes[second].AppendService(append(b, byte(leader.LastApplied-from)))
		for _, m := range s.network[0][second] {
			a := m.Body.(raft.AppendEntries)
			b = append(b, byte(a.PrevLogIndex-from)+byte(len(a.Entries)), byte(a.LeaderCommit-from))
		}
	}
	b = append(b, byte(leader.LastIndex-from))
	for i := from + 1; i <= leader.LastIndex; i++ {
		e := s.nodes[n].Core().Entries(i, i)[0]
		b = append(append(append(b, byte(e.Term)), e.Command...), 0xff)
	}
	return b
}

// digest is a hash of 64 bits, eight bytes at a time, each scrambled.
func digest(b []byte) uint64 {
	h := uint64(len(b)) * 0x9e3779b97f4a7c15
	for len(b) >= 8 {
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		h = scramble(h ^ w)
		b = b[8:]
	}
	for _, x := range b {
		h = scramble(h ^ uint64(x))
	}
	return h
}
