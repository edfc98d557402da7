package drainertest_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Both of a service's two allocations are on draining nodes. Each node by itself
// could give its allocation up; together they would stop the service. One budget
// has to hold over both.
func TestCase01_TwoNodesCount2MaxParallel1(t *testing.T) {
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2", "n3")
			s.place(service("web", 2), "n1", "n2")
		},
		Script: []Scene{
			{0, drain("n1", 10*time.Minute)},
			{0, drain("n2", 10*time.Minute)},
		},
		Story: `
			0s      drain n1: deadline 10m0s
			0s      drain n2: deadline 10m0s
			0s      mark web[0]@n1 paced
			0s        n1: web[0]@n1 stopping
			0s        n2: web[1]@n2 waiting for room
			2s      end n1: complete
			11s     mark web[1]@n2 paced
			11s       n2: web[1]@n2 stopping
			13s     end n2: complete`,
		End: `
			n1 complete
			n2 complete
			web runs 2 of 2, 2 healthy
			web lowest 1 of 2, limit 1`,
	})
}

// A job's ID is its own only within its namespace. Counted as one, three jobs with
// the same ID would give each other room that none of them has, or wait for each
// other.
func TestCase02_SameJobIDInThreeNamespaces(t *testing.T) {
	in := func(ns cluster.Namespace, count int) *cluster.Job {
		return service("web", count, func(j *cluster.Job) { j.Namespace = ns })
	}
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2", "n3")
			s.place(in("blue", 1), "n1")
			s.place(in("green", 2), "n1", "n1")
			s.place(in("red", 2), "n1", "n2")
		},
		Script: []Scene{{0, drain("n1", 0)}},
		Story: `
			0s      drain n1: no deadline
			0s      mark blue/web[0]@n1 green/web[0]@n1 red/web[0]@n1 paced
			0s        n1: blue/web[0]@n1 green/web[0]@n1 red/web[0]@n1 stopping, green/web[1]@n1 waiting for room
			2s        n1: green/web[1]@n1 waiting for room
			11s     mark green/web[1]@n1 paced
			11s       n1: green/web[1]@n1 stopping
			13s     end n1: complete`,
		End: `
			n1 complete
			blue/web runs 1 of 1, 1 healthy
			green/web runs 2 of 2, 2 healthy
			red/web runs 2 of 2, 2 healthy
			blue/web lowest 0 of 1, limit 0
			green/web lowest 1 of 2, limit 1
			red/web lowest 1 of 2, limit 1`,
	})
}

// Without a verdict on its health nobody knows what an allocation is worth. Until
// the verdict is due it may turn out well, so it stays; once it is overdue it
// costs nothing to move it.
func TestCase03_NoHealthVerdict(t *testing.T) {
	judged := func(after time.Duration) world.Options {
		return world.Options{Client: behaving(func(a *cluster.Allocation, b *world.Behaviour) {
			if a.NodeID == "n1" {
				b.Verdict = after
			}
		})}
	}
	setup := func(s *Stage) {
		s.nodes("n1", "n2", "n3")
		s.put(service("web", 3), on("n1", unjudged(time.Hour)), on("n1", unjudged(time.Minute)), on("n2"))
	}
	t.Run("one overdue, one due later", func(t *testing.T) {
		run(t, Case{
			Options: judged(world.Never), Setup: setup,
			Script: []Scene{{0, drain("n1", 0)}},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 free
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for health
				2s        n1: web[1]@n1 waiting for health
				4m10s   mark web[1]@n1 free
				4m10s     n1: web[1]@n1 stopping
				4m12s   end n1: complete`,
			End: `
				n1 complete
				web runs 3 of 3, 3 healthy
				web lowest 1 of 3, limit 2`,
		})
	})
	t.Run("the verdict comes in time", func(t *testing.T) {
		run(t, Case{
			Options: judged(time.Minute), Setup: setup,
			Script: []Scene{{0, drain("n1", 0)}},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 free
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for health
				2s        n1: web[1]@n1 waiting for health
				1m0s    mark web[1]@n1 paced
				1m0s      n1: web[1]@n1 stopping
				1m2s    end n1: complete`,
			End: `
				n1 complete
				web runs 3 of 3, 3 healthy
				web lowest 1 of 3, limit 2`,
		})
	})
}

// A group that cannot have all it wants has nothing to give: each move would leave
// it with less. It says what it waits for, and goes on when there is room again;
// or its owners have said that a drain comes first.
func TestCase04_UnderReplicated(t *testing.T) {
	setup := func(s *Stage) {
		for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
			s.node(id, room(1))
		}
		s.place(service("web", 4), "n1", "n2", "n3")
		s.check(s.EditJob(key("web"), counts(4)))
	}
	t.Run("held until there is room", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{time.Second, drain("n1", 0)},
				{time.Minute, join("n4", room(2))},
			},
			Story: `
				0s      job web, web count 4 max_parallel 1
				1s      drain n1: no deadline
				1s        n1: web[0]@n1 waiting for replacement
				1m0s    node n4 registers
				1m0s      n1: web[0]@n1 waiting for room
				1m11s   mark web[0]@n1 paced
				1m11s     n1: web[0]@n1 stopping
				1m13s   end n1: complete`,
			End: `
				n1 complete
				web runs 4 of 4, 4 healthy
				web lowest 3 of 4, limit 3`,
		})
	})
	t.Run("held until the deadline", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{time.Second, drain("n1", time.Minute)}},
			Story: `
				0s      job web, web count 4 max_parallel 1
				1s      drain n1: deadline 1m0s
				1s        n1: web[0]@n1 waiting for replacement
				1m1s    mark web[0]@n1 deadline
				1m1s      n1: web[0]@n1 stopping
				1m3s    end n1: deadline reached`,
			End: `
				n1 deadline reached
				web runs 2 of 4, 2 healthy
				web lowest 2 of 4, limit 3`,
		})
	})
	t.Run("policy proceed", func(t *testing.T) {
		run(t, Case{
			Options: world.Options{Drainer: drainer.NodeDrainerConfig{Policy: drainer.Policy{BelowBudget: drainer.Proceed}}},
			Setup:   setup,
			Script:  []Scene{{time.Second, drain("n1", 0)}},
			Story: `
				0s      job web, web count 4 max_parallel 1
				1s      drain n1: no deadline
				1s      mark web[0]@n1 proceed
				1s        n1: web[0]@n1 stopping
				3s      end n1: complete`,
			End: `
				n1 complete
				web runs 2 of 4, 2 healthy
				web lowest 2 of 4, limit 3`,
		})
	})
}

// One of two is not well, and it is the other that is to move. Nothing is on its
// way that could help, and it says so; but the unhealthy one may end yet, and be
// replaced by one that is well.
func TestCase05_OnlyPeerUnhealthy(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2", "n3")
		s.put(service("web", 2), on("n1"), on("n2", unhealthy))
	}
	t.Run("until it is replaced", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Minute, fail("web.web[1]")},
			},
			Story: `
				0s      drain n1: no deadline
				0s        n1: web[0]@n1 below budget
				1m0s      n1: web[0]@n1 waiting for room
				1m11s   mark web[0]@n1 paced
				1m11s     n1: web[0]@n1 stopping
				1m13s   end n1: complete`,
			End: `
				n1 complete
				web runs 2 of 2, 2 healthy
				web lowest 1 of 2, limit 1`,
		})
	})
	t.Run("until the deadline", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, drain("n1", time.Minute)}},
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: web[0]@n1 below budget
				1m0s    mark web[0]@n1 deadline
				1m0s      n1: web[0]@n1 stopping
				1m2s    end n1: deadline reached`,
			End: `
				n1 deadline reached
				web runs 2 of 2, 1 healthy
				web lowest 0 of 2, limit 1`,
		})
	})
	t.Run("the unhealthy one is to move", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, drain("n2", 0)}},
			Story: `
				0s      drain n2: no deadline
				0s      mark web[1]@n2 free
				0s        n2: web[1]@n2 stopping
				2s      end n2: complete`,
			End: `
				n2 complete
				web runs 2 of 2, 2 healthy
				web lowest 1 of 2, limit 1`,
		})
	})
}

// Canaries are outside the count, so moving one costs the group nothing; but each
// is there to be watched, so they leave one at a time, and the next not before the
// replacement of a healthy one has been judged.
func TestCase06_Canaries(t *testing.T) {
	t.Run("healthy", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2", "n3")
				s.put(service("web", 2), on("n2"), on("n3"), on("n1", canary), on("n1", canary))
			},
			Script: []Scene{{0, drain("n1", 0)}},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[2]@n1 canary
				0s        n1: web[2]@n1 stopping, web[3]@n1 waiting for room
				2s        n1: web[3]@n1 waiting for room
				11s     mark web[3]@n1 canary
				11s       n1: web[3]@n1 stopping
				13s     end n1: complete`,
			End: `
				n1 complete
				web runs 4 of 2, 4 healthy
				web lowest 2 of 2, limit 1`,
		})
	})
	t.Run("unhealthy", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2", "n3")
				s.put(service("web", 2), on("n1"), on("n3"), on("n1", canary, unhealthy), on("n1", canary, unhealthy))
			},
			Script: []Scene{{0, drain("n1", 0)}},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced, web[2]@n1 canary
				0s        n1: web[0]@n1 web[2]@n1 stopping, web[3]@n1 waiting for room
				2s      mark web[3]@n1 canary
				2s        n1: web[3]@n1 stopping
				4s      end n1: complete`,
			End: `
				n1 complete
				web runs 4 of 2, 4 healthy
				web lowest 1 of 2, limit 1`,
		})
	})
}
