package drainertest_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// To cancel a drain is to take back what can be taken back: marks on what still is
// to run, and plans that follow them. What stops already, stops.
func TestCase17_Cancel(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2")
		s.place(service("web", 4, parallel(2), killTimeout(time.Minute)), "n1", "n1", "n1", "n2")
	}
	t.Run("with no mark stopped", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, beforeNext[plans](commitCancel("n1"))},
				{0, drain("n1", 0)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 web[1]@n1 paced
				0s      cancel n1: 2 marks withdrawn`,
			End: `
				n1 cancelled, left: web.web[0] web.web[1] web.web[2]
				web runs 4 of 4, 4 healthy
				web lowest 2 of 4, limit 2`,
		})
	})
	t.Run("with some marks stopped", func(t *testing.T) {
		run(t, Case{
			Options: world.Options{Client: behaving(func(a *cluster.Allocation, b *world.Behaviour) {
				if a.Name == "web.web[1]" {
					b.Stop = 10 * time.Second
				}
			})},
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 0)},
				{8 * time.Second, cancel("n1")},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 web[1]@n1 paced
				0s        n1: web[0]@n1 web[1]@n1 stopping, web[2]@n1 waiting for room
				2s        n1: web[1]@n1 stopping, web[2]@n1 waiting for room
				8s      cancel n1: 0 marks withdrawn, stopping already: web[1]@n1`,
			End: `
				n1 cancelled, 1 still stopping, left: web.web[2]
				web runs 4 of 4, 4 healthy
				web lowest 2 of 4, limit 2`,
		})
	})
	t.Run("with all marks stopped", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 0)},
				{8 * time.Second, cancelEligible("n1")},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 web[1]@n1 paced
				0s        n1: web[0]@n1 web[1]@n1 stopping, web[2]@n1 waiting for room
				2s        n1: web[2]@n1 waiting for room
				8s      cancel n1: 0 marks withdrawn`,
			End: `
				n1 cancelled, left: web.web[2]
				web runs 4 of 4, 4 healthy
				web lowest 2 of 4, limit 2`,
		})
	})
	t.Run("with marks in flight", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, beforeNext[marks](commitCancel("n1"))},
				{0, drain("n1", 0)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      cancel n1: 0 marks withdrawn
				0s      refused web[0]@n1: the node does not drain
				0s      refused web[1]@n1: the node does not drain`,
			End: `
				n1 cancelled, left: web.web[0] web.web[1] web.web[2]
				web runs 4 of 4, 4 healthy
				web lowest 4 of 4, limit 2`,
		})
	})
	t.Run("with a mark of somebody else's", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.put(service("web", 3), on("n1", stoppedByHand), on("n1"), on("n2"))
			},
			Script: []Scene{
				{0, drain("n1", 0)},
				{8 * time.Second, cancel("n1")},
			},
			Story: `
				0s      drain n1: no deadline
				0s      evaluate web again
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				2s        n1: web[1]@n1 waiting for room
				8s      cancel n1: 0 marks withdrawn`,
			End: `
				n1 cancelled, left: web.web[1]
				web runs 3 of 3, 3 healthy
				web lowest 2 of 3, limit 2`,
		})
	})
}

// A drain that is cancelled and begun again is another drain. The end of the first
// is no end of the second, however late it comes.
func TestCase18_CancelAndDrainAgain(t *testing.T) {
	t.Run("before the old completion applies", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 1), "n1")
			},
			Script: []Scene{
				{0, drain("n1", 0)},
				{0, beforeNext[completions](both(commitCancel("n1"), commitDrain("n1", 0)))},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping
				2s      cancel n1: 0 marks withdrawn
				2s      drain n1: no deadline
				2s      refused the end of n1: the drain is over and another has begun
				2s      end n1: complete`,
			End: `
				n1 cancelled
				n1 complete
				web runs 1 of 1, 1 healthy
				web lowest 0 of 1, limit 0`,
		})
	})
	t.Run("before the old marks apply", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(batch("sum", 1), "n1")
			},
			Script: []Scene{
				{0, drain("n1", time.Minute)},
				{0, beforeNext[marks](both(commitCancel("n1"), commitDrain("n1", time.Minute)))},
			},
			Story: `
				0s      drain n1: deadline 1m0s
				0s        n1: sum[0]@n1 batch running
				1m0s    cancel n1: 0 marks withdrawn
				1m0s    drain n1: deadline 1m0s
				1m0s    refused sum[0]@n1: the drain is over and another has begun
				2m0s    mark sum[0]@n1 deadline
				2m0s      n1: sum[0]@n1 stopping
				2m2s    end n1: deadline reached`,
			End: `
				n1 cancelled
				n1 deadline reached
				sum runs 0 of 1, 0 healthy`,
		})
	})
}
