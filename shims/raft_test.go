package shims_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

func TestRaft_WritesAndBarriersAreAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := startServers(t, 3)
		leader := servers.leader(t)
		_, first, err := shims.Apply(t.Context(), leader.proposer, eval("a"))
		must.NoError(t, err)
		_, second, err := shims.Apply(t.Context(), leader.proposer, eval("b"))
		must.NoError(t, err)
		must.Eq(t, first+1, second)

		got := newAnswers(t)
		leader.proposer.Propose(eval("c"), got.of("c"))
		leader.proposer.Barrier(got.of("barrier"))
		time.Sleep(time.Second)
		must.Eq(t, raftwrite.Applied, got.get("barrier").Outcome)
		must.Eq(t, second+1, got.get("c").Index)
		must.Eq(t, second+1, got.get("barrier").Index, must.Sprint("the index of the newest entry in the state, not of the barrier"))

		for _, s := range servers {
			if s != leader {
				_, _, err := shims.Apply(t.Context(), s.proposer, eval("elsewhere"))
				must.ErrorIs(t, err, shims.ErrRejected)
				must.ErrorIs(t, err, raft.ErrNotLeader)
			}
			must.Eq(t, map[uint64]string{first: "a", second: "b", second + 1: "c"}, s.entries())
		}
	})
}

// faults are the leader's faults while writes are in flight.
var faults = []struct {
	name   string
	strike func(t testing.TB, servers raftServers, leader *raftServer)
}{
	{"cut off for a short time", func(t testing.TB, servers raftServers, leader *raftServer) {
		servers.disconnect(leader)
		time.Sleep(30 * time.Millisecond)
		servers.connect(leader)
	}},
	{"cut off until another leads", func(t testing.TB, servers raftServers, leader *raftServer) {
		servers.disconnect(leader)
		time.Sleep(time.Second)
		servers.connect(leader)
	}},
	{"does not receive answers", func(t testing.TB, servers raftServers, leader *raftServer) {
		leader.link.losing.Store(true)
		time.Sleep(time.Second)
		leader.link.losing.Store(false)
	}},
	{"hands over", func(t testing.TB, servers raftServers, leader *raftServer) {
		_ = leader.raft.LeadershipTransfer().Error() // it may fail: the leader may lose leadership before
	}},
}

// While leaders are cut off and hand over, every server gets writes. Afterwards each write answered
// as applied is applied on every server, at the answered index, and each write answered as rejected
// on none.
func TestRaft_AnswersAreTrueWhenTheLeaderChanges(t *testing.T) {
	t.Parallel()
	var appliedUnknown, lostUnknown, rejected int
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			servers, got := startServers(t, 3), newAnswers(t)
			stop := make(chan struct{})
			for i, s := range servers {
				go func() {
					for n := 0; ; n++ {
						name := fmt.Sprintf("%d/%d", i, n)
						s.proposer.Propose(eval(name), got.of(name))
						select {
						case <-time.After(3 * time.Millisecond):
						case <-stop:
							return
						}
					}
				}()
			}
			for range 4 {
				time.Sleep(time.Duration(random.IntN(int(50 * time.Millisecond))))
				faults[random.IntN(len(faults))].strike(t, servers, servers.leader(t))
			}
			close(stop)
			time.Sleep(shims.DefaultTimeout)
			servers.settle(t)

			entries := servers[0].entries()
			for _, s := range servers[1:] {
				must.Eq(t, entries, s.entries())
				must.Eq(t, servers[0].dump(t), s.dump(t))
			}
			applied := slices.Sorted(maps.Values(entries))
			must.Eq(t, len(applied), len(slices.Compact(applied)), must.Sprint("nothing is applied twice"))
			for name, answer := range got.all() {
				_, found := slices.BinarySearch(applied, name)
				switch answer.Outcome {
				case raftwrite.Applied:
					must.Eq(t, name, entries[answer.Index])
				case raftwrite.Rejected:
					rejected++
					must.False(t, found, must.Sprintf("%s was answered rejected: %v", name, answer.Err))
				case raftwrite.Unknown:
					if found {
						appliedUnknown++
					} else {
						lostUnknown++
					}
				}
			}
		})
	}
	must.Positive(t, rejected)
	must.Positive(t, lostUnknown)
	must.Positive(t, appliedUnknown)
}

func TestRaft_AStoppedLeaderAnswersItsWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers, got := startServers(t, 3), newAnswers(t)
		leader := servers.leader(t)
		servers.disconnect(leader)
		leader.proposer.Propose(eval("in flight"), got.of("in flight"))
		synctest.Wait()
		must.NoError(t, leader.raft.Shutdown().Error())
		synctest.Wait()
		must.Eq(t, raftwrite.Unknown, got.get("in flight").Outcome)

		leader.proposer.Propose(eval("afterwards"), got.of("afterwards"))
		synctest.Wait()
		must.Eq(t, raftwrite.Unknown, got.get("afterwards").Outcome, must.Sprint("raft returns the same error for writes it may have applied"))
		must.ErrorIs(t, got.get("afterwards").Err, raft.ErrRaftShutdown)
	})
}

// ErrAbortedByRestore is Unknown, although raft's comments differ: raft answers the future before
// it reads the snapshot. If the snapshot cannot be read, the leader continues with the entry in its
// log.
func TestRaft_AnEntryAbortedByARestoreMayStillBeApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers, got := startServers(t, 3), newAnswers(t)
		leader := servers.leader(t)
		servers.disconnect(leader)
		leader.proposer.Propose(eval("aborted"), got.of("aborted"))
		synctest.Wait()
		broken := &raft.SnapshotMeta{Version: 1, Size: 100}
		must.ErrorContains(t, leader.raft.Restore(broken, bytes.NewReader(nil), time.Second), "size didn't match")
		synctest.Wait()
		must.ErrorIs(t, got.get("aborted").Err, raft.ErrAbortedByRestore)
		must.MapNotContainsValues(t, leader.entries(), []string{"aborted"})

		servers.connect(leader)
		_, _, err := shims.Apply(t.Context(), leader.proposer, eval("next"))
		must.NoError(t, err)
		servers.settle(t)
		for _, s := range servers {
			must.MapContainsValues(t, s.entries(), []string{"aborted", "next"})
		}
		must.Eq(t, raftwrite.Unknown, got.get("aborted").Outcome)
	})
}

func TestRaft_AServerThatFellBehindTakesASnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := startServers(t, 3)
		leader := servers.leader(t)
		behind := servers[(slices.Index(servers, leader)+1)%3]
		_, _, err := shims.Apply(t.Context(), leader.proposer, eval("before"))
		must.NoError(t, err)
		servers.settle(t)
		old := behind.fsm.Store()
		wake := make(chan struct{}, 1)
		feed := old.Subscribe(wake)
		defer feed.Close()

		servers.disconnect(behind)
		_, _, err = shims.Apply(t.Context(), leader.proposer, eval("missed"))
		must.NoError(t, err)
		must.NoError(t, leader.raft.Snapshot().Error())
		_, _, err = shims.Apply(t.Context(), leader.proposer, eval("after"))
		must.NoError(t, err)
		servers.connect(behind)
		time.Sleep(10 * time.Second)
		servers.settle(t)

		must.SliceNotEmpty(t, behind.restored, must.Sprint("a snapshot was installed"))
		must.True(t, behind.fsm.Store() == behind.restored[len(behind.restored)-1])
		must.MapNotContainsValues(t, behind.entries(), []string{"missed"}, must.Sprint("the snapshot contained it"))
		must.Eq(t, leader.dump(t), behind.dump(t))
		must.True(t, feed.Take().Abandoned)
	})
}

func TestRaft_AUserRestoreReplacesTheStateEverywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := startServers(t, 3)
		leader := servers.leader(t)
		_, _, err := shims.Apply(t.Context(), leader.proposer, eval("kept"))
		must.NoError(t, err)
		backup := leader.raft.Snapshot()
		must.NoError(t, backup.Error())
		meta, reader, err := backup.Open()
		must.NoError(t, err)
		saved, err := io.ReadAll(reader)
		must.NoError(t, err)
		_, _, err = shims.Apply(t.Context(), leader.proposer, eval("undone"))
		must.NoError(t, err)

		must.NoError(t, leader.raft.Restore(meta, bytes.NewReader(saved), 10*time.Second))
		_, index, err := shims.Apply(t.Context(), leader.proposer, eval("afterwards"))
		must.NoError(t, err)
		servers.settle(t)
		for _, s := range servers {
			snapshot := s.fsm.Store().Snapshot()
			must.Eq(t, index, snapshot.Index())
			must.NotNil(t, snapshot.Eval("kept"))
			must.Nil(t, snapshot.Eval("undone"))
			must.NotNil(t, snapshot.Eval("afterwards"))
			must.Eq(t, leader.dump(t), s.dump(t))
		}
	})
}
