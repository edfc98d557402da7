package drainer

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// pause pauses or resumes the drain of a node, or all drains if the node is empty.
func (h *harness) pause(id cluster.NodeID, pause bool) {
	h.commit(func(w *fixture.Cluster) {
		all := w.PauseOfAll
		switch {
		case id == "" && pause:
			w.PauseOfAll = &cluster.DrainPause{At: h.now}
			return
		case id == "":
			w.PauseOfAll = nil
		}
		for i, n := range w.Nodes {
			if !n.Draining() || id != "" && n.ID != id {
				continue
			}
			if pause {
				w.Nodes[i] = lifecycle.PauseDrain(n, all, cluster.DrainPauseUpdate{Node: id, Pause: true, At: h.now}, w.LastIndex)
			} else if since := n.Drain.PausedSince(all); !since.IsZero() {
				w.Nodes[i] = lifecycle.ResumeDrain(n, since, h.now, w.LastIndex)
			}
		}
	})
}

// marked returns the marks of the writes after the first ones, by class.
func (h *harness) marked(after int) map[cluster.AllocID]cluster.MarkClass {
	classes := map[cluster.AllocID]cluster.MarkClass{}
	for _, w := range h.raft.written()[after:] {
		if w.marks != nil {
			for _, m := range w.marks.Marks {
				classes[m.Alloc] = m.Class
			}
		}
	}
	return classes
}

// A paused drain marks nothing, its deadline does not come, and it does not end. It goes on after the resume, by the
// same leader or another, and its deadline has moved by the time of the pause.
func TestTerm_Paused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node             cluster.NodeID
		vague, newLeader bool
	}{
		"a drain":                   {node: "n1"},
		"all":                       {},
		"all, the feed reports All": {vague: true},
		"a drain, by a new leader":  {node: "n1", newLeader: true},
		"all, by a new leader":      {newLeader: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(2, 4) // a1 and a3 are on n1
			w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
			w.StartDrain("n1", time.Hour)
			h := newHarness(t, w, nil)
			h.state.vague = c.vague
			h.settle()
			must.Eq(t, map[cluster.AllocID]cluster.MarkClass{"a1": cluster.MarkPaced}, h.marked(0))
			h.advance(time.Minute)

			h.pause(c.node, true)
			h.settle()
			h.schedule() // a1 goes its way
			if c.newLeader {
				h.restart()
			}
			writes := len(h.raft.written())
			h.advance(3 * time.Hour)
			must.Eq(t, writes, len(h.raft.written()))
			must.True(t, h.wakeAt.IsZero(), must.Sprint("nothing wakes the term"))
			report, err := h.term.Explain("n1", h.now)
			must.NoError(t, err)
			must.Eq(t, [rules.ReasonCount]int{rules.ReasonPaused: 2}, report.Waiting)
			must.True(t, report.EndsBy.IsZero())

			h.pause(c.node, false)
			h.settle()
			must.Eq(t, map[cluster.AllocID]cluster.MarkClass{"a3": cluster.MarkPaced}, h.marked(writes))
			h.schedule()
			h.advance(59*time.Minute - 1)
			must.Eq(t, map[cluster.AllocID]cluster.MarkClass{"a3": cluster.MarkPaced}, h.marked(writes))
			h.advance(1)
			must.Eq(t, map[cluster.AllocID]cluster.MarkClass{"a3": cluster.MarkPaced, "b1": cluster.MarkDeadline}, h.marked(writes))
			must.True(t, h.finish())
			must.SliceEmpty(t, h.errors.messages)
		})
	}
}

// A drain whose node is empty ends after the resume only.
func TestTerm_PausedEmpty(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 2)
	w.StartDrain("n1", 0)
	h := newHarness(t, w, nil)
	h.settle()
	h.pause("n1", true)
	h.schedule()
	h.advance(time.Hour)
	must.Eq(t, []cluster.NodeID{"n1"}, h.state.draining())
	h.pause("n1", false)
	must.True(t, h.finish())
}

// A paused drain marks what its job no longer has. A forced drain runs under a pause of all.
func TestTerm_PausedMarks(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(3, 3)
	w.StartDrain("n1", 0)
	h := newHarness(t, w, nil)
	h.pause("", true)
	h.commit(func(w *fixture.Cluster) { w.StartDrain("n2", -1) })
	h.settle()
	must.Eq(t, cluster.MarkForced, h.marked(0)["a2"])
	h.commit(func(w *fixture.Cluster) { w.Jobs[0].TaskGroups[0].Name = "other" })
	h.settle()
	must.Eq(t, cluster.MarkGone, h.marked(0)["a1"])
}

// Marks and completions that were planned before a pause and are applied after it are refused, and the term plans them
// again after the resume.
func TestTerm_PausedInFlight(t *testing.T) {
	t.Parallel()
	for name, node := range map[string]cluster.NodeID{"a drain": "n1", "all": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(2, 2)
			w.StartDrain("n1", 0)
			h := newHarness(t, w, nil)
			h.run()
			must.True(t, h.raft.answer()) // the barrier
			h.run()
			must.MapLen(t, 1, h.marked(0)) // queued
			h.pause(node, true)
			h.settle()
			must.False(t, h.state.now().Alloc("a1").Marked())
			h.pause(node, false)
			h.settle()
			must.True(t, h.state.now().Alloc("a1").Marked())

			h.schedule()
			h.run()
			written := h.raft.written()
			must.NotNil(t, written[len(written)-1].completions) // queued
			h.pause(node, true)
			h.advance(time.Hour)
			must.Eq(t, []cluster.NodeID{"n1"}, h.state.draining())
			h.pause(node, false)
			must.True(t, h.finish())
		})
	}
}
