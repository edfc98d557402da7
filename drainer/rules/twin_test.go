package rules

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// twin implements the rules a second time, in the slowest and simplest way. Every answer reads the
// fields of every row, and nothing is cached. It shares no rule with the package or with the
// methods of package cluster.
type twin struct {
	rows
	now    time.Time
	policy Policy
	// turnsIn is the world that decides the turns of stages, or nil for the world itself. For an
	// entry it is the state before the entry.
	turnsIn *fixture.World
}

// rows are plain facts of a world.
type rows struct{ *fixture.World }

func (w rows) nodeOf(a *cluster.Allocation) *cluster.Node {
	for _, n := range w.Nodes {
		if n.ID == a.NodeID {
			return n
		}
	}
	return nil
}

func (w rows) jobOf(a *cluster.Allocation) *cluster.Job {
	for _, j := range w.Jobs {
		if j.Namespace == a.Namespace && j.ID == a.JobID {
			return j
		}
	}
	return nil
}

// groupOf is the allocation's group in the current version of its job, or nil.
func (w rows) groupOf(a *cluster.Allocation) *cluster.TaskGroup {
	if j := w.jobOf(a); j != nil {
		for _, g := range j.TaskGroups {
			if g.Name == a.TaskGroup {
				return g
			}
		}
	}
	return nil
}

func (w rows) evalsOf(a *cluster.Allocation, status cluster.EvalStatus) (found []*cluster.Evaluation) {
	for _, e := range w.Evals {
		if e.Namespace == a.Namespace && e.JobID == a.JobID && e.Status == status {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *cluster.Evaluation) int { return int(a.CreateIndex) - int(b.CreateIndex) })
	return found
}

func sameGroup(a, b *cluster.Allocation) bool {
	return a.Namespace == b.Namespace && a.JobID == b.JobID && a.TaskGroup == b.TaskGroup
}

func hasEnded(a *cluster.Allocation) bool {
	return a.ClientStatus == "complete" || a.ClientStatus == "failed" || a.ClientStatus == "lost"
}

func toStop(a *cluster.Allocation) bool {
	return a.DesiredStatus == "stop" || a.DesiredStatus == "evict"
}

func isLeaving(a *cluster.Allocation) bool { return toStop(a) || a.DesiredTransition.Migrate }

func typeOf(a *cluster.Allocation) cluster.JobType {
	if a.Job == nil {
		return "service"
	}
	return a.Job.Type
}

// turnOf is 0 for consumers, 1 for system allocations, 2 for storage plugins.
func turnOf(a *cluster.Allocation) int {
	if a.Job != nil {
		for _, g := range a.Job.TaskGroups {
			for _, t := range g.Tasks {
				if t.StoragePlugin {
					return 2
				}
			}
		}
		if a.Job.Type == "system" {
			return 1
		}
	}
	return 0
}

func verdict(a *cluster.Allocation) (good, judged bool) {
	if a.DeploymentStatus == nil || a.DeploymentStatus.Healthy == nil {
		return false, false
	}
	return *a.DeploymentStatus.Healthy, true
}

func isCanary(a *cluster.Allocation) bool {
	return a.DeploymentStatus != nil && a.DeploymentStatus.Canary
}

// cannotReport: it is unknown, or its node is unreachable.
func (w rows) cannotReport(a *cluster.Allocation) bool {
	n := w.nodeOf(a)
	return a.ClientStatus == "unknown" || n == nil || n.Status == "down" || n.Status == "disconnected"
}

func (w rows) isHealthy(a *cluster.Allocation) bool {
	n := w.nodeOf(a)
	good, _ := verdict(a)
	return a.DesiredStatus == "run" && a.ClientStatus == "running" && good && !a.DesiredTransition.Migrate && !isCanary(a) && !a.Standby &&
		n != nil && n.Status != "down" && n.Status != "disconnected"
}

// mustLeave: the operator did not exclude it.
func (w rows) mustLeave(a *cluster.Allocation) bool {
	if !w.nodeOf(a).Drain.Strategy.IgnoreSystemJobs {
		return true
	}
	return turnOf(a) == 0 || turnOf(a) == 2 && !servesSystemWork(w.World, a)
}

// servesSystemWork: it serves a volume of a system allocation on its node.
func servesSystemWork(w *fixture.World, a *cluster.Allocation) bool {
	for _, o := range w.Allocs {
		if o.NodeID != a.NodeID || turnOf(o) != 1 || hasEnded(o) {
			continue
		}
		for _, g := range a.Job.TaskGroups {
			for _, t := range g.Tasks {
				if p := t.CSIPlugin; p != nil && g.Name == a.TaskGroup && p.Type != "controller" && slices.Contains(w.Plugins[o.ID], p.ID) {
					return true
				}
			}
		}
	}
	return false
}

func (w *twin) deadlineMet(n *cluster.Node) bool {
	return isMet(n.Drain.Strategy, w.now) && !w.isPaused(n)
}

func isMet(s cluster.DrainStrategy, at time.Time) bool {
	return s.Deadline < 0 || (s.Deadline > 0 && !s.ForceDeadline.After(at))
}

// isPaused: the drain is paused, or all drains were before its deadline.
func (w rows) isPaused(n *cluster.Node) bool {
	return n.Drain.Paused != nil || w.PauseOfAll != nil && !isMet(n.Drain.Strategy, w.PauseOfAll.At)
}

// Numbers of a group.

func (w rows) count(a *cluster.Allocation) int {
	g := w.groupOf(a)
	if g == nil || w.jobOf(a).Stop {
		return 0
	}
	return g.Count
}

func (w rows) maxParallel(a *cluster.Allocation) int {
	g := w.groupOf(a)
	switch {
	case g == nil:
		return 0
	case g.Migrate == nil:
		return 1
	}
	return g.Migrate.MaxParallel
}

func (w rows) healthyDeadline(a *cluster.Allocation) time.Duration {
	switch g := w.groupOf(a); {
	case g == nil:
		return 0
	case g.Migrate == nil || g.Migrate.HealthyDeadline == 0:
		return 5 * time.Minute
	default:
		return g.Migrate.HealthyDeadline
	}
}

// heldUntil is when an allocation that was healthy has been unhealthy for too long, or zero.
func (w rows) heldUntil(a *cluster.Allocation) time.Time {
	if a.DeploymentStatus == nil || a.DeploymentStatus.UnhealthySince.IsZero() {
		return time.Time{}
	}
	return a.DeploymentStatus.UnhealthySince.Add(w.healthyDeadline(a))
}

func (w *twin) due(a *cluster.Allocation) time.Time {
	grace := w.policy.HealthGrace
	if grace == 0 {
		grace = 10 * time.Second
	}
	began := a.CreateTime
	if waitsForData(a) {
		return w.now.AddDate(1000, 0, 0)
	}
	if a.DataIn != nil && a.DataIn.EndedAt.After(began) {
		began = a.DataIn.EndedAt
	}
	return began.Add(w.healthyDeadline(a)).Add(grace)
}

func (w rows) healthyIn(a *cluster.Allocation) (count int) {
	for _, b := range w.Allocs {
		if sameGroup(a, b) && w.isHealthy(b) {
			count++
		}
	}
	return count
}

func (w rows) roomIn(a *cluster.Allocation) int {
	return w.healthyIn(a) - (w.count(a) - w.maxParallel(a))
}

// verdictMissing: it has no verdict and is not overdue.
func (w *twin) verdictMissing(a *cluster.Allocation) bool {
	_, judged := verdict(a)
	return typeOf(a) == "service" && !hasEnded(a) && a.ClientStatus != "unknown" && !judged && w.now.Before(w.due(a))
}

func (w *twin) verdictToCome(a *cluster.Allocation) bool { return !isLeaving(a) && w.verdictMissing(a) }

// outstandingIn are the allocations whose mark, stop or verdict may still change the group's
// numbers.
func (w *twin) outstandingIn(a *cluster.Allocation) (ids []cluster.AllocID) {
	for _, b := range w.Allocs {
		if !sameGroup(a, b) || hasEnded(b) {
			continue
		}
		if isLeaving(b) || (!isCanary(b) && w.verdictToCome(b) && !w.cannotReport(b)) {
			ids = append(ids, b.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// slotsIn are the allocations that hold a slot for free and canary marks: each until it is
// client-terminal, a healthy canary until its replacement has a verdict or is overdue, as long as
// a replacement may come.
func (w *twin) slotsIn(a *cluster.Allocation) (holders []cluster.AllocID) {
	for _, b := range w.Allocs {
		class := b.DesiredTransition.Class
		if !sameGroup(a, b) || (class != cluster.MarkFree && class != cluster.MarkCanary) {
			continue
		}
		good, _ := verdict(b)
		switch {
		case !hasEnded(b):
			holders = append(holders, b.ID)
		case class == cluster.MarkCanary && good && b.NextAllocation == "":
			if len(w.evalsOf(b, "pending"))+len(w.evalsOf(b, "blocked")) > 0 {
				holders = append(holders, b.ID)
			}
		case class == cluster.MarkCanary && good:
			if next := w.Alloc(b.NextAllocation); next != nil && w.verdictMissing(next) {
				holders = append(holders, next.ID)
			}
		}
	}
	slices.Sort(holders)
	return holders
}

func (w *twin) freeSlotsIn(a *cluster.Allocation) int {
	return max(1, w.maxParallel(a)) - len(w.slotsIn(a))
}

// mayProceed: the policy allows one more mark in a group below its budget, because nothing is under
// way that could restore the budget.
func (w *twin) mayProceed(a *cluster.Allocation) bool {
	return w.policy.BelowBudget == BelowBudgetProceed && w.roomIn(a) <= 0 && len(w.outstandingIn(a)) == 0 && len(w.evalsOf(a, "pending")) == 0
}
