package drainertest_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A group that is no longer in its job has no owner to ask for its pace: what is
// left of it goes at once, and the drain waits for no budget that nobody keeps.
func TestCase10_GroupRemoved(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2")
		s.put(service("shop", 1, group("cart", 3)), on("n1"),
			on("n1").of("cart"), on("n1").of("cart"), on("n1").of("cart"))
	}
	removed := func(j *cluster.Job) { j.TaskGroups = j.TaskGroups[:1] }
	t.Run("mid-drain", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Second, edit("shop", removed)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark shop.cart[0]@n1 shop[0]@n1 paced
				0s        n1: shop.cart[0]@n1 shop[0]@n1 stopping, shop.cart[1]@n1 shop.cart[2]@n1 waiting for room
				1s      job shop, shop count 1 max_parallel 1
				1s      mark shop.cart[1]@n1 shop.cart[2]@n1 gone
				1s        n1: shop.cart[0]@n1 shop.cart[1]@n1 shop.cart[2]@n1 shop[0]@n1 stopping
				2s        n1: shop.cart[1]@n1 shop.cart[2]@n1 stopping
				3s      end n1: complete`,
			End: `
				n1 complete
				shop runs 1 of 1, 1 healthy
				shop.cart lowest 2 of 3, limit 2
				shop lowest 0 of 1, limit 0`,
		})
	})
	t.Run("between plan and apply", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, beforeNext[marks](commitEdit("shop", removed))},
				{0, drain("n1", 0)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      job shop, shop count 1 max_parallel 1
				0s      mark shop[0]@n1 paced
				0s      refused shop.cart[0]@n1: the allocation would be marked gone, not paced
				0s        n1: shop.cart[0]@n1 shop.cart[1]@n1 shop.cart[2]@n1 shop[0]@n1 stopping
				2s      end n1: complete`,
			End: `
				n1 complete
				shop runs 1 of 1, 1 healthy
				shop.cart lowest 3 of 3, limit 2
				shop lowest 0 of 1, limit 0`,
		})
	})
}

// A purge takes the records of a job that may still be running. The drain is about
// what is recorded: it ends, and its own record says what nobody can see any more.
func TestCase11_JobPurged(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2")
		s.place(service("web", 3), "n1", "n1", "n2")
	}
	t.Run("mid-drain", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Second, purge("web")},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				1s      purge job web
				1s      end n1: complete`,
			End: `
				n1 complete, 2 purged while running`,
		})
	})
	t.Run("between plan and apply", func(t *testing.T) {
		run(t, Case{
			Setup: setup,
			Script: []Scene{
				{0, beforeNext[marks](commitPurge("web"))},
				{0, drain("n1", 0)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      purge job web
				0s      refused a000001: the allocation is gone
				0s      end n1: complete`,
			End: `
				n1 complete, 2 purged while running`,
		})
	})
}

// A stopped job wants nothing to run any more, so nothing of it has to be spared.
func TestCase12_JobStopped(t *testing.T) {
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2")
			s.place(service("web", 3), "n1", "n1", "n2")
		},
		Script: []Scene{
			{0, drain("n1", 0)},
			{time.Second, stop("web")},
		},
		Story: `
			0s      drain n1: no deadline
			0s      mark web[0]@n1 paced
			0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
			1s      stop job web
			1s      mark web[1]@n1 paced
			1s        n1: web[0]@n1 web[1]@n1 stopping
			2s        n1: web[1]@n1 stopping
			3s      end n1: complete`,
		End: `
			n1 complete
			web runs 0 of 3, 0 healthy
			web lowest 2 of 3, limit 2`,
	})
}

// The budget is the one of the job as it is when a mark is applied, not as it was
// when the drain began or the mark was planned.
func TestCase13_ScaledMidDrain(t *testing.T) {
	t.Run("up", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 2), "n1", "n1")
			},
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Second, edit("web", counts(4))},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 waiting for room
				1s      job web, web count 4 max_parallel 1
				2s        n1: web[1]@n1 waiting for room
				12s     mark web[1]@n1 paced
				12s       n1: web[1]@n1 stopping
				14s     end n1: complete`,
			End: `
				n1 complete
				web runs 4 of 4, 4 healthy
				web lowest 1 of 4, limit 3`,
		})
	})
	t.Run("down", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 4), "n1", "n1", "n1", "n2")
			},
			Script: []Scene{
				{0, drain("n1", 0)},
				{time.Second, edit("web", counts(2))},
			},
			Story: `
				0s      drain n1: no deadline
				0s      mark web[0]@n1 paced
				0s        n1: web[0]@n1 stopping, web[1]@n1 web[2]@n1 waiting for room
				1s      job web, web count 2 max_parallel 1
				1s      mark web[1]@n1 web[2]@n1 paced
				1s        n1: web[0]@n1 web[1]@n1 web[2]@n1 stopping
				2s        n1: web[1]@n1 web[2]@n1 stopping
				3s      end n1: complete`,
			End: `
				n1 complete
				web runs 2 of 2, 2 healthy
				web lowest 3 of 4, limit 3`,
		})
	})
	t.Run("the limit lowered between plan and apply", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 3, parallel(3)), "n1", "n1", "n1")
			},
			Script: []Scene{
				{0, beforeNext[marks](commitEdit("web", parallel(1)))},
				{0, drain("n1", 0)},
			},
			Story: `
				0s      drain n1: no deadline
				0s      job web, web count 3 max_parallel 1
				0s      mark web[0]@n1 paced
				0s      refused web[1]@n1: the group has no room
				0s      refused web[2]@n1: the group has no room
				0s        n1: web[0]@n1 stopping, web[1]@n1 web[2]@n1 waiting for room
				2s        n1: web[1]@n1 web[2]@n1 waiting for room
				11s     mark web[1]@n1 paced
				11s       n1: web[1]@n1 stopping, web[2]@n1 waiting for room
				13s       n1: web[2]@n1 waiting for room
				22s     mark web[2]@n1 paced
				22s       n1: web[2]@n1 stopping
				24s     end n1: complete`,
			End: `
				n1 complete
				web runs 3 of 3, 3 healthy
				web lowest 2 of 3, limit 2`,
		})
	})
	t.Run("the limit lowered to nothing between plan and apply", func(t *testing.T) {
		run(t, Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				s.place(service("web", 2, parallel(2)), "n1", "n1")
			},
			Script: []Scene{
				{0, beforeNext[marks](commitEdit("web", parallel(0)))},
				{0, drain("n1", time.Minute)},
			},
			Story: `
				0s      drain n1: deadline 1m0s
				0s      job web, web count 2 max_parallel 0
				0s      refused web[0]@n1: the allocation is held: no paced moves
				0s      refused web[1]@n1: the allocation is held: no paced moves
				0s        n1: web[0]@n1 web[1]@n1 no paced moves
				1m0s    mark web[0]@n1 web[1]@n1 deadline
				1m0s      n1: web[0]@n1 web[1]@n1 stopping
				1m2s    end n1: deadline reached`,
			End: `
				n1 deadline reached
				web runs 2 of 2, 2 healthy
				web lowest 0 of 2, limit 2`,
		})
	})
}
