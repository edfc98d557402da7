package drainertest_test

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// checkReasons says what of the drainer's reasons is not true in the world: that
// each allocation that has not ended on a draining node has exactly one, and that
// it holds. It counts for itself. mayPend says that writes may have failed, so
// that some may be pending although nothing happens.
func checkReasons(w *world.World, mayPend bool) error {
	state := w.State()
	reports, pending, err := reportsOf(w)
	if err != nil {
		return err
	}
	for n := range state.DrainingNodes() {
		reasons := reports[n.ID]
		for a := range state.LiveAllocsByNode(n.ID) {
			reason, has := reasons[a.ID]
			if !has {
				return fmt.Errorf("%s on %s has no reason", a.Name, n.ID)
			}
			delete(reasons, a.ID)
			if reason == drainer.ReasonWritePending && !mayPend {
				return fmt.Errorf("%s on %s: a write is pending and nothing happens", a.Name, n.ID)
			}
			if !isTrue(state, pending, n, a, reason) {
				return fmt.Errorf("%s on %s: %q is not true", a.Name, n.ID, reason)
			}
		}
		if len(reasons) > 0 {
			return fmt.Errorf("%s: reasons for %d allocations that are not there", n.ID, len(reasons))
		}
	}
	return nil
}

// reportsOf returns the reasons on each draining node, each allocation having one,
// and how many of each group have a write pending.
func reportsOf(w *world.World) (map[cluster.NodeID]map[cluster.AllocID]drainer.Reason, map[cluster.GroupKey]int, error) {
	reports := map[cluster.NodeID]map[cluster.AllocID]drainer.Reason{}
	pending := map[cluster.GroupKey]int{}
	for n := range w.State().DrainingNodes() {
		report, draining := w.Explain(n.ID)
		if !draining {
			return nil, nil, fmt.Errorf("%s drains and has no report", n.ID)
		}
		reasons := map[cluster.AllocID]drainer.Reason{}
		for _, a := range report.Allocs {
			if _, twice := reasons[a.Alloc]; twice {
				return nil, nil, fmt.Errorf("%s on %s has two reasons", a.Alloc, n.ID)
			}
			reasons[a.Alloc] = a.Reason
			if a.Reason == drainer.ReasonWritePending {
				pending[a.Group]++
			}
		}
		reports[n.ID] = reasons
	}
	return reports, pending, nil
}

// isTrue reports whether a reason holds of an allocation on a draining node. The
// pending are those of its group with a write pending.
func isTrue(state *statestore.Snapshot, pending map[cluster.GroupKey]int, n *cluster.Node, a *cluster.Allocation, r drainer.Reason) bool {
	asked := a.DesiredTransition.Migrate || a.DesiredStatus != "run"
	away := n.Status == cluster.NodeDown || n.Status == cluster.NodeDisconnected || a.ClientStatus == "unknown"
	service := a.Job.Type == cluster.JobService
	switch r {
	case drainer.ReasonLeftByRequest:
		return n.Drain.Strategy.IgnoreSystemJobs && a.Job.Type == cluster.JobSystem && !isPlugin(a)
	case drainer.ReasonWritePending:
		return !asked
	case drainer.ReasonStopping:
		return a.DesiredStatus != "run"
	case drainer.ReasonWaitingForScheduler:
		return a.DesiredTransition.Migrate && a.DesiredStatus == "run"
	case drainer.ReasonDisconnected:
		return !asked && away
	case drainer.ReasonBatchRunning:
		return !asked && (a.Job.Type == cluster.JobBatch || a.Job.Type == cluster.JobSysBatch)
	case drainer.ReasonWaitingForStage:
		return !asked && turnOf(a) > 0 && leftBefore(state, n, a)
	}
	g := count(state, a.GroupKey())
	switch r {
	case drainer.ReasonWaitingForHealth:
		return !asked && service && !hasVerdict(a)
	case drainer.ReasonNoPacedMoves:
		return !asked && service && g.maxParallel == 0
	case drainer.ReasonWaitingForReplacement:
		return !asked && service && g.room() <= 0 && g.blocked
	case drainer.ReasonWaitingForRoom:
		return !asked && service && g.outstanding+pending[a.GroupKey()] > 0
	case drainer.ReasonBelowBudget:
		return !asked && service && g.room() <= 0 && !g.blocked
	}
	return false
}

func isPlugin(a *cluster.Allocation) bool {
	for _, g := range a.Job.TaskGroups {
		for _, t := range g.Tasks {
			if t.StoragePlugin {
				return true
			}
		}
	}
	return false
}

// turnOf is 0 for consumers, 1 for system allocations, 2 for storage plugins.
func turnOf(a *cluster.Allocation) int {
	switch {
	case isPlugin(a):
		return 2
	case a.Job.Type == cluster.JobSystem:
		return 1
	}
	return 0
}

func leftBefore(state *statestore.Snapshot, n *cluster.Node, a *cluster.Allocation) bool {
	for o := range state.LiveAllocsByNode(n.ID) {
		if turnOf(o) < turnOf(a) {
			return true
		}
	}
	return false
}

func hasVerdict(a *cluster.Allocation) bool {
	return a.DeploymentStatus != nil && a.DeploymentStatus.Healthy != nil
}

// counted is a group, counted for itself.
type counted struct {
	count, maxParallel int
	// healthy count; outstanding are on their way out, or to a verdict.
	healthy, outstanding int
	blocked              bool
}

func (c counted) room() int { return c.healthy - (c.count - c.maxParallel) }

func count(state *statestore.Snapshot, key cluster.GroupKey) counted {
	c := counted{}
	if j := state.Job(key.Job); j != nil {
		for _, g := range j.TaskGroups {
			if g.Name == key.Name && !j.Stop {
				c.count = g.Count
			}
			if g.Name == key.Name && g.Migrate != nil {
				c.maxParallel = g.Migrate.MaxParallel
			}
		}
	}
	for a := range state.AllocsByJob(key.Job) {
		live := a.ClientStatus != "complete" && a.ClientStatus != "failed" && a.ClientStatus != "lost"
		n := state.Node(a.NodeID)
		away := n == nil || n.Status == cluster.NodeDown || n.Status == cluster.NodeDisconnected
		leaving := a.DesiredTransition.Migrate || a.DesiredStatus != "run"
		switch {
		case a.TaskGroup != key.Name || !live:
		case leaving, !hasVerdict(a) && !away:
			c.outstanding++
		case a.ClientStatus == "running" && !away && *a.DeploymentStatus.Healthy && !a.DeploymentStatus.Canary:
			c.healthy++
		}
	}
	for e := range state.EvalsByJob(key.Job) {
		c.blocked = c.blocked || e.Status == cluster.EvalBlocked
	}
	return c
}
