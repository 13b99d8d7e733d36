package sim

import (
	"time"

	"ticketing/raft"
)

// This file draws the constants of a swarm run: of the protocol and of the network.

// config draws the constants of the protocol. Rules go where nothing depends on them: without the gate
// the table's checks are enough, and so they are if a leader also does not wait for its first entry. To
// take the wait away alone is a mistake, since the gate rests on it; and a term always begins with an
// entry of its leader, or what was appended before is not known to be committed.
func (s *swarm) config() {
	s.add(SetNodes{N: s.nodes})
	s.add(SetSeed{Seed: s.seed})
	pick := func(i int, n int64) int64 { return s.pick(topicConfig, i, 0, n) }
	election := s.logarithmic(topicConfig, 1, 0, 150, 400)
	ratio := s.logarithmic(topicConfig, 2, 0, 3, 12)
	c := SetConfig{
		Election:  time.Duration(election) * time.Millisecond,
		Heartbeat: time.Duration(election/ratio) * time.Millisecond,
		Batch:     int(s.logarithmic(topicConfig, 3, 0, 1, 64)),
		Window:    int(s.logarithmic(topicConfig, 4, 0, 1, 16)),
	}
	off := func(i int, n int64) *bool {
		if pick(i, n) != 0 {
			return nil
		}
		return new(bool)
	}
	c.PreVote, c.CheckQuorum, c.Pipeline = off(5, 4), off(6, 4), off(7, 4)
	if pick(8, 2) == 0 {
		every := raft.Index(s.logarithmic(topicConfig, 9, 0, 1, 1000))
		c.SnapshotEvery = &every
		c.Keep = raft.Index(s.logarithmic(topicConfig, 10, 0, 1, 64) - 1)
		c.Chunk = choose(pick(11, 3), 0, 64, 512)
	}
	if s.in[classCrowd] { // or they would not all have come when the run ends
		c.Batch, c.Chunk = 64, 0
	}
	switch pick(12, 6) {
	case 0:
		s.rules = []string{"gate"}
	case 1:
		s.rules = []string{"gate", "noop-wait"}
	}
	said := []string{c.String() + ";"}
	s.add(c)
	if s.rules != nil {
		s.add(SetWithout{Rules: s.rules})
		said = append(said, SetWithout{Rules: s.rules}.String()+";")
	}
	s.drew = append(said, s.drew...)
}

// network draws what all links are like.
func (s *swarm) network() {
	link := LinkSpec{
		DelaySet: true, DelayMin: time.Millisecond,
		DelayMax: time.Duration(s.logarithmic(topicNetwork, 5, 0, 2, 40)) * time.Millisecond,
	}
	if s.in[classLoss] {
		ppm := int(s.rate[classLoss])
		link.LossPPM = &ppm
	}
	if s.in[classDuplicate] {
		ppm := int(s.rate[classDuplicate])
		link.DuplicatePPM = &ppm
	}
	if s.in[classTail] {
		link.TailSet, link.TailPPM = true, int(s.rate[classTail])
		link.Tail = time.Duration(s.logarithmic(topicNetwork, 7, 0, 50, 1500)) * time.Millisecond
	}
	s.add(SetNetwork{LinkSpec: link})
}
