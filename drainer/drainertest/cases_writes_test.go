package drainertest_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// The first write of a drain is rejected, the second is of unknown outcome, the
// third is applied: what the first two wanted is planned again, from the state,
// and nothing is marked twice.
func TestCase31_RejectedThenUnknownThenApplied(t *testing.T) {
	setup := func(unknown world.Fate) func(*Stage) {
		return func(s *Stage) {
			s.nodes("n1", "n2")
			s.place(service("web", 2), "n1", "n2")
			s.fates = []world.Fate{world.Reject, unknown, world.Apply}
		}
	}
	t.Run("and the unknown one was applied", func(t *testing.T) {
		run(t, Case{
			Setup:  setup(world.UnknownApplied),
			Script: []Scene{{0, drain("n1", 0)}},
			Faulty: true,
			Story: `
				0s      drain n1: no deadline
				0s        n1: web[0]@n1 write pending
				50ms    mark web[0]@n1 paced
				50ms      n1: web[0]@n1 stopping
				2.05s   end n1: complete`,
			End: `
				n1 complete
				web runs 2 of 2, 2 healthy
				web lowest 1 of 2, limit 1`,
		})
	})
	t.Run("and the unknown one was lost", func(t *testing.T) {
		run(t, Case{
			Setup:  setup(world.UnknownLost),
			Script: []Scene{{0, drain("n1", 0)}},
			Faulty: true,
			Story: `
				0s      drain n1: no deadline
				0s        n1: web[0]@n1 write pending
				150ms   mark web[0]@n1 paced
				150ms     n1: web[0]@n1 stopping
				2.15s   end n1: complete`,
			End: `
				n1 complete
				web runs 2 of 2, 2 healthy
				web lowest 1 of 2, limit 1`,
		})
	})
	t.Run("and the unknown one comes late", func(t *testing.T) {
		run(t, Case{
			Setup:  setup(world.UnknownLate),
			Script: []Scene{{0, drain("n1", 0)}},
			Faulty: true,
			Story: `
				0s      drain n1: no deadline
				0s        n1: web[0]@n1 write pending
				3.05s   mark web[0]@n1 paced
				3.05s     n1: web[0]@n1 stopping
				5.05s   end n1: complete`,
			End: `
				n1 complete
				web runs 2 of 2, 2 healthy
				web lowest 1 of 2, limit 1`,
		})
	})
}

// A snapshot is restored under a running drainer: what it reads will never change
// again. It stops deciding, and goes on from the new store when it is enabled anew.
func TestCase32_SnapshotRestored(t *testing.T) {
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2")
			s.place(service("web", 3), "n1", "n1", "n2")
			s.place(system("log"), "n1", "n2")
		},
		Script: []Scene{
			{0, drain("n1", 0)},
			{5 * time.Second, func(s *Stage) { s.check(s.Restore()) }},
		},
		Story: `
			0s      drain n1: no deadline
			0s      mark web[0]@n1 paced
			0s        n1: web[0]@n1 stopping, log[0]@n1 waiting for stage, web[1]@n1 waiting for room
			2s        n1: log[0]@n1 waiting for stage, web[1]@n1 waiting for room
			11s     mark web[1]@n1 paced
			11s       n1: web[1]@n1 stopping, log[0]@n1 waiting for stage
			13s     mark log[0]@n1 stage
			13s       n1: log[0]@n1 stopping
			15s     end n1: complete`,
		End: `
			n1 complete
			log runs 1 of 1, 1 healthy
			web runs 3 of 3, 3 healthy
			web lowest 2 of 3, limit 2`,
	})
}

// An allocation is marked, and the evaluation that would stop it has failed. The
// job is evaluated again at once, and then less and less often.
func TestCase33_MarkedButItsEvaluationFailed(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 2), "n1", "n2")
			},
			Script: []Scene{
				{0, beforeNext[plans](failEvals("web"))},
				{0, drain("n1", 0)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s      evaluate web again
				0s        n1: web[0]@n1 stopping
				2s      end n1: complete`,
			End: `
				n1 complete
				web runs 2 of 2, 2 healthy
				web lowest 1 of 2, limit 1`,
		})
	})
	t.Run("of a system job", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(system("log"), "n1", "n2")
			},
			Script: []Scene{
				{0, beforeNext[plans](failEvals("log"))},
				{0, drain("n1", 0)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark log[0]@n1 stage
				0s      evaluate log again
				0s        n1: log[0]@n1 stopping
				2s      end n1: complete`,
			End: `
				n1 complete
				log runs 1 of 1, 1 healthy`,
		})
	})
}

// failEvals has the open evaluations of a job fail; committed.
func failEvals(id cluster.JobID) func(*Stage) {
	return func(s *Stage) {
		var failed []*cluster.Evaluation
		for e := range s.Truth().OpenEvals(key(id)) {
			e = e.Copy()
			e.Status, e.StatusDescription = cluster.EvalFailed, "the scheduler gave up"
			failed = append(failed, e)
		}
		s.check(s.Commit(&shims.EvalUpdate{Evals: failed}))
	}
}
