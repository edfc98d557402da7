package invariant_test

import (
	"fmt"
	"testing"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenTruth() []broken {
	return []broken{
		{"a record that does not name the volumes left", invariant.MiscountedVolumes, nil, func(t *testing.T) *fixture {
			s := volumeLeft(t)
			m := s.ends("n1")
			endings := []rules.Ending{{Completion: m.Completions.Completions[0], Outcome: cluster.OutcomeForced, StillStopping: 0}}
			s.forge(m, shims.CompletionsApplied{Ended: endings}, func(txn *statestore.Txn) { txn.CompleteDrains(m.At, endings) }, func(state *statestore.Snapshot) {
				state.DrainRecord("dn1").VolumesLeft = nil
			})
			return s
		}},
		{"a mark that is not counted", invariant.MiscountedMarks, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			s.forge(m, shims.MarksApplied{Accepted: m.Marks.Marks}, func(txn *statestore.Txn) { _ = txn.ApplyMarks(m.At, m.Marks.Marks, m.Evals) },
				func(state *statestore.Snapshot) { state.Node("n1").Drain.Marked = [cluster.MarkClassCount]int{} })
			return s
		}},
		{"a purge that deletes a running row", invariant.DeletedRunning, []invariant.Check{invariant.JobForgotten}, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.apply(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
			s.fake(&shims.JobDeregister{Job: jobKey("web"), Purge: true, At: s.now}, shims.ChangeApplied{},
				func(txn *statestore.Txn) { _ = txn.DeleteJob(jobKey("web"), true) })
			return s
		}},
		{"a purge that is not counted", invariant.MiscountedPurged, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.forge(&shims.JobDeregister{Job: jobKey("web"), Purge: true}, shims.ChangeApplied{},
				func(txn *statestore.Txn) { _ = txn.DeleteJob(jobKey("web"), true) },
				func(state *statestore.Snapshot) { state.Node("n1").Drain.PurgedRunning = 0 })
			return s
		}},
		{"a drain with the id of an earlier one", invariant.SecondOutcome, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drainAs("n1", "first")
			s.cancel("n1")
			for i := range cluster.MaxDrainRecordsPerNode { // until the store has deleted the record
				s.drainAs("n1", cluster.DrainID(fmt.Sprintf("d%02d", i)))
				s.cancel("n1")
			}
			s.drainAs("n1", "first")
			return s
		}},
		{"a record that is changed", invariant.SecondOutcome, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.cancel("n1")
			m := s.request("n1", &cluster.DrainSpec{})
			m.Drain = "second"
			s.apply(m)
			last := s.request("n1", nil)
			r := shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "second"}}
			s.forge(last, r, s.updates(last), func(state *statestore.Snapshot) { state.DrainRecord("dn1").Outcome = cluster.OutcomeForced })
			return s
		}},
		{"a drain that ends in a change of eligibility", invariant.EndedWithoutCause, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{Every: -1}, 1, 1)
			s.drain("n1", 0)
			m := &shims.NodeUpdateEligibility{At: s.now, Node: "n1", Eligibility: cluster.NodeEligible}
			s.fake(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { txn.CompleteDrains(s.now, endings("n1", "dn1", cluster.OutcomeComplete)) })
			return s
		}},
		{"a node that its drain's end makes eligible", invariant.MadeEligible, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.ended("a1")
			s.drain("n1", 0)
			m := s.ends("n1")
			r := []rules.Ending{{Completion: m.Completions.Completions[0], Outcome: cluster.OutcomeComplete}}
			s.forge(m, shims.CompletionsApplied{Ended: r}, func(txn *statestore.Txn) { txn.CompleteDrains(m.At, r) },
				func(state *statestore.Snapshot) { state.Node("n1").SchedulingEligibility = cluster.NodeEligible })
			return s
		}},
	}
}

// volumeLeft is a fixture with a forced drain that may end. An allocation has ended without its
// volume.
func volumeLeft(t *testing.T) *fixture {
	s := volumeInUse(t)
	held := &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{Namespace: "default", Volume: "data", Alloc: "d1", Reason: "busy", Since: s.now}}}
	s.apply(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: "d1", Node: "n1", ClientStatus: cluster.ClientComplete, VolumeHolds: held, At: s.now}}})
	s.ended("s1")
	return s
}

func fineTruth() []fine {
	return []fine{
		{"more drains of a node than records are kept", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			for i := range cluster.MaxDrainRecordsPerNode + 3 {
				s.drainAs("n1", cluster.DrainID(fmt.Sprintf("d%02d", i)))
				s.cancel("n1")
			}
			return s
		}},
	}
}

func replaced() invariant.Options {
	return invariant.Options{Policy: rules.Policy{Completion: rules.CompletionReplaced}}
}
