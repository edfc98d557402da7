package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"
)

// A server has the time of its last contact with a silent server as long as it leads, and with its last
// leader.
func TestContacts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	follower := newContacts("s1")
	follower.observed(raft.LeaderObservation{}, time.Time{})
	must.MapEmpty(t, follower.last(), must.Sprint("no leader was ever known"))
	follower.observed(raft.LeaderObservation{LeaderID: "s2"}, at)
	follower.observed(raft.LeaderObservation{}, at.Add(time.Second))
	must.Eq(t, map[raft.ServerID]time.Time{"s2": at.Add(time.Second)}, follower.last())

	follower.observed(raft.LeaderObservation{LeaderID: "s1"}, at.Add(time.Second)) // it leads now
	follower.observed(raft.FailedHeartbeatObservation{PeerID: "s3", LastContact: at.Add(time.Minute)}, at)
	follower.observed(raft.FailedHeartbeatObservation{PeerID: "s2", LastContact: at.Add(time.Hour)}, at)
	must.Eq(t, map[raft.ServerID]time.Time{"s2": at.Add(time.Hour), "s3": at.Add(time.Minute)}, follower.last())
	follower.observed(raft.ResumedHeartbeatObservation{PeerID: "s3"}, at)
	follower.observed(raft.LeaderObservation{}, at) // it leads no more
	must.Eq(t, map[raft.ServerID]time.Time{"s2": at.Add(time.Hour)}, follower.last())
	follower.observed(raft.LeaderObservation{LeaderID: "s3"}, at)
	must.MapEmpty(t, follower.last(), must.Sprint("s3 leads, and has the times"))
}

// The wait for a silent server ends with its first lost heartbeat that is seen, or with the context.
func TestContacts_awaitSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leader := newContacts("s1")
		ctx, cancel := context.WithCancel(t.Context())
		lost, alive := make(chan error, 1), make(chan error, 1)
		go func() { lost <- leader.awaitSilence(ctx, "s2") }()
		go func() { alive <- leader.awaitSilence(ctx, "s3") }()
		synctest.Wait()
		leader.observed(raft.FailedHeartbeatObservation{PeerID: "s2", LastContact: time.Now()}, time.Time{})
		must.ErrorIs(t, <-lost, errSilent)
		must.True(t, leader.isSilent("s2"))
		cancel()
		must.NoError(t, <-alive)
	})
}
