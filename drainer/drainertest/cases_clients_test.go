package drainertest_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// killTimeout sets how long the first group's task may take to stop.
func killTimeout(d time.Duration) func(*cluster.Job) {
	return func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].KillTimeout = d }
}

// stopping sets how long allocations of a job, which never end by themselves, take
// to stop.
func stopping(id cluster.JobID, d time.Duration) world.Options {
	return world.Options{Client: behaving(func(a *cluster.Allocation, b *world.Behaviour) {
		if a.JobID == id {
			b.Stop, b.Run = d, world.Never
		}
	})}
}

// A deadline does not shorten a kill timeout, and it does not wait for a client
// that never stops: the drain ends when what was asked to stop has had its time,
// and says what still runs.
func TestCase22_KillTimeoutLongerThanTheDeadline(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2")
		s.place(batch("sum", 1, killTimeout(10*time.Minute)), "n1")
		s.place(system("log"), "n1", "n2")
	}
	t.Run("a client that takes its time", func(t *testing.T) {
		run(t, Case{
			Options: stopping("sum", 9*time.Minute),
			Setup:   setup,
			Script:  []Scene{{0, drain("n1", time.Minute)}},
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running, log[0]@n1 waiting for stage
				1m0s    mark sum[0]@n1 deadline
				1m0s      n1: sum[0]@n1 stopping, log[0]@n1 waiting for stage
				10m0s   mark log[0]@n1 stage
				10m0s     n1: log[0]@n1 stopping
				10m2s   end n1: deadline reached`,
			End: `
				n1 deadline reached
				log runs 1 of 1, 1 healthy
				sum runs 0 of 1, 0 healthy`,
		})
	})
	t.Run("a client that never stops", func(t *testing.T) {
		run(t, Case{
			Options: stopping("sum", world.Never),
			Setup:   setup,
			Script:  []Scene{{0, drain("n1", time.Minute)}},
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running, log[0]@n1 waiting for stage
				1m0s    mark sum[0]@n1 deadline
				1m0s      n1: sum[0]@n1 stopping, log[0]@n1 waiting for stage
				11m15s  mark log[0]@n1 stage
				11m15s    n1: log[0]@n1 sum[0]@n1 stopping
				11m17s  end n1: deadline reached, 1 still stopping`,
			End: `
				n1 deadline reached, 1 still stopping, left: sum.sum[0]
				log runs 1 of 1, 1 healthy
				sum runs 0 of 1, 0 healthy`,
		})
	})
	t.Run("a paced one that never stops was ended by the deadline", func(t *testing.T) {
		run(t, Case{
			Options: stopping("web", world.Never),
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 1), "n1")
			},
			Script: []Scene{{0, drain("n1", time.Minute)}},
			Story: `
				0s      drain n1: deadline 1m0s
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping
				1m20s   end n1: deadline reached, 1 still stopping`,
			End: `
				n1 deadline reached, 1 still stopping, left: web.web[0]
				web runs 1 of 1, 1 healthy
				web lowest 0 of 1, limit 0`,
		})
	})
}

// A drain that is cancelled after its deadline has stopped batch work leaves what
// stops to stop: it is placed nowhere else, and the node's return makes no copy.
func TestCase23_CancelWhileBatchIsStopping(t *testing.T) {
	run(t, Case{
		Options: stopping("sum", time.Minute),
		Setup: func(s *Stage) {
			s.nodes("n1", "n2")
			s.place(batch("sum", 1, killTimeout(2*time.Minute)), "n1")
		},
		Script: []Scene{
			{0, drain("n1", time.Minute)},
			{90 * time.Second, cancelEligible("n1")},
		},
		Story: `
			0s      drain n1: deadline 1m0s
			0s        n1: sum[0]@n1 batch running
			1m0s    mark sum[0]@n1 deadline
			1m0s      n1: sum[0]@n1 stopping
			1m30s   cancel n1: 0 marks withdrawn, stopping already: sum[0]@n1`,
		End: `
			n1 cancelled, 1 still stopping
			sum runs 0 of 1, 0 healthy`,
	})
}

// A replacement that never becomes healthy gives back no room: what is left stays
// where it is well, says so, and the deadline takes it.
func TestCase28_ReplacementNeverHealthy(t *testing.T) {
	sick := world.Options{Client: behaving(func(a *cluster.Allocation, b *world.Behaviour) {
		if a.PreviousAllocation != "" {
			b.Unhealthy, b.Verdict = true, 10*time.Second
		}
	})}
	setup := func(s *Stage) {
		s.nodes("n1", "n2")
		s.place(service("web", 2), "n1", "n1")
	}
	t.Run("judged unhealthy, to the deadline", func(t *testing.T) {
		run(t, Case{
			Options: sick, Setup: setup,
			Script: []Scene{{0, drain("n1", time.Hour)}},
			Story: `
				0s      drain n1: deadline 1h0m0s
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				2s        n1: web[1]@n1 waiting for room
				11s       n1: web[1]@n1 below budget
				1h0m0s  mark web[1]@n1 deadline
				1h0m0s    n1: web[1]@n1 stopping
				1h0m2s  end n1: deadline reached`,
			End: `
				n1 deadline reached
				web runs 2 of 2, 0 healthy
				web lowest 0 of 2, limit 1`,
		})
	})
	t.Run("never judged, to the deadline", func(t *testing.T) {
		run(t, Case{
			Options: world.Options{Client: behaving(func(a *cluster.Allocation, b *world.Behaviour) {
				if a.PreviousAllocation != "" {
					b.Verdict = world.Never
				}
			})},
			Setup:  setup,
			Script: []Scene{{0, drain("n1", time.Hour)}},
			Story: `
				0s      drain n1: deadline 1h0m0s
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				2s        n1: web[1]@n1 waiting for room
				5m10s     n1: web[1]@n1 below budget
				1h0m0s  mark web[1]@n1 deadline
				1h0m0s    n1: web[1]@n1 stopping
				1h0m2s  end n1: deadline reached`,
			End: `
				n1 deadline reached
				web runs 2 of 2, 0 healthy
				web lowest 0 of 2, limit 1`,
		})
	})
	t.Run("and the new one's node drains too", func(t *testing.T) {
		run(t, Case{
			Options: sick, Setup: setup,
			Script: []Scene{
				{0, drain("n1", time.Hour)},
				{time.Minute, join("n3")},
				{time.Minute, drain("n2", 2*time.Hour)},
			},
			Story: `
				0s      drain n1: deadline 1h0m0s
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				2s        n1: web[1]@n1 waiting for room
				11s       n1: web[1]@n1 below budget
				1m0s    node n3 registers
				1m0s    drain n2: deadline 2h0m0s
				1m0s    mark web[0]@n2 free
				1m0s      n1: web[1]@n1 waiting for room
				1m0s      n2: web[0]@n2 stopping
				1m2s    end n2: complete
				1m11s     n1: web[1]@n1 below budget
				1h0m0s  mark web[1]@n1 deadline
				1h0m0s    n1: web[1]@n1 stopping
				1h0m2s  end n1: deadline reached`,
			End: `
				n1 deadline reached
				n2 complete
				web runs 2 of 2, 0 healthy
				web lowest 0 of 2, limit 1`,
		})
	})
}
