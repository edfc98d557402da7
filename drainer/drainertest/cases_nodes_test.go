package drainertest_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A node can leave the cluster, or only its servers' sight, in the middle of its
// drain. What ran on it is lost, or out of touch, and the drain must neither wait
// for it for ever nor count on it.
func TestCase14_NodeLeavesMidDrain(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2")
		s.place(service("web", 3), "n1", "n1", "n2")
	}
	t.Run("deleted", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Second, remove("n1")},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				1s      delete n1`,
			End: `
				n1 node gone, 2 still stopping
				web runs 3 of 3, 3 healthy
				web lowest 1 of 3, limit 2`,
		})
	})
	t.Run("registered again", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Second, join("n1")},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				1s      node n1 registers
				2s        n1: web[1]@n1 waiting for room
				11s     mark web[1]@n1 paced
				11s       n1: web[1]@n1 stopping
				13s     end n1: complete`,
			End: `
				n1 complete
				web runs 3 of 3, 3 healthy
				web lowest 2 of 3, limit 2`,
		})
	})
	t.Run("deleted and registered again", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Second, remove("n1")},
				{5 * time.Second, join("n1")},
				{time.Minute, drain("n1", 0)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				1s      delete n1
				5s      node n1 registers
				1m0s    drain n1: no deadline
				1m0s    end n1: complete`,
			End: `
				n1 node gone, 2 still stopping
				n1 complete
				web runs 3 of 3, 3 healthy
				web lowest 1 of 3, limit 2`,
		})
	})
	t.Run("down", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Second, status("n1", cluster.NodeDown)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				1s      node n1 down
				1s      end n1: complete`,
			End: `
				n1 complete
				web runs 3 of 3, 3 healthy
				web lowest 1 of 3, limit 2`,
		})
	})
	patient := func(s *Stage) {
		s.nodes("n1", "n2")
		s.place(service("web", 3, lostAfter(time.Hour)), "n1", "n1", "n2")
	}
	t.Run("disconnected for a while", func(t *testing.T) {
		run(t, Case{
			Setup: patient,
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Second, status("n1", cluster.NodeDisconnected)},
				{2 * time.Minute, status("n1", cluster.NodeReady)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				1s      node n1 disconnected
				1s        n1: web[0]@n1 stopping, web[1]@n1 disconnected
				2m0s    node n1 ready
				2m0s      n1: web[1]@n1 stopping
				2m2s    end n1: complete`,
			End: `
				n1 complete
				web runs 3 of 3, 3 healthy
				web lowest 1 of 3, limit 2`,
		})
	})
	t.Run("disconnected past the deadline", func(t *testing.T) {
		run(t, Case{
			Setup: patient,
			Script: []Scene{
				{0, drain("n1", time.Minute)},
				{10 * time.Second, status("n1", cluster.NodeDisconnected)},
			},
			Story: `
				0s      drain n1: deadline 1m0s
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				2s        n1: web[1]@n1 waiting for room
				10s     node n1 disconnected
				10s       n1: web[1]@n1 disconnected
				1m0s    mark web[1]@n1 deadline
				1m0s    end n1: deadline reached, 1 still stopping`,
			End: `
				n1 deadline reached, 1 still stopping
				web runs 3 of 3, 3 healthy
				web lowest 1 of 3, limit 2`,
		})
	})
}

// A node that does not drain counts too: what runs there is healthy only while the
// node is in touch. Its return is news for the groups on it, whoever else hears.
func TestCase14_ANeighboursNodeReturns(t *testing.T) {
	unnoticed := func(id cluster.NodeID, to cluster.NodeStatus) func(*Stage) {
		return func(s *Stage) { s.Propose(&shims.NodeUpdateStatus{At: s.Clock(), Node: id, Status: to}, nil) }
	}
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2")
			s.place(service("web", 2, lostAfter(time.Hour)), "n1", "n2")
		},
		Script: []Scene{
			{0, unnoticed("n2", cluster.NodeDisconnected)},
			{time.Second, drain("n1", 0)},
			{time.Minute, unnoticed("n2", cluster.NodeReady)},
		},
		Story: `
			0s      node n2 disconnected
			1s      drain n1: no deadline
			1s        n1: web[0]@n1 below budget
			1m0s    node n2 ready
			1m0s    mark web[0]@n1 paced
			1m0s      n1: web[0]@n1 stopping
			1m2s    end n1: complete`,
		End: `
			n1 complete
			web runs 2 of 2, 2 healthy
			web lowest 1 of 2, limit 1`,
	})
}

// An allocation whose node does not exist runs nowhere: it gives its group no room,
// and nobody tries to move it.
func TestCase15_AllocationOnANodeThatDoesNotExist(t *testing.T) {
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2")
			s.place(service("web", 2), "n1", "n9")
		},
		Script: []Scene{
			{0, drain("n1", 0)},
			{time.Minute, edit("web")}, // the scheduler looks, and finds it lost
		},
		Story: `
			0s      drain n1: no deadline
			0s        n1: web[0]@n1 below budget
			1m0s    job web, web count 2 max_parallel 1
			1m0s      n1: web[0]@n1 waiting for room
			1m11s   mark web[0]@n1 paced
			1m11s     n1: web[0]@n1 stopping
			1m13s   end n1: complete`,
		End: `
			n1 complete
			web runs 2 of 2, 2 healthy
			web lowest 1 of 2, limit 1`,
	})
}

// A hundred drains end at one deadline, and one of the nodes is not there any more
// when it comes. One missing node must not cost the ninety-nine others their end.
func TestCase19_AHundredNodesAtOneDeadline(t *testing.T) {
	story := func(ids []cluster.NodeID, gone cluster.NodeID) Case {
		return Case{
			Setup: func(s *Stage) {
				s.fleet(ids, func(id cluster.NodeID) *cluster.Job { return batch("sum-"+cluster.JobID(id), 1) })
			},
			Script: []Scene{
				{0, commitDrains(time.Minute, ids...)},
				{0, beforeNext[marks](func(s *Stage) { s.commitRemove(gone) })},
			},
		}
	}
	t.Run("three nodes", func(t *testing.T) {
		c := story(numbers(3), "n0001")
		c.Story = `
			0s      drain n0000: deadline 1m0s
			0s      drain n0001: deadline 1m0s
			0s      drain n0002: deadline 1m0s
			0s        n0000: sum-n0000[0]@n0000 batch running
			0s        n0001: sum-n0001[0]@n0001 batch running
			0s        n0002: sum-n0002[0]@n0002 batch running
			1m0s    delete n0001
			1m0s    mark sum-n0000[0]@n0000 sum-n0002[0]@n0002 deadline
			1m0s    refused sum-n0001[0]@n0001: the node is gone
			1m0s      n0000: sum-n0000[0]@n0000 stopping
			1m0s      n0002: sum-n0002[0]@n0002 stopping
			1m2s    end n0000: deadline reached
			1m2s    end n0002: deadline reached`
		c.End = `
			n0000 deadline reached
			n0001 node gone, 1 still stopping, left: sum-n0001.sum-n0001[0]
			n0002 deadline reached
			sum-n0000 runs 0 of 1, 0 healthy
			sum-n0001 runs 1 of 1, 0 healthy
			sum-n0002 runs 0 of 1, 0 healthy`
		run(t, c)
	})
	t.Run("a hundred nodes", func(t *testing.T) {
		c := story(numbers(100), "n0050")
		c.Large = true
		c.Story = `
			0s      drain 100 nodes: deadline 1m0s
			0s        100 nodes: (1) batch running
			1m0s    delete n0050
			1m0s    mark (99) deadline
			1m0s    refused (1): the node is gone
			1m0s      99 nodes: (1) stopping
			1m2s    end 99 nodes: deadline reached`
		c.End = `
			99 × deadline reached
			1 × node gone, 1 still stopping, left: sum-n0050.sum-n0050[0]
			99 × batch runs 0 of 1, 0 healthy
			1 × batch runs 1 of 1, 0 healthy`
		run(t, c)
	})
}

// With every node draining nothing can be placed anywhere. Groups keep what they
// have until the deadline takes it, and get it back when nodes return.
func TestCase20_AllNodesAtOnce(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2", "n3")
		s.place(service("web", 3), "n1", "n2", "n3")
		s.place(system("log"), "n1", "n2", "n3")
	}
	t.Run("with a deadline", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, commitDrains(time.Minute, "n1", "n2", "n3")},
				{2 * time.Minute, eligible("n2")},
			},
			Story: `
				0s      drain n1: deadline 1m0s
				0s      drain n2: deadline 1m0s
				0s      drain n3: deadline 1m0s
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, log[0]@n1 waiting for stage
				0s        n2: log[1]@n2 waiting for stage, web[1]@n2 waiting for replacement
				0s        n3: log[2]@n3 waiting for stage, web[2]@n3 waiting for replacement
				2s      mark log[0]@n1 stage
				2s        n1: log[0]@n1 stopping
				4s      end n1: complete
				1m0s    mark web[1]@n2 web[2]@n3 deadline
				1m0s      n2: web[1]@n2 stopping, log[1]@n2 waiting for stage
				1m0s      n3: web[2]@n3 stopping, log[2]@n3 waiting for stage
				1m2s    mark log[1]@n2 log[2]@n3 stage
				1m2s      n2: log[1]@n2 stopping
				1m2s      n3: log[2]@n3 stopping
				1m4s    end n2: deadline reached
				1m4s    end n3: deadline reached
				2m0s    node n2 eligible`,
			End: `
				n1 complete
				n2 deadline reached
				n3 deadline reached
				log runs 1 of 1, 1 healthy
				web runs 3 of 3, 3 healthy
				web lowest 0 of 3, limit 2`,
		})
	})
	t.Run("without one", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, commitDrains(0, "n1", "n2", "n3")},
				{2 * time.Minute, cancelEligible("n2")},
			},
			Story: `
				0s      drain n1: no deadline
				0s      drain n2: no deadline
				0s      drain n3: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, log[0]@n1 waiting for stage
				0s        n2: log[1]@n2 waiting for stage, web[1]@n2 waiting for replacement
				0s        n3: log[2]@n3 waiting for stage, web[2]@n3 waiting for replacement
				2s      mark log[0]@n1 stage
				2s        n1: log[0]@n1 stopping
				4s      end n1: complete
				2m0s    cancel n2: 0 marks withdrawn
				2m0s      n3: log[2]@n3 waiting for stage, web[2]@n3 waiting for room
				2m11s   mark web[2]@n3 paced
				2m11s     n3: web[2]@n3 stopping, log[2]@n3 waiting for stage
				2m13s   mark log[2]@n3 stage
				2m13s     n3: log[2]@n3 stopping
				2m15s   end n3: complete`,
			End: `
				n1 complete
				n2 cancelled, left: log.log[1] web.web[1]
				n3 complete
				log runs 1 of 1, 1 healthy
				web runs 3 of 3, 3 healthy
				web lowest 2 of 3, limit 2`,
		})
	})
}
