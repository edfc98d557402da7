package rules

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Stages.

// leftOn are the allocations of a turn on a node that have to leave and have not ended.
func (w *twin) leftOn(n *cluster.Node, turn int) (left []*cluster.Allocation) {
	for _, a := range w.Allocs {
		if a.NodeID == n.ID && turnOf(a) == turn && !hasEnded(a) && w.mustLeave(a) {
			left = append(left, a)
		}
	}
	return left
}

// waitedUntil is when the wait for a leaving allocation ends after the deadline.
func (w *twin) waitedUntil(a *cluster.Allocation) time.Time {
	d := w.nodeOf(a).Drain
	from := d.Strategy.ForceDeadline
	if d.Strategy.Deadline < 0 {
		from = d.UpdatedAt
	}
	since := a.StoppedAt
	if a.DesiredTransition.Migrate {
		since = a.DesiredTransition.MarkedAt
	}
	if since.After(from) {
		from = since
	}
	margin := w.policy.StopMargin
	if margin == 0 {
		margin = 15 * time.Second
	}
	return from.Add(w.stopTime(a)).Add(margin)
}

func (w *twin) stopTime(a *cluster.Allocation) time.Duration {
	if a.Job != nil {
		for _, g := range a.Job.TaskGroups {
			if g.Name == a.TaskGroup {
				total := g.Tasks[0].KillTimeout // the generator draws no other delays of tasks
				if n := w.Node(a.NodeID); n != nil && len(g.Volumes) > 0 {
					total = saturated(total, n.VolumeAllowance)
				}
				if n := w.Node(a.NodeID); n != nil && turnOf(a) == 2 {
					total = saturated(total, n.HoldLimit)
				}
				return total
			}
		}
	}
	return 5 * time.Second
}

func saturated(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func (w *twin) stageOver(n *cluster.Node, turn int) bool {
	for _, a := range w.leftOn(n, turn) {
		switch {
		case !w.deadlineMet(n) || !isLeaving(a):
			return false
		case !w.cannotReport(a) && w.now.Before(w.waitedUntil(a)):
			return false
		}
	}
	return true
}

func (w *twin) isTurn(n *cluster.Node, turn int) bool {
	if w.turnsIn != nil {
		before := *w
		before.World, before.turnsIn = w.turnsIn, nil
		return before.isTurn(n, turn)
	}
	for earlier := range turn {
		if !w.stageOver(n, earlier) {
			return false
		}
		if turn == 2 && w.policy.PluginsAfterDeadline == PluginsAfterStop {
			for _, a := range w.leftOn(n, earlier) {
				if !w.cannotReport(a) {
					return false
				}
			}
		}
	}
	return true
}

// Classes.

// class is the class that a mark of an allocation on a draining node would have, if the allocation
// is not leaving; or MarkNone and the reason why it cannot be marked.
func (w *twin) class(a *cluster.Allocation) (cluster.MarkClass, Reason) {
	n, turn := w.nodeOf(a), turnOf(a)
	good, judged := verdict(a)
	pluginAtPace := turn == 2 && typeOf(a) == "service"
	switch {
	case !w.mustLeave(a):
		return cluster.MarkNone, ReasonLeftByRequest
	case turn == 0 && n.Drain.Strategy.Deadline < 0:
		return cluster.MarkForced, 0
	case turn == 0 && w.deadlineMet(n):
		return cluster.MarkDeadline, 0
	case !w.deadlineMet(n) && w.cannotReport(a):
		return cluster.MarkNone, ReasonDisconnected
	case turn == 0 && w.groupOf(a) == nil:
		return cluster.MarkGone, 0
	case w.isPaused(n) && !(pluginAtPace && w.groupOf(a) == nil && w.isTurn(n, turn)):
		return cluster.MarkNone, ReasonPaused
	case turn == 0 && typeOf(a) != "service":
		return cluster.MarkNone, ReasonBatchRunning
	case !w.isTurn(n, turn):
		return cluster.MarkNone, ReasonWaitingForStage
	case turn > 0 && (w.deadlineMet(n) || !pluginAtPace):
		return cluster.MarkStage, 0
	case w.groupOf(a) == nil:
		return cluster.MarkGone, 0
	case isCanary(a):
		return cluster.MarkCanary, 0
	case w.isHealthy(a) && w.maxParallel(a) == 0:
		return cluster.MarkNone, ReasonNoPacedMoves
	case w.isHealthy(a) && w.needsReplacement(a) && w.isRequested(a) && !w.isReplacedBeside(a), a.Standby && w.wouldBeHealthy(a):
		return cluster.MarkNone, ReasonWaitingForSurge
	case w.isHealthy(a):
		return cluster.MarkPaced, 0
	case judged && !good && w.now.Before(w.heldUntil(a)):
		return cluster.MarkNone, ReasonBelowBudget
	case judged && !good, !w.now.Before(w.due(a)):
		return cluster.MarkFree, 0
	}
	return cluster.MarkNone, ReasonWaitingForHealth
}

// admits: an allocation that is not leaving may be marked under the class in this state. request means that only its
// replacement is requested.
func (w *twin) admits(a *cluster.Allocation, class cluster.MarkClass, request bool) bool {
	could, _ := w.class(a)
	if could == cluster.MarkPaced && movesBeside(w, a) {
		return class == cluster.MarkPaced && w.admitsSurge(a, request)
	}
	if request {
		return false
	}
	switch class {
	case cluster.MarkNone:
		return false
	case cluster.MarkPaced:
		return could == class && w.roomIn(a) > 0
	case cluster.MarkProceed:
		return could == cluster.MarkPaced && w.mayProceed(a)
	case cluster.MarkFree, cluster.MarkCanary:
		return could == class && w.freeSlotsIn(a) > 0
	}
	return could == class
}

// holds: a mark from an entry is accepted in this state.
func (w *twin) holds(m Mark) bool {
	a := w.Alloc(m.Alloc)
	if a == nil || hasEnded(a) || isLeaving(a) || a.NodeID != m.Node ||
		a.Namespace != m.Group.Job.Namespace || a.JobID != m.Group.Job.ID || a.TaskGroup != m.Group.Name {
		return false
	}
	n := w.nodeOf(a)
	if n == nil || n.Drain == nil || n.Drain.ID != m.Drain {
		return false
	}
	switch m.Class {
	case cluster.MarkStage, cluster.MarkDeadline, cluster.MarkForced:
		if n.Drain.Revision != m.Revision {
			return false
		}
	}
	return w.admits(a, m.Class, m.Surge)
}

// withNode: marks of the class are planned with their node.
func withNode(c cluster.MarkClass) bool {
	return c == cluster.MarkStage || c == cluster.MarkDeadline || c == cluster.MarkForced
}

// Ends.

// ended: the drain of the node may end.
func (w *twin) ended(n *cluster.Node) bool {
	if w.isPaused(n) {
		return false
	}
	stopped, marked := true, true
	for turn := range 3 {
		stopped = stopped && w.stageOver(n, turn)
		for _, a := range w.leftOn(n, turn) {
			marked = marked && isLeaving(a)
		}
	}
	completion := w.policy.Completion
	switch {
	case completion == CompletionMarked:
		return marked
	case len(w.awaited(n)) > 0:
		return false
	case completion == CompletionStopped || w.deadlineMet(n):
		return stopped
	}
	for _, a := range w.Allocs {
		if a.DesiredTransition.Drain != n.Drain.ID {
			continue
		}
		if !w.isReplaced(a) || (completion == CompletionMigrated && !w.dataMoved(a)) {
			return false
		}
	}
	return stopped
}

// isReplaced: a service allocation has a replacement, waits for capacity with a blocked evaluation,
// or gets none.
func (w *twin) isReplaced(a *cluster.Allocation) bool {
	g := w.groupOf(a)
	switch {
	case typeOf(a) != "service", a.NextAllocation != "", a.DesiredTransition.MigrateDisablePlacement, g == nil, w.jobOf(a).Stop:
		return true
	case len(w.evalsOf(a, "pending")) > 0:
		return false
	}
	return len(w.evalsOf(a, "blocked")) > 0 || hasEnded(a) || toStop(a)
}

// dataMoved: there is no data to move, it has moved, or the allocation gets no replacement.
func (w *twin) dataMoved(a *cluster.Allocation) bool {
	var g *cluster.TaskGroup
	if a.Job != nil {
		for _, group := range a.Job.TaskGroups {
			if group.Name == a.TaskGroup {
				g = group
			}
		}
	}
	if g == nil || !g.EphemeralDisk.Migrate || a.ClientStatus == "lost" || a.DataOut != nil {
		return true
	}
	if a.NextAllocation != "" {
		next := w.Alloc(a.NextAllocation)
		return next == nil || next.ClientStatus != "pending"
	}
	return w.isReplaced(a) && len(w.evalsOf(a, "pending"))+len(w.evalsOf(a, "blocked")) == 0
}

// Reasons.

// reason is why an allocation is still on its draining node while these marks are in flight: the
// first that matches.
func (w *twin) reason(a *cluster.Allocation, inFlight map[cluster.AllocID]bool) Reason {
	switch {
	case hasEnded(a):
		return ReasonWaitingForData
	case !w.mustLeave(a):
		return ReasonLeftByRequest
	case inFlight[a.ID] && !isLeaving(a):
		return ReasonWritePending
	case isLeaving(a) && turnOf(a) == 2 && a.VolumeHolds != nil:
		return ReasonHeldForVolumes
	case toStop(a):
		return ReasonStopping
	case a.DesiredTransition.Migrate:
		return ReasonWaitingForScheduler
	}
	class, hold := w.class(a)
	if class == cluster.MarkNone {
		return hold
	}
	planned := w.planned(a.GroupKey(), inFlight)
	switch {
	case planned[a.ID]:
		return ReasonWritePending
	case class == cluster.MarkFree, class == cluster.MarkCanary:
		return ReasonWaitingForRoom
	}
	if movesBeside(w, a) {
		if w.isRequested(a) {
			return ReasonWaitingForRoom
		}
		return ReasonWaitingForSurge
	}
	for _, e := range w.evalsOf(a, "blocked") {
		if e.Queued == nil || e.Queued[a.TaskGroup] > 0 {
			return ReasonWaitingForReplacement
		}
	}
	if len(w.outstandingIn(a))+len(planned) > 0 {
		return ReasonWaitingForRoom
	}
	return ReasonBelowBudget
}

// planned are the allocations of a group whose marks are in flight, or would be
// planned now, or leave with their nodes now.
func (w *twin) planned(key cluster.GroupKey, inFlight map[cluster.AllocID]bool) map[cluster.AllocID]bool {
	planned := map[cluster.AllocID]bool{}
	for _, a := range w.staying(key) {
		class, _ := w.class(a)
		planned[a.ID] = inFlight[a.ID] || withNode(class)
	}
	for _, m := range planOneByOne(w.World, w.now, w.policy, key, inFlight) {
		planned[m.Alloc] = true
	}
	maps.DeleteFunc(planned, func(_ cluster.AllocID, is bool) bool { return !is })
	return planned
}

// staying are the allocations of a group on draining nodes that are not leaving, by id.
func (w *twin) staying(key cluster.GroupKey) (staying []*cluster.Allocation) {
	for _, a := range w.Allocs {
		n := w.nodeOf(a)
		if a.GroupKey() == key && n != nil && n.Drain != nil && !hasEnded(a) && !isLeaving(a) {
			staying = append(staying, a)
		}
	}
	slices.SortFunc(staying, func(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) })
	return staying
}

// after is the twin of the world with one more mark.
func (w *twin) after(m Mark) *twin {
	next := *w
	next.World = w.Clone()
	if m.Surge {
		next.Request(m.Alloc, m.Drain, w.now)
	} else {
		next.Mark(m.Alloc, m.Drain, m.Class, w.now)
	}
	return &next
}
