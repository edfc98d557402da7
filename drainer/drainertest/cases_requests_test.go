package drainertest_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// An empty node is drained at once, with or without a deadline, and by force too:
// nothing was forced, so it is complete.
func TestCase24_EmptyNode(t *testing.T) {
	for name, deadline := range map[string]time.Duration{"no deadline": 0, "a deadline": time.Hour, "force": force} {
		t.Run(name, func(t *testing.T) {
			what := map[time.Duration]string{0: "no deadline", time.Hour: "deadline 1h0m0s", force: "force"}[deadline]
			run(t, Case{
				Setup:  func(s *Stage) { s.nodes("n1") },
				Script: []Scene{{0, drain("n1", deadline)}},
				Story: `
					0s      drain n1: ` + what + `
					0s      end n1: complete`,
				End: `n1 complete`,
			})
		})
	}
}

// What has ended on a node is history: it is neither marked nor waited for.
func TestCase25_OnlyTerminalAllocations(t *testing.T) {
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2")
			s.put(batch("sum", 2), on("n1", hasEnded(cluster.ClientComplete)), on("n1", hasEnded(cluster.ClientFailed)))
			s.put(service("web", 1), on("n2"), on("n1", hasEnded(cluster.ClientLost)))
		},
		Script: []Scene{{0, drain("n1", 0)}},
		Story: `
			0s      drain n1: no deadline
			0s      end n1: complete`,
		End: `
			n1 complete
			sum runs 0 of 2, 0 healthy
			web runs 1 of 1, 1 healthy`,
	})
}

// hasEnded has the allocation ended, for servers and client.
func hasEnded(s cluster.ClientStatus) func(*cluster.Allocation) {
	return func(a *cluster.Allocation) {
		a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, s
		if s == cluster.ClientComplete {
			a.DesiredStatus = cluster.DesiredRun
		}
	}
}

// A request with a key that was seen changes nothing, also when its drain is over;
// one without is an update, and its deadline counts from then.
func TestCase26_TheSameRequestTwice(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2")
		s.place(batch("sum", 1), "n1")
	}
	request := func(key string) func(*Stage) {
		return func(s *Stage) { s.Drain("n1", cluster.DrainSpec{Deadline: 10 * time.Minute}, key) }
	}
	t.Run("with a key", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, request("k")}, {5 * time.Minute, request("k")}},
			Story: `
				0s      drain n1: deadline 10m0s
				0s        n1: sum[0]@n1 batch running
				5m0s    drain n1: said before
				10m0s   mark sum[0]@n1 deadline
				10m0s     n1: sum[0]@n1 stopping
				10m2s   end n1: deadline reached`,
			End: `
				n1 deadline reached
				sum runs 0 of 1, 0 healthy`,
		})
	})
	t.Run("without a key", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, request("")}, {5 * time.Minute, request("")}},
			Story: `
				0s      drain n1: deadline 10m0s
				0s        n1: sum[0]@n1 batch running
				5m0s    update the drain of n1: deadline 10m0s
				15m0s   mark sum[0]@n1 deadline
				15m0s     n1: sum[0]@n1 stopping
				15m2s   end n1: deadline reached`,
			End: `
				n1 deadline reached
				sum runs 0 of 1, 0 healthy`,
		})
	})
	t.Run("after the end", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, request("k")}, {20 * time.Minute, request("k")}, {30 * time.Minute, request("another")}},
			Story: `
				0s      drain n1: deadline 10m0s
				0s        n1: sum[0]@n1 batch running
				10m0s   mark sum[0]@n1 deadline
				10m0s     n1: sum[0]@n1 stopping
				10m2s   end n1: deadline reached
				20m0s   drain n1: said before
				30m0s   drain n1: deadline 10m0s
				30m0s   end n1: complete`,
			End: `
				n1 deadline reached
				n1 complete
				sum runs 0 of 1, 0 healthy`,
		})
	})
}

// Each group of a job has a pace of its own, and a drain waits for all of them.
func TestCase27_SeveralGroupsOneDone(t *testing.T) {
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2")
			s.put(service("web", 1, group("api", 2)), on("n1"), on("n1").of("api"), on("n1").of("api"))
		},
		Script: []Scene{{0, drain("n1", 0)}},
		Story: `
			0s      drain n1: no deadline
			0s      mark web.api[0]@n1 web[0]@n1 paced
			0s        n1: web.api[0]@n1 web[0]@n1 stopping, web.api[1]@n1 waiting for room
			2s        n1: web.api[1]@n1 waiting for room
			11s     mark web.api[1]@n1 paced
			11s       n1: web.api[1]@n1 stopping
			13s     end n1: complete`,
		End: `
			n1 complete
			web runs 1 of 1, 1 healthy
			web.api runs 2 of 2, 2 healthy
			web.api lowest 1 of 2, limit 1
			web lowest 0 of 1, limit 0`,
	})
}

// System jobs that are to be ignored are neither marked nor waited for; a sysbatch
// job and a storage plugin of type system are no system jobs in that sense.
func TestCase35_IgnoreSystemJobs(t *testing.T) {
	setup := func(s *Stage) {
		s.nodes("n1", "n2")
		s.place(service("web", 1), "n1")
		s.place(system("log"), "n1", "n2")
		s.place(system("csi", plugin), "n1", "n2")
		s.place(sysbatch("fsck"), "n1")
	}
	ignore := func(deadline time.Duration) func(*Stage) {
		return func(s *Stage) {
			s.Drain("n1", cluster.DrainSpec{Deadline: deadline, IgnoreSystemJobs: true}, "")
		}
	}
	t.Run("in their own time", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, ignore(0)}},
			Story: `
				0s      drain n1: no deadline, without system jobs
				0s      mark web[0]@n1 paced
				0s        n1: log[0]@n1 left by request, web[0]@n1 stopping, fsck[0]@n1 batch running, csi[0]@n1 waiting for stage
				2s        n1: log[0]@n1 left by request, fsck[0]@n1 batch running, csi[0]@n1 waiting for stage
				1h0m0s  mark csi[0]@n1 stage
				1h0m0s    n1: log[0]@n1 left by request, csi[0]@n1 stopping
				1h0m2s  end n1: complete`,
			End: `
				n1 complete, left: log.log[0]
				csi runs 1 of 1, 1 healthy
				fsck runs 0 of 1, 0 healthy
				log runs 2 of 1, 2 healthy
				web runs 1 of 1, 1 healthy
				web lowest 0 of 1, limit 0`,
		})
	})
	t.Run("at the deadline", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, ignore(time.Minute)}},
			Story: `
				0s      drain n1: deadline 1m0s, without system jobs
				0s      mark web[0]@n1 paced
				0s        n1: log[0]@n1 left by request, web[0]@n1 stopping, fsck[0]@n1 batch running, csi[0]@n1 waiting for stage
				2s        n1: log[0]@n1 left by request, fsck[0]@n1 batch running, csi[0]@n1 waiting for stage
				1m0s    mark fsck[0]@n1 deadline
				1m0s      n1: log[0]@n1 left by request, fsck[0]@n1 stopping, csi[0]@n1 waiting for stage
				1m2s    mark csi[0]@n1 stage
				1m2s      n1: log[0]@n1 left by request, csi[0]@n1 stopping
				1m4s    end n1: deadline reached`,
			End: `
				n1 deadline reached, left: log.log[0]
				csi runs 1 of 1, 1 healthy
				fsck runs 0 of 1, 0 healthy
				log runs 2 of 1, 2 healthy
				web runs 1 of 1, 1 healthy
				web lowest 0 of 1, limit 0`,
		})
	})
	t.Run("then not any more", func(t *testing.T) {
		run(t, Case{
			Setup:  setup,
			Script: []Scene{{0, ignore(0)}, {time.Minute, drain("n1", 0)}},
			Story: `
				0s      drain n1: no deadline, without system jobs
				0s      mark web[0]@n1 paced
				0s        n1: log[0]@n1 left by request, web[0]@n1 stopping, fsck[0]@n1 batch running, csi[0]@n1 waiting for stage
				2s        n1: log[0]@n1 left by request, fsck[0]@n1 batch running, csi[0]@n1 waiting for stage
				1m0s    update the drain of n1: no deadline
				1m0s      n1: fsck[0]@n1 batch running, csi[0]@n1 log[0]@n1 waiting for stage
				1h0m0s  mark log[0]@n1 stage
				1h0m0s    n1: log[0]@n1 stopping, csi[0]@n1 waiting for stage
				1h0m2s  mark csi[0]@n1 stage
				1h0m2s    n1: csi[0]@n1 stopping
				1h0m4s  end n1: complete`,
			End: `
				n1 complete
				csi runs 1 of 1, 1 healthy
				fsck runs 0 of 1, 0 healthy
				log runs 1 of 1, 1 healthy
				web runs 1 of 1, 1 healthy
				web lowest 0 of 1, limit 0`,
		})
	})
}

// With max_parallel 0 the owner allows no paced move. The drain holds and says so,
// until the deadline; what is not well costs nothing, and leaves one at a time.
func TestCase36_MaxParallelZero(t *testing.T) {
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("n1", "n2")
			s.put(service("web", 4, parallel(0)), on("n1"), on("n1", unhealthy), on("n1", unhealthy), on("n2"))
		},
		Script: []Scene{{0, drain("n1", time.Hour)}},
		Story: `
			0s      drain n1: deadline 1h0m0s
			0s      mark web[1]@n1 free
			0s        n1: web[1]@n1 stopping, web[0]@n1 no paced moves, web[2]@n1 waiting for room
			2s      mark web[2]@n1 free
			2s        n1: web[2]@n1 stopping, web[0]@n1 no paced moves
			4s        n1: web[0]@n1 no paced moves
			1h0m0s  mark web[0]@n1 deadline
			1h0m0s    n1: web[0]@n1 stopping
			1h0m2s  end n1: deadline reached`,
		End: `
			n1 deadline reached
			web runs 4 of 4, 4 healthy
			web lowest 2 of 4, limit 4`,
	})
}

// Nodes that are drained one right after the other are all looked after at once:
// none waits for something else to change.
func TestCase38_FiveNodesWithin100ms(t *testing.T) {
	ids := numbers(5)
	var script []Scene
	for i, id := range ids {
		script = append(script, Scene{time.Duration(i) * 20 * time.Millisecond, drain(id, 0)})
	}
	run(t, Case{
		Setup: func(s *Stage) {
			s.nodes("spare")
			s.fleet(ids, func(id cluster.NodeID) *cluster.Job { return service("web-"+cluster.JobID(id), 1) })
		},
		Script: script,
		Story: `
			0s      drain n0000: no deadline
			0s      mark web-n0000[0]@n0000 paced
			0s        n0000: web-n0000[0]@n0000 stopping
			20ms    drain n0001: no deadline
			20ms    mark web-n0001[0]@n0001 paced
			20ms      n0001: web-n0001[0]@n0001 stopping, web-n0000[0]@n0001 waiting for health
			40ms    drain n0002: no deadline
			40ms    mark web-n0002[0]@n0002 paced
			40ms      n0002: web-n0002[0]@n0002 stopping, web-n0001[0]@n0002 waiting for health
			60ms    drain n0003: no deadline
			60ms    mark web-n0003[0]@n0003 paced
			60ms      n0003: web-n0003[0]@n0003 stopping, web-n0002[0]@n0003 waiting for health
			80ms    drain n0004: no deadline
			80ms    mark web-n0004[0]@n0004 paced
			80ms      n0004: web-n0004[0]@n0004 stopping, web-n0003[0]@n0004 waiting for health
			2s      end n0000: complete
			2.02s     n0001: web-n0000[0]@n0001 waiting for health
			2.04s     n0002: web-n0001[0]@n0002 waiting for health
			2.06s     n0003: web-n0002[0]@n0003 waiting for health
			2.08s     n0004: web-n0003[0]@n0004 waiting for health
			11s     mark web-n0000[0]@n0001 paced
			11s       n0001: web-n0000[0]@n0001 stopping
			11.02s  mark web-n0001[0]@n0002 paced
			11.02s    n0002: web-n0001[0]@n0002 stopping
			11.04s  mark web-n0002[0]@n0003 paced
			11.04s    n0003: web-n0002[0]@n0003 stopping
			11.06s  mark web-n0003[0]@n0004 paced
			11.06s    n0004: web-n0003[0]@n0004 stopping
			13s     end n0001: complete
			13.02s  end n0002: complete
			13.04s  end n0003: complete
			13.06s  end n0004: complete`,
		End: `
			n0000 complete
			n0001 complete
			n0002 complete
			n0003 complete
			n0004 complete
			web-n0000 runs 1 of 1, 1 healthy
			web-n0001 runs 1 of 1, 1 healthy
			web-n0002 runs 1 of 1, 1 healthy
			web-n0003 runs 1 of 1, 1 healthy
			web-n0004 runs 1 of 1, 1 healthy
			web-n0000 lowest 0 of 1, limit 0
			web-n0001 lowest 0 of 1, limit 0
			web-n0002 lowest 0 of 1, limit 0
			web-n0003 lowest 0 of 1, limit 0
			web-n0004 lowest 0 of 1, limit 0`,
	})
}

// Ten thousand allocations leave one node in entries that are each within bounds,
// and every mark has its evaluation beside it.
func TestCase30_TenThousandAllocationsOnOneNode(t *testing.T) {
	story := func(jobs, each int) Case {
		return Case{
			Setup: func(s *Stage) {
				s.nodes("n1", "n2")
				var all []world.Placement
				for _, id := range numbers(jobs) {
					j := batch(cluster.JobID(id), each)
					p := world.Placement{Job: j}
					for i := range each {
						p.Allocs = append(p.Allocs, s.NewAlloc(j, string(id), i, "n1"))
					}
					all = append(all, p)
				}
				s.check(s.PlaceAll(all))
			},
			Script: []Scene{{0, drain("n1", force)}},
		}
	}
	t.Run("ten, three to an entry", func(t *testing.T) {
		c := story(2, 5)
		c.Options.Drainer.MaxIDsPerEntry = 3
		c.Story = `
			0s      drain n1: force
			0s      mark n0000[0]@n1 n0000[1]@n1 forced
			0s      mark n0000[2]@n1 n0000[3]@n1 forced
			0s      mark n0000[4]@n1 forced
			0s      mark n0001[0]@n1 n0001[1]@n1 forced
			0s      mark n0001[2]@n1 n0001[3]@n1 forced
			0s      mark n0001[4]@n1 forced
			0s        n1: (10) stopping
			2s      end n1: forced`
		c.End = `
			n1 forced
			n0000 runs 0 of 5, 0 healthy
			n0001 runs 0 of 5, 0 healthy`
		run(t, c)
	})
	t.Run("ten thousand", func(t *testing.T) {
		if raceEnabled {
			t.Skip("many times slower, and a world has one goroutine: there is nothing to race")
		}
		c := story(100, 100)
		c.Large = true
		c.Story = `
			0s      drain n1: force
			0s      mark (495) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (495) forced
			0s      mark (495) forced
			0s      mark (494) forced
			0s      mark (494) forced
			0s      mark (117) forced
			0s        n1: (10000) stopping
			2s      end n1: forced`
		c.End = `
			1 × forced
			100 × batch runs 0 of 100, 0 healthy`
		run(t, c)
	})
}
