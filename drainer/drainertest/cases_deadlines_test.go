package drainertest_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// A deadline passes when the strategy in the state and the time say so, and then
// always: whatever timer was set for an older one, whoever else has one, whatever
// the clock did meanwhile. Batch work shows it best, since nothing else moves it.
func TestCase16_Deadlines(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2", "n3")
		s.place(batch("sum", 3), "n1", "n2", "n3")
	}
	t.Run("equal", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", time.Minute)},
				{0, drain("n2", time.Minute)},
			},
			Story: `
				0s      drain n1: deadline 1m0s
				0s      drain n2: deadline 1m0s
				0s        n1: sum[0]@n1 batch running
				0s        n2: sum[1]@n2 batch running
				1m0s    mark sum[0]@n1 sum[1]@n2 deadline
				1m0s      n1: sum[0]@n1 stopping
				1m0s      n2: sum[1]@n2 stopping
				1m2s    end n1: deadline reached
				1m2s    end n2: deadline reached`,
			End: `
				n1 deadline reached
				n2 deadline reached
				sum runs 0 of 3, 0 healthy`,
		})
	})
	t.Run("less than the window apart", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", time.Minute)},
				{100 * time.Millisecond, drain("n2", time.Minute)},
				{200 * time.Millisecond, drain("n3", time.Minute)},
			},
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running
				100ms   drain n2: deadline 1m0s
				100ms     n2: sum[1]@n2 batch running
				200ms   drain n3: deadline 1m0s
				200ms     n3: sum[2]@n3 batch running
				1m0.2s  mark sum[0]@n1 sum[1]@n2 sum[2]@n3 deadline
				1m0.2s    n1: sum[0]@n1 stopping
				1m0.2s    n2: sum[1]@n2 stopping
				1m0.2s    n3: sum[2]@n3 stopping
				1m2.2s  end n1: deadline reached
				1m2.2s  end n2: deadline reached
				1m2.2s  end n3: deadline reached`,
			End: `
				n1 deadline reached
				n2 deadline reached
				n3 deadline reached
				sum runs 0 of 3, 0 healthy`,
		})
	})
	t.Run("past", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, set(-time.Hour)}, // the request is stamped by a clock that is slow
				{0, drain("n1", time.Minute)},
				{time.Second, set(0)},
			},
			Jumps: true,
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running
				1s        n1: sum[0]@n1 write pending
				31s     mark sum[0]@n1 deadline
				31s       n1: sum[0]@n1 stopping
				33s     end n1: deadline reached`,
			End: `
				n1 deadline reached
				sum runs 0 of 3, 0 healthy`,
		})
	})
	t.Run("none", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, drain("n1", 0)}},
			Story: `
				0s      drain n1: no deadline
				0s        n1: sum[0]@n1 batch running
				1h0m0s  end n1: complete`,
			End: `
				n1 complete
				sum runs 0 of 3, 0 healthy`,
		})
	})
	t.Run("infinite", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, drain("n1", math.MaxInt64)}},
			Story: `
				0s      drain n1: deadline 2562047h47m16.854775807s
				0s        n1: sum[0]@n1 batch running
				1h0m0s  end n1: complete`,
			End: `
				n1 complete
				sum runs 0 of 3, 0 healthy`,
		})
	})
	t.Run("sooner", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 10*time.Minute)},
				{30 * time.Second, drain("n1", time.Minute)},
			},
			Story: `
				0s      drain n1: deadline 10m0s
				0s        n1: sum[0]@n1 batch running
				30s     update the drain of n1: deadline 1m0s
				1m30s   mark sum[0]@n1 deadline
				1m30s     n1: sum[0]@n1 stopping
				1m32s   end n1: deadline reached`,
			End: `
				n1 deadline reached
				sum runs 0 of 3, 0 healthy`,
		})
	})
	t.Run("later", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", time.Minute)},
				{30 * time.Second, drain("n1", 10*time.Minute)},
			},
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running
				30s     update the drain of n1: deadline 10m0s
				10m30s  mark sum[0]@n1 deadline
				10m30s    n1: sum[0]@n1 stopping
				10m32s  end n1: deadline reached`,
			End: `
				n1 deadline reached
				sum runs 0 of 3, 0 healthy`,
		})
	})
	t.Run("taken back", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", time.Minute)},
				{30 * time.Second, drain("n1", 0)},
			},
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running
				30s     update the drain of n1: no deadline
				1h0m0s  end n1: complete`,
			End: `
				n1 complete
				sum runs 0 of 3, 0 healthy`,
		})
	})
	t.Run("given to one that had none", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 0)},
				{30 * time.Second, drain("n1", time.Minute)},
			},
			Story: `
				0s      drain n1: no deadline
				0s        n1: sum[0]@n1 batch running
				30s     update the drain of n1: deadline 1m0s
				1m30s   mark sum[0]@n1 deadline
				1m30s     n1: sum[0]@n1 stopping
				1m32s   end n1: deadline reached`,
			End: `
				n1 deadline reached
				sum runs 0 of 3, 0 healthy`,
		})
	})
	t.Run("force while others wait", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", time.Minute)},
				{0, drain("n2", 0)},
				{10 * time.Second, drain("n3", force)},
				{20 * time.Second, drain("n2", force)},
			},
			Story: `
				0s      drain n1: deadline 1m0s
				0s      drain n2: no deadline
				0s        n1: sum[0]@n1 batch running
				0s        n2: sum[1]@n2 batch running
				10s     drain n3: force
				10s     mark sum[2]@n3 forced
				10s       n3: sum[2]@n3 stopping
				12s     end n3: forced
				20s     update the drain of n2: force
				20s     mark sum[1]@n2 forced
				20s       n2: sum[1]@n2 stopping
				22s     end n2: forced
				1m0s    mark sum[0]@n1 deadline
				1m0s      n1: sum[0]@n1 stopping
				1m2s    end n1: deadline reached`,
			End: `
				n1 deadline reached
				n2 forced
				n3 forced
				sum runs 0 of 3, 0 healthy`,
		})
	})
	t.Run("extended while the deadline entry is in flight", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", time.Minute)},
				{0, beforeNext[marks](commitDrain("n1", 5*time.Minute))},
			},
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running
				1m0s    update the drain of n1: deadline 5m0s
				1m0s    refused sum[0]@n1: the drain was changed since
				6m0s    mark sum[0]@n1 deadline
				6m0s      n1: sum[0]@n1 stopping
				6m2s    end n1: deadline reached`,
			End: `
				n1 deadline reached
				sum runs 0 of 3, 0 healthy`,
		})
	})
}

// Timers run by themselves; deadlines are times of day. Whoever waits looks at the
// clock every half minute, so a clock that is set forward makes a deadline at most
// that much late, and one that is set back never makes it early.
func TestCase16_ClockSteps(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2")
		s.place(batch("sum", 2), "n1", "n2")
	}
	t.Run("forward", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Jumps: true,
			Script: []Scene{
				{0, drain("n1", 30*time.Minute)},
				{10 * time.Second, set(40 * time.Minute)},
			},
			Story: `
				0s      drain n1: deadline 30m0s
				0s        n1: sum[0]@n1 batch running
				10s       n1: sum[0]@n1 write pending
				40s     mark sum[0]@n1 deadline
				40s       n1: sum[0]@n1 stopping
				42s     end n1: deadline reached`,
			End: `
				n1 deadline reached
				sum runs 0 of 2, 0 healthy`,
		})
	})
	t.Run("back", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Jumps: true,
			Script: []Scene{
				{0, drain("n1", 10*time.Minute)},
				{time.Minute, set(-10 * time.Minute)},
			},
			Story: `
				0s      drain n1: deadline 10m0s
				0s        n1: sum[0]@n1 batch running
				20m0s   mark sum[0]@n1 deadline
				20m0s     n1: sum[0]@n1 stopping
				20m2s   end n1: deadline reached`,
			End: `
				n1 deadline reached
				sum runs 0 of 2, 0 healthy`,
		})
	})
}

// Two leaders do not agree on the time. Each judges a deadline by its own clock:
// what the first one's request fixed is a time of day, and no timer is inherited.
func TestCase16_SkewBetweenLeaders(t *testing.T) {
	skewed := func(ahead time.Duration) func(*Stage) {
		return func(s *Stage) {
			s.nodes("n1", "n2")
			s.place(batch("sum", 2, killTimeout(time.Minute)), "n1", "n2")
			s.place(system("log"), "n1", "n2")
			s.SetClock(1, ahead)
		}
	}
	elect := func(s *Stage) { s.check(s.Elect(true)) }
	script := []Scene{{0, drain("n1", time.Minute)}, {57 * time.Second, elect}}
	t.Run("the second is ahead", func(t *testing.T) {
		run(t, Case{
			Options: world.Options{Servers: 2},
			Setup:   skewed(5 * time.Second),
			Script:  script,
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running, log[0]@n1 waiting for stage
				57s     mark sum[0]@n1 deadline
				57s       n1: sum[0]@n1 stopping, log[0]@n1 waiting for stage
				59s     mark log[0]@n1 stage
				59s       n1: log[0]@n1 stopping
				1m1s    end n1: deadline reached`,
			End: `
				n1 deadline reached
				log runs 1 of 1, 1 healthy
				sum runs 0 of 2, 0 healthy`,
		})
	})
	t.Run("the second is behind", func(t *testing.T) {
		run(t, Case{
			Options: world.Options{Servers: 2},
			Setup:   skewed(-5 * time.Second),
			Script:  script,
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running, log[0]@n1 waiting for stage
				1m5s    mark sum[0]@n1 deadline
				1m5s      n1: sum[0]@n1 stopping, log[0]@n1 waiting for stage
				1m7s    mark log[0]@n1 stage
				1m7s      n1: log[0]@n1 stopping
				1m9s    end n1: deadline reached`,
			End: `
				n1 deadline reached
				log runs 1 of 1, 1 healthy
				sum runs 0 of 2, 0 healthy`,
		})
	})
	t.Run("the second is behind, and the first has marked", func(t *testing.T) {
		run(t, Case{
			Options: world.Options{Servers: 2, Client: behaving(func(a *cluster.Allocation, b *world.Behaviour) {
				if a.JobID == "sum" {
					b.Stop = 30 * time.Second
				}
			})},
			Setup:  skewed(-5 * time.Second),
			Script: []Scene{{0, drain("n1", time.Minute)}, {61 * time.Second, elect}},
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running, log[0]@n1 waiting for stage
				1m0s    mark sum[0]@n1 deadline
				1m0s      n1: sum[0]@n1 stopping, log[0]@n1 waiting for stage
				1m30s   mark log[0]@n1 stage
				1m30s     n1: log[0]@n1 stopping
				1m32s   end n1: deadline reached`,
			End: `
				n1 deadline reached
				log runs 1 of 1, 1 healthy
				sum runs 0 of 2, 0 healthy`,
		})
	})
}
