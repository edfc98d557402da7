package drainertest_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// A node with nothing but system allocations and a storage plugin has no consumers
// to wait for; still the plugin goes last, because what the system allocations
// have mounted is unmounted through it.
func TestCase07_OnlyPluginAndSystemLeft(t *testing.T) {
	t.Run("from the start", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(system("log"), "n1", "n2")
				s.place(system("csi", plugin), "n1", "n2")
			},
			Script: []Scene{{0, drain("n1", 0)}},
			Story: `
				0s      drain n1: no deadline
				0s      mark log[0]@n1 stage
				0s        n1: log[0]@n1 stopping, csi[0]@n1 waiting for stage
				2s      mark csi[0]@n1 stage
				2s        n1: csi[0]@n1 stopping
				4s      end n1: complete`,
			End: `
				n1 complete
				csi runs 1 of 1, 1 healthy
				log runs 1 of 1, 1 healthy`,
		})
	})
	t.Run("after the consumers", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 2), "n1", "n1")
				s.place(system("log"), "n1", "n2")
				s.place(system("csi", plugin), "n1", "n2")
			},
			Script: []Scene{{0, drain("n1", 0)}},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, csi[0]@n1 log[0]@n1 waiting for stage, web[1]@n1 waiting for room
				2s        n1: csi[0]@n1 log[0]@n1 waiting for stage, web[1]@n1 waiting for room
				11s     mark web[1]@n1 paced
				11s       n1: web[1]@n1 stopping, csi[0]@n1 log[0]@n1 waiting for stage
				13s     mark log[0]@n1 stage
				13s       n1: log[0]@n1 stopping, csi[0]@n1 waiting for stage
				15s     mark csi[0]@n1 stage
				15s       n1: csi[0]@n1 stopping
				17s     end n1: complete`,
			End: `
				n1 complete
				csi runs 1 of 1, 1 healthy
				log runs 1 of 1, 1 healthy
				web runs 2 of 2, 2 healthy
				web lowest 1 of 2, limit 1`,
		})
	})
	t.Run("a plugin of type service keeps its pace", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(system("log"), "n1", "n2")
				s.place(service("nfs", 2, plugin), "n1", "n1")
			},
			Script: []Scene{{0, drain("n1", 0)}},
			Story: `
				0s      drain n1: no deadline
				0s      mark log[0]@n1 stage
				0s        n1: log[0]@n1 stopping, nfs[0]@n1 nfs[1]@n1 waiting for stage
				2s      mark nfs[0]@n1 paced
				2s        n1: nfs[0]@n1 stopping, nfs[1]@n1 waiting for room
				4s        n1: nfs[1]@n1 waiting for room
				13s     mark nfs[1]@n1 paced
				13s       n1: nfs[1]@n1 stopping
				15s     end n1: complete`,
			End: `
				n1 complete
				log runs 1 of 1, 1 healthy
				nfs runs 2 of 2, 2 healthy
				nfs lowest 1 of 2, limit 1`,
		})
	})
	t.Run("at the deadline each stage has its time", func(t *testing.T) {
		run(t, Case{
			Options: world.Options{Client: behaving(func(a *cluster.Allocation, b *world.Behaviour) {
				if a.JobID == "log" {
					b.Stop = world.Never
				}
			})},
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(batch("sum", 1), "n1")
				s.place(system("log"), "n1", "n2")
				s.place(system("csi", plugin), "n1", "n2")
			},
			Script: []Scene{{0, drain("n1", time.Minute)}},
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running, csi[0]@n1 log[0]@n1 waiting for stage
				1m0s    mark sum[0]@n1 deadline
				1m0s      n1: sum[0]@n1 stopping, csi[0]@n1 log[0]@n1 waiting for stage
				1m2s    mark log[0]@n1 stage
				1m2s      n1: log[0]@n1 stopping, csi[0]@n1 waiting for stage
				1m22s   mark csi[0]@n1 stage
				1m22s     n1: csi[0]@n1 log[0]@n1 stopping
				1m24s   end n1: deadline reached, 1 still stopping`,
			End: `
				n1 deadline reached, 1 still stopping, left: log.log[0]
				csi runs 1 of 1, 1 healthy
				log runs 1 of 1, 1 healthy
				sum runs 0 of 1, 0 healthy`,
		})
	})
}

// A sysbatch job runs to its end like a batch job, on every node: a drain lets it,
// and stops it only at the deadline.
func TestCase08_SysbatchOnly(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2")
		s.place(sysbatch("fsck"), "n1", "n2")
	}
	t.Run("to its end", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, drain("n1", 2*time.Hour)}},
			Story: `
				0s      drain n1: deadline 2h0m0s
				0s        n1: fsck[0]@n1 batch running
				1h0m0s  end n1: complete`,
			End: `
				n1 complete
				fsck runs 0 of 1, 0 healthy`,
		})
	})
	t.Run("to the deadline", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, drain("n1", 10*time.Minute)}},
			Story: `
				0s      drain n1: deadline 10m0s
				0s        n1: fsck[0]@n1 batch running
				10m0s   mark fsck[0]@n1 deadline
				10m0s     n1: fsck[0]@n1 stopping
				10m2s   end n1: deadline reached`,
			End: `
				n1 deadline reached
				fsck runs 0 of 1, 0 healthy`,
		})
	})
}

// Batch work is worth most when it is let run to its end, so a drain leaves it
// alone until the deadline. Then it is stopped, and not begun again elsewhere.
func TestCase09_BatchToTheDeadline(t *testing.T) {
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2")
			s.place(batch("sum", 3), "n1", "n1", "n2")
		},
		Script: []Scene{{0, drain("n1", 10*time.Minute)}},
		Story: `
			0s      drain n1: deadline 10m0s
			0s        n1: sum[0]@n1 sum[1]@n1 batch running
			10m0s   mark sum[0]@n1 sum[1]@n1 deadline
			10m0s     n1: sum[0]@n1 sum[1]@n1 stopping
			10m2s   end n1: deadline reached`,
		End: `
			n1 deadline reached
			sum runs 0 of 3, 0 healthy`,
	})
}
