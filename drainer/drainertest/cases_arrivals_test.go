package drainertest_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// An allocation can land on a node that drains: a plan was on its way, a client
// was thought lost. It must be found although nobody registered its job, and a
// drain that was about to end must not end over it.
func TestCase21_LateAllocation(t *testing.T) {
	t.Run("while others leave", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 2), "n1", "n2")
			},
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Second, land(service("api", 2), "n1", "n2")},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping
				1s      mark api[0]@n1 paced
				1s        n1: api[0]@n1 web[0]@n1 stopping
				2s        n1: api[0]@n1 stopping
				3s      end n1: complete`,
			End: `
				n1 complete
				api runs 2 of 2, 2 healthy
				web runs 2 of 2, 2 healthy
				api lowest 1 of 2, limit 1
				web lowest 1 of 2, limit 1`,
		})
	})
	t.Run("between plan and apply of the completion", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 2), "n1", "n2")
			},
			Script: []Scene{
				{0, beforeNext[completions](land(service("api", 2), "n1", "n2"))},
				{0, drain("n1", 0)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping
				2s      refused the end of n1: the drain is not done
				2s      mark api[0]@n1 paced
				2s        n1: api[0]@n1 stopping
				4s      end n1: complete`,
			End: `
				n1 complete
				api runs 2 of 2, 2 healthy
				web runs 2 of 2, 2 healthy
				api lowest 1 of 2, limit 1
				web lowest 1 of 2, limit 1`,
		})
	})
	t.Run("of a job whose others have left", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 3), "n1", "n2", "n2")
				s.place(batch("sum", 1), "n1")
			},
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Minute, landMore("web", 5, "n1")},
				{2 * time.Minute, stop("sum")},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, sum[0]@n1 batch running
				2s        n1: sum[0]@n1 batch running
				1m0s    mark web[5]@n1 paced
				1m0s      n1: web[5]@n1 stopping, sum[0]@n1 batch running
				1m2s      n1: sum[0]@n1 batch running
				2m0s    stop job sum
				2m0s      n1: sum[0]@n1 stopping
				2m2s    end n1: complete`,
			End: `
				n1 complete
				sum runs 0 of 1, 0 healthy
				web runs 4 of 4, 4 healthy
				web lowest 2 of 3, limit 2`,
		})
	})
}

// A replacement can be placed on a node that begins to drain a moment later. It
// is moved again from there, and the group's budget is one for both nodes.
func TestCase29_ReplacementOnAnotherDrainingNode(t *testing.T) {
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2")
			s.place(service("web", 2), "n1", "n1")
		},
		Script: []Scene{
			{0, drain("n1", 0)},
			{5 * time.Second, join("n3")},
			{5 * time.Second, drain("n2", 0)},
		},
		Story: `
			0s      drain n1: no deadline
			0s      mark web[0]@n1 paced
			0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
			2s        n1: web[1]@n1 waiting for room
			5s      node n3 registers
			5s      drain n2: no deadline
			5s        n2: web[0]@n2 waiting for health
			11s     mark web[1]@n1 paced
			11s       n1: web[1]@n1 stopping
			11s       n2: web[0]@n2 waiting for room
			13s     end n1: complete
			22s     mark web[0]@n2 paced
			22s       n2: web[0]@n2 stopping
			24s     end n2: complete`,
		End: `
			n1 complete
			n2 complete
			web runs 2 of 2, 2 healthy
			web lowest 1 of 2, limit 1`,
	})
}

// What stops already when a drain begins, or when leadership changes, is nobody's
// mark and nobody's registration. It is waited for all the same.
func TestCase34_AlreadyStopping(t *testing.T) {
	slowly := world.Options{Client: behaving(func(a *cluster.Allocation, b *world.Behaviour) { b.Stop = time.Minute })}
	t.Run("stopped by the servers before", func(t *testing.T) {
		run(t, Case{
			Options: slowly,
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 2, killTimeout(time.Minute)), "n1", "n2")
			},
			Script: []Scene{
				{0, stop("web")},
				{10 * time.Second, drain("n1", 0)},
			},
			Story: `
				0s      stop job web
				10s     drain n1: no deadline
				10s       n1: web[0]@n1 stopping
				1m0s    end n1: complete`,
			End: `
				n1 complete
				web runs 0 of 2, 0 healthy
				web lowest 0 of 0, limit -1`,
		})
	})
	t.Run("when the leader changes", func(t *testing.T) {
		run(t, Case{
			Options: slowly,
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 2, killTimeout(time.Minute)), "n1", "n2")
			},
			Script: []Scene{
				{0, drain("n1", 0)},
				{30 * time.Second, func(s *Stage) { s.check(s.Elect(true)) }},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping
				1m0s    end n1: complete`,
			End: `
				n1 complete
				web runs 2 of 2, 2 healthy
				web lowest 1 of 2, limit 1`,
		})
	})
}

// land places a job's first allocations past every check, as an entry of a
// scheduler that did not look would.
func land(j *cluster.Job, nodes ...cluster.NodeID) func(*Stage) {
	return func(s *Stage) {
		allocs := make([]*cluster.Allocation, len(nodes))
		for i, id := range nodes {
			allocs[i] = s.NewAlloc(j, j.TaskGroups[0].Name, i, id)
		}
		s.check(s.Place(j, allocs...))
	}
}

// landMore scales a job up, with the new allocation on a node.
func landMore(id cluster.JobID, index int, node cluster.NodeID) func(*Stage) {
	return func(s *Stage) {
		j := s.Truth().Job(key(id)).Copy()
		j.TaskGroups[0].Count++
		s.check(s.Place(j, s.NewAlloc(j, j.TaskGroups[0].Name, index, node)))
	}
}

// An allocation that ends while the entry of another job is in flight is seen at
// the next step: nothing is decided from how far a list was read.
func TestCase37_EndsWhileAnotherEntryIsInFlight(t *testing.T) {
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2", "n3")
			s.place(batch("sum", 1), "n1")
			s.place(service("web", 2), "n2", "n3")
		},
		Script: []Scene{
			{0, drain("n1", 0)},
			{time.Minute, beforeNext[marks](ended("sum.sum[0]"))},
			{time.Minute, drain("n2", 0)},
		},
		Story: `
			0s      drain n1: no deadline
			0s        n1: sum[0]@n1 batch running
			1m0s    drain n2: no deadline
			1m0s    mark web[0]@n2 paced
			1m0s    end n1: complete
			1m0s      n2: web[0]@n2 stopping
			1m2s    end n2: complete`,
		End: `
			n1 complete
			n2 complete
			sum runs 0 of 1, 0 healthy
			web runs 2 of 2, 2 healthy
			web lowest 1 of 2, limit 1`,
	})
}

// ended has the client of an allocation say that it is complete; committed.
func ended(name string) func(*Stage) {
	return func(s *Stage) {
		for a := range s.Truth().Allocs() {
			if a.Name == name && !a.ClientTerminal() {
				s.check(s.Commit(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{
					Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientComplete, At: s.Now(),
				}}}))
			}
		}
	}
}
