package client_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// copied returns a function that makes the servers start from a copy of their present data. They send all
// allocations, because they do not have what the client has read or written since.
func copied(n *node) (rollBack func()) {
	allocs, servers, index, claims := slices.Clone(n.allocs), maps.Clone(n.servers), n.index, maps.Clone(n.storage.claims)
	return func() {
		n.allocs, n.servers, n.index, n.storage.claims = slices.Clone(allocs), maps.Clone(servers), index, maps.Clone(claims)
		n.log("the servers start from an older copy")
		w := rowsOf(n)
		w.All = true
		w.Allocs = slices.DeleteFunc(w.Allocs, func(a *cluster.Allocation) bool { return !cluster.IsListed(a) })
		w.Known = nil
		for _, a := range w.Allocs {
			w.Known = append(w.Known, a.ID)
		}
		n.core.Servers(w)
	}
}

// Bug: reports that the servers lost were repeated only after a restart of the client. Drains waited for
// allocations that had ended.
func TestOlderCopy_reports(t *testing.T) {
	t.Parallel()
	runs := func(n *node) { reaches(n, "a", cluster.ClientRunning, time.Minute) }
	for name, c := range map[string]struct {
		typ           cluster.JobType
		web           script
		before, after func(*node)
		repeats       int
	}{
		"nothing": {before: runs, after: func(*node) {}},
		"a start": {before: func(*node) {}, after: runs, repeats: 1},
		"a verdict": {
			before:  func(n *node) { reaches(n, "a", cluster.ClientRunning, time.Second) },
			after:   func(n *node) { n.run(time.Minute) },
			repeats: 1,
		},
		"a restart": {web: script{runs: []ending{{2 * time.Minute, 1}, {}}}, before: runs, after: func(n *node) { n.run(2 * time.Minute) }, repeats: 1},
		"an end":    {before: runs, after: func(n *node) { ends(n, "a", time.Minute) }, repeats: 1},
		"the end of a batch job": {
			typ: cluster.JobBatch, web: script{runs: []ending{{2 * time.Minute, 0}}},
			before: runs, after: func(n *node) { reaches(n, "a", cluster.ClientComplete, 2*time.Minute) }, repeats: 1,
		},
		"a failure": {
			typ: cluster.JobBatch, web: script{runs: []ending{{2 * time.Minute, 1}}},
			before: runs, after: func(n *node) { reaches(n, "a", cluster.ClientFailed, time.Hour) }, repeats: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.scripts["web"] = c.web
			a := allocation("a", mainTask("web"))
			if c.typ != "" {
				a.Job.Type = c.typ
			}
			n.place(a)
			c.before(n)
			rollBack := copied(n)
			c.after(n)
			before, reports, starts := n.servers["a"], len(n.reports), n.ids
			for range 2 { // twice from the same copy
				rollBack()
				n.run(5 * time.Second)
				must.SliceLen(t, reports+c.repeats, n.reports)
				reports += c.repeats
				again := n.servers["a"]
				again.At = before.At
				must.Eq(t, before, again)
				must.EqOp(t, starts, n.ids, must.Sprint("no task starts again"))
			}
			n.run(time.Hour)
			must.SliceLen(t, reports, n.reports, must.Sprint("each loss repeats a report once"))
		})
	}
}

// The client has removed the record of an ended allocation. If the servers list it again, it starts like a new one.
func TestOlderCopy_forgottenAllocation(t *testing.T) {
	n := newNode(t)
	n.keepEnded = -1
	n.startCore()
	n.place(allocation("a", mainTask("web")))
	n.run(time.Minute)
	rollBack := copied(n)
	ends(n, "a", time.Minute)
	must.MapEmpty(t, n.disk)
	rollBack()
	unhealthy := func() bool { return !*n.servers["a"].Healthy }
	for end := n.boot + 5*time.Second; !unhealthy() && n.boot < end; {
		n.run(time.Millisecond)
	}
	must.True(t, unhealthy(), must.Sprint("bug: the verdict of the earlier start counted for this one"))
	reaches(n, "a", cluster.ClientRunning, time.Minute)
	must.SliceLen(t, 1, n.live("web"))
	n.run(time.Minute)
	must.True(t, *n.servers["a"].Healthy)
	must.StrContains(t, n.messages("a", "web"), "which starts again with an empty disk", must.Sprint("bug: nothing showed it"))
}

// The client restarts before the servers accept the repeated end. It keeps the record meanwhile: without it the task
// would run again.
func TestOlderCopy_recordOfALostEnd(t *testing.T) {
	n := newNode(t)
	n.keepEnded = 1
	n.startCore()
	n.place(allocation("a", mainTask("web")))
	n.place(allocation("b", mainTask("other")))
	n.run(time.Minute)
	rollBack := copied(n)
	ends(n, "a", time.Minute)
	n.silent = true
	rollBack()
	n.run(time.Second)
	n.keepEnded = -1
	n.crash()
	rollBack()
	n.run(time.Minute)
	must.MapContainsKey(t, n.disk, "a")
	n.silent = false
	reaches(n, "a", cluster.ClientComplete, time.Minute)
	must.MapNotContainsKey(t, n.disk, "a")
	must.EqOp(t, 2, n.ids)
}

// The release of a claim is lost with the end of its allocation.
func TestOlderCopy_release(t *testing.T) {
	n := newMounted(t)
	rollBack := copied(n)
	end(n, "a")
	rollBack()
	n.run(time.Minute)
	completed(n, "a")
	n.storage.empty()
}

// Bug: the move of the data was lost, and the ended allocation waited for data, or another replacement started without it.
func TestOlderCopy_moves(t *testing.T) {
	t.Parallel()
	n := newDisks(t)
	n.data.answers = []dataScript{moved("p", "p")}
	n.scripts["web"] = script{startTakes: time.Minute}
	n.place(disk("r", "p"))
	n.run(500 * time.Millisecond)
	rollBack := copied(n)
	n.run(30 * time.Second)
	before := dataIn(n, "r", cluster.DataCopied)
	rollBack()
	reaches(n, "r", cluster.ClientPending, 5*time.Second)
	must.Eq(t, before, n.servers["r"].DataIn)
	must.EqOp(t, 1, n.data.requests)

	reaches(n, "r", cluster.ClientRunning, time.Minute)
	rollBack = copied(n)
	ends(n, "r", time.Minute)
	must.True(t, n.servers["r"].DataOut.Kept())
	rollBack()
	reaches(n, "r", cluster.ClientComplete, 5*time.Second)
	must.True(t, n.servers["r"].DataOut.Kept())
}

// Bug: the servers lost the replacement that had the data. The next one on the same node started without the data,
// because it had moved to an allocation that the servers did not have.
func TestOlderCopy_dataOnTheDisk(t *testing.T) {
	t.Parallel()
	copiedTo := func(n *node, to cluster.AllocID) {
		n.index++
		n.allocs[0] = n.allocs[0].Copy()
		n.allocs[0].AllocModifyIndex, n.allocs[0].DataOut = n.index, &cluster.DataMove{State: cluster.DataCopied, Peer: to}
		n.answer()
	}
	for name, c := range map[string]struct {
		on         func(id, previous cluster.AllocID) *cluster.Allocation
		move       func(*node, func(id, previous cluster.AllocID) *cluster.Allocation)
		kept       bool
		content    string
		afterCrash bool
	}{
		"on another node": {
			on: diskOf(true),
			move: func(n *node, _ func(id, previous cluster.AllocID) *cluster.Allocation) {
				ends(n, "p", time.Minute)
				copiedTo(n, "x")
				n.run(time.Minute)
			},
			kept: true, content: "p y",
		},
		"on this node":                    {on: diskOf(true), move: movesTo("x"), kept: true, content: "p x y"},
		"on this node, without migration": {on: diskOf(false), move: movesTo("x"), content: "p x y"},
		"twice on this node":              {on: diskOf(true), move: movesTo("x", "x2"), kept: true, content: "p x x2 y"},
		"and the client restarts":         {on: diskOf(true), move: movesTo("x", "x2"), kept: true, content: "p x x2 y", afterCrash: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newDisks(t)
			n.scripts["web"] = script{ignores: true}
			n.place(c.on("p", ""))
			reaches(n, "p", cluster.ClientRunning, time.Minute)
			rollBack := copied(n)
			c.move(n, c.on)
			requests := n.data.requests
			if c.afterCrash {
				n.crash()
			}
			rollBack()
			n.run(time.Second)
			must.EqOp(t, c.kept, n.servers["p"].DataOut.Kept())
			n.place(c.on("y", "p"))
			reaches(n, "y", cluster.ClientRunning, time.Minute)
			must.EqOp(t, cluster.AllocID("p"), dataIn(n, "y", cluster.DataCopied).Peer, must.Sprint("the servers do not have the other"))
			must.EqOp(t, c.content, n.data.content("y"))
			must.EqOp(t, requests, n.data.requests)

			n.allocs = n.allocs[1:]
			n.answer()
			n.keepEnded = -1
			n.crash()
			n.answer()
			n.run(time.Minute)
			must.EqOp(t, "folders of y", n.data.left())
		})
	}
}

// diskOf returns allocations with an ephemeral disk.
func diskOf(migrate bool) func(id, previous cluster.AllocID) *cluster.Allocation {
	return func(id, previous cluster.AllocID) *cluster.Allocation {
		a := disk(id, previous)
		a.Job.TaskGroups[0].EphemeralDisk.Migrate = migrate
		return a
	}
}

// movesTo moves the data of the allocation p on its node, from one replacement to the next.
func movesTo(replacements ...cluster.AllocID) func(*node, func(id, previous cluster.AllocID) *cluster.Allocation) {
	return func(n *node, on func(id, previous cluster.AllocID) *cluster.Allocation) {
		last := cluster.AllocID("p")
		for _, id := range replacements {
			n.stop(last)
			n.place(on(id, last))
			reaches(n, id, cluster.ClientRunning, time.Minute)
			last = id
		}
	}
}

// The servers still have the replacement, which reports again that it has the data.
func TestOlderCopy_dataOfAKnownReplacement(t *testing.T) {
	n := newDisks(t)
	n.place(disk("p", ""))
	reaches(n, "p", cluster.ClientRunning, time.Second)
	n.stop("p")
	n.place(disk("x", "p"))
	n.run(time.Millisecond)
	rollBack := copied(n)
	n.run(time.Minute)
	in := dataIn(n, "x", cluster.DataCopied)
	rollBack()
	n.run(time.Minute)
	must.Eq(t, in, dataIn(n, "x", cluster.DataCopied))
	must.EqOp(t, cluster.DataCopied, n.disk["p"].DataOut.State)
}

// The servers lose the replacement just before it has the data.
func TestOlderCopy_dataThatIsPlaced(t *testing.T) {
	n := newDisks(t)
	n.place(disk("p", ""))
	reaches(n, "p", cluster.ClientRunning, time.Second)
	rollBack := copied(n)
	n.stop("p")
	n.place(disk("x", "p"))
	for n.disk["x"] == nil || n.disk["x"].DataIn.State != client.DataInReceived {
		n.run(time.Millisecond)
	}
	rollBack()
	n.run(time.Minute)
	must.EqOp(t, "p", n.data.content("x"))
	n.place(disk("y", "p"))
	n.run(time.Minute)
	dataIn(n, "y", cluster.DataCopied)
	must.EqOp(t, "p y", n.data.content("y"))
}

// The record of the replacement that had the data is lost.
func TestOlderCopy_dataOfALostRecord(t *testing.T) {
	n := newDisks(t)
	n.place(disk("p", ""))
	reaches(n, "p", cluster.ClientRunning, time.Second)
	rollBack := copied(n)
	movesTo("x")(n, diskOf(true))
	n.exit(n.live("web")[0], 0, 0)
	delete(n.disk, "x")
	n.crash()
	rollBack()
	n.run(time.Minute)
	n.place(disk("y", "p"))
	n.run(time.Minute)
	dataIn(n, "y", cluster.DataGivenUp)
	must.EqOp(t, "y", n.data.content("y"))
}
