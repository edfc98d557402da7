package scheduler_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func disconnect(edit func(*cluster.DisconnectStrategy)) func(*cluster.Job) {
	return func(j *cluster.Job) {
		j.TaskGroups[0].Disconnect.LostAfter = time.Minute
		edit(&j.TaskGroups[0].Disconnect)
	}
}

func ineligible(c *cell, id cluster.NodeID) {
	c.write(func(txn *statestore.Txn) error { return txn.UpdateNodeEligibility(id, cluster.NodeIneligible, c.now) })
}

// Bug: the scheduler stopped the healthy original when its node returned, before its client had reported.
func TestReconcile(t *testing.T) {
	for name, one := range map[string]struct {
		version cluster.Version
		edit    func(*cluster.DisconnectStrategy)
		// away changes the cluster while the node is disconnected.
		away func(*cell, cluster.NodeID)
		want cluster.NodeID
		desc string
	}{
		"the original":                            {want: "n1", desc: cluster.DescOriginalReturned},
		"the replacement":                         {edit: func(d *cluster.DisconnectStrategy) { d.KeepReplacement = true }, want: "n2", desc: cluster.DescReconnected},
		"the original, on a node that drains":     {away: (*cell).drain, want: "n2", desc: cluster.DescReconnected},
		"the original, on an ineligible node":     {away: ineligible, want: "n2", desc: cluster.DescReconnected},
		"the original, below the cluster version": {version: cluster.VersionOfConfirmation - 1, want: "n2", desc: cluster.DescReconnected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCellOf(t, cmp.Or(one.version, cluster.MaxVersion))
			if one.edit == nil {
				one.edit = func(*cluster.DisconnectStrategy) {}
			}
			c.node("n1")
			job := c.job("web", cluster.JobService, 1, disconnect(one.edit))
			c.run()
			c.node("n2")
			c.status("n1", cluster.NodeDisconnected)
			c.run()
			must.Len(t, 2, c.wanted(job))
			if one.away != nil {
				one.away(c, "n1")
			}
			c.status("n1", cluster.NodeReady)
			if one.version == 0 {
				c.settle()
				must.Len(t, 2, c.wanted(job), must.Sprint("no plan stops one before the report"))
			}
			c.run()
			must.Eq(t, []cluster.NodeID{one.want}, nodesOf(c.wanted(job)))
			stopped := c.allocs(job, func(a *cluster.Allocation) bool { return a.Terminal() })
			must.Len(t, 1, stopped)
			must.Eq(t, one.desc, stopped[0].DesiredDescription)
			must.Eq(t, cluster.ClientComplete, stopped[0].ClientStatus)
		})
	}
}

// A replacement that has to be kept and does not run yet is waited for: until then both stay.
func TestReconcile_replacementStarts(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1, disconnect(func(*cluster.DisconnectStrategy) {}))
	n2 := c.node("n2")
	c.status(n1, cluster.NodeDisconnected)
	c.settle()
	ineligible(c, n1)
	c.status(n1, cluster.NodeReady)
	c.report(c.statusReport(c.allocs(job, on(n1))[0], cluster.ClientRunning))
	c.settle()
	must.Eq(t, []cluster.NodeID{n1, n2}, nodesOf(c.wanted(job)))
	c.report(c.statusReport(c.allocs(job, on(n2))[0], cluster.ClientRunning))
	c.settle()
	must.Eq(t, []cluster.NodeID{n2}, nodesOf(c.wanted(job)))
}

// A group has a surplus, and one of its replacements waits until it runs. Bug: the plan stopped the replacement,
// because it was pending, and nothing evaluated the surplus again.
func TestReconcile_replacementStartsInASurplus(t *testing.T) {
	for count, want := range map[int][2][]cluster.NodeID{
		1: {{"n1", "n3"}, {"n3"}},
		0: {},
	} {
		t.Run(fmt.Sprint("count ", count), func(t *testing.T) {
			c, n1, job := running(t, "web", cluster.JobService, 1, disconnect(func(*cluster.DisconnectStrategy) {}))
			n2 := c.node("n2")
			c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
			c.run()
			must.Eq(t, []cluster.NodeID{n1, n2}, nodesOf(c.wanted(job)))
			n3 := c.node("n3")
			c.status(n1, cluster.NodeDisconnected)
			c.settle()
			ineligible(c, n1)
			c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = count })
			c.status(n1, cluster.NodeReady)
			c.report(c.statusReport(c.allocs(job, on(n1))[0], cluster.ClientRunning))
			c.settle()
			must.Eq(t, want[0], nodesOf(c.wanted(job)))
			c.report(c.statusReport(c.allocs(job, on(n3))[0], cluster.ClientRunning))
			c.settle()
			must.Eq(t, want[1], nodesOf(c.wanted(job)))
		})
	}
}

// Bug: two copies of a job ran whose group must not be replaced.
func TestReconcile_neverReplaced(t *testing.T) {
	keep := func(d *cluster.DisconnectStrategy) { d.NoReplace = true }
	start := func(t *testing.T) (c *cell, job cluster.JobKey) {
		c, _, job = running(t, "web", cluster.JobService, 1, disconnect(keep))
		c.node("n2")
		c.status("n1", cluster.NodeDisconnected)
		c.run()
		must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)))
		must.Eq(t, cluster.ClientUnknown, c.wanted(job)[0].ClientStatus)
		return c, job
	}
	lose := func(t *testing.T, c *cell, job cluster.JobKey) *cluster.Allocation {
		c.status("n1", cluster.NodeDown)
		c.run()
		c.evaluate(job)
		c.run()
		must.SliceEmpty(t, c.wanted(job))
		a := c.allocs(job, on("n1"))[0]
		must.Eq(t, cluster.ClientLost, a.ClientStatus)
		must.NotEq(t, "", scheduler.Needs(c.view().WorkView(), a))
		return a
	}
	t.Run("returns", func(t *testing.T) {
		c, job := start(t)
		c.status("n1", cluster.NodeReady)
		c.run()
		must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)))
		must.Len(t, 1, c.allocs(job, func(*cluster.Allocation) bool { return true }))
	})
	t.Run("lost, and its client reports the end", func(t *testing.T) {
		c, job := start(t)
		a := lose(t, c, job)
		c.report(c.statusReport(a, cluster.ClientComplete))
		c.run()
		must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
	})
	t.Run("lost, and the job may be replaced from now on", func(t *testing.T) {
		c, job := start(t)
		lose(t, c, job)
		c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Disconnect.NoReplace = false })
		c.run()
		must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
	})
	t.Run("marked by a drain", func(t *testing.T) {
		c, job := start(t)
		c.drain("n1")
		c.mark(cluster.MarkDeadline, c.wanted(job)...)
		c.run()
		must.Eq(t, []cluster.NodeID{"n1", "n2"}, nodesOf(c.wanted(job)))
	})
	t.Run("marked, then lost", func(t *testing.T) {
		c, _, job := running(t, "web", cluster.JobService, 1, disconnect(keep))
		c.node("n2")
		c.drain("n1")
		c.mark(cluster.MarkPaced, c.wanted(job)...)
		c.status("n1", cluster.NodeDown)
		c.run()
		must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
	})
}

// A node without heartbeats is disconnected as long as one of its allocations is awaited.
func TestAwayStatus(t *testing.T) {
	for name, one := range map[string]struct {
		edit func(*cluster.Job)
		do   func(*cell, cluster.JobKey)
		want time.Duration // zero is down
	}{
		"without LostAfter":                   {edit: func(*cluster.Job) {}},
		"awaited":                             {edit: lostAfter(time.Hour), want: time.Hour},
		"not replaced, and without LostAfter": {edit: func(j *cluster.Job) { j.TaskGroups[0].Disconnect.NoReplace = true }},
		"awaited and marked": {edit: lostAfter(time.Hour), want: time.Hour, do: func(c *cell, job cluster.JobKey) {
			c.drain("n1")
			c.mark(cluster.MarkPaced, c.wanted(job)...)
		}},
		"stopped": {edit: lostAfter(time.Hour), do: func(c *cell, job cluster.JobKey) {
			c.stopJob(job, false)
			c.settle()
		}},
		"the job is gone": {edit: lostAfter(time.Hour), do: func(c *cell, job cluster.JobKey) { c.stopJob(job, true) }},
		"ended": {edit: lostAfter(time.Hour), do: func(c *cell, job cluster.JobKey) {
			c.report(c.statusReport(c.wanted(job)[0], cluster.ClientFailed))
		}},
		"disconnected before": {edit: lostAfter(time.Hour), want: 30 * time.Minute, do: func(c *cell, _ cluster.JobKey) {
			c.status("n1", cluster.NodeDisconnected)
			c.now = c.now.Add(30 * time.Minute)
		}},
		"disconnected too long": {edit: lostAfter(time.Hour), do: func(c *cell, _ cluster.JobKey) {
			c.status("n1", cluster.NodeDisconnected)
			c.now = c.now.Add(time.Hour)
		}},
		"down before": {edit: lostAfter(time.Hour), do: func(c *cell, _ cluster.JobKey) { c.status("n1", cluster.NodeDown) }},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, job := running(t, "web", cluster.JobService, 1, one.edit)
			if one.do != nil {
				one.do(c, job)
			}
			status, until := scheduler.AwayStatus(c.view().WorkView(), "n1", c.now)
			if one.want == 0 {
				must.Eq(t, cluster.NodeDown, status)
				must.True(t, until.IsZero())
				return
			}
			must.Eq(t, cluster.NodeDisconnected, status)
			must.Eq(t, one.want, until.Sub(c.now))
		})
	}
}

// A node is back while its group has no room for all its allocations. Bug: the replacement of its allocation waited for
// ever for the data of that allocation, which runs again, and held the room of another one.
func TestReconcile_replacementWaitsForData(t *testing.T) {
	t.Parallel()
	for _, keepReplacement := range []bool{false, true} {
		c := newCell(t)
		c.node("n1")
		c.node("n2", func(n *cluster.Node) { n.Resources.CPU = 200 })
		job := c.job("web", cluster.JobService, 1, disconnect(func(d *cluster.DisconnectStrategy) { d.KeepReplacement = keepReplacement }), func(j *cluster.Job) {
			j.TaskGroups[0].EphemeralDisk.Migrate = true
		})
		c.run()
		away := c.wanted(job)[0].NodeID
		c.status(away, cluster.NodeDisconnected)
		c.settle()
		c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 50 })
		c.settle()
		c.status(away, cluster.NodeReady)
		original := c.allocs(job, on(away))[0]
		c.report(c.statusReport(original, cluster.ClientRunning))
		c.settle()
		for _, a := range c.wanted(job) {
			must.NotEq(t, original.ID, a.PreviousAllocation)
		}
		must.Eq(t, cluster.DesiredRun, c.alloc(original.ID).DesiredStatus)
	}
}
