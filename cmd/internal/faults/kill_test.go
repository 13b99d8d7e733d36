package faults

import (
	"testing"
	"time"

	"ticketing/cmd/internal/cluster"
)

// Servers are killed in turn, as often as they come back, while 64 clients go on.
func TestAcknowledgedLocksSurviveKilledServers(t *testing.T) {
	t.Parallel()
	s := start(t, cluster.Config{})
	crowd := s.crowd(64)
	kills := 0
	for end := time.Now().Add(lasting(6*time.Second, time.Minute)); time.Now().Before(end); {
		for _, id := range s.IDs() {
			s.must(s.Kill(id))
			kills++
			s.leader(s.others(id)...)
			s.goesOn(s.others(id)...)
			s.must(s.Restart(within(t), id))
			s.leader()
			s.await(20)
		}
	}
	crowd.stop()
	n := s.judge()
	t.Logf("%d kills", kills)
	if kills < 3 || n.elections < 2 || n.granted < 100 || n.released < 50 || n.kept == 0 ||
		n.unknown == 0 {
		t.Errorf("too little has happened: %d kills, %+v", kills, n)
	}
}
