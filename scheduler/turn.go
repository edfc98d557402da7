package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
)

// turn is one step of a scheduler over one view.
type turn struct {
	*Scheduler
	world  *world
	now    time.Time
	wakeAt time.Time
	// full means that this turn cannot start more writes.
	full bool
}

// blockedQueue contains the capacity at the last attempts to place blocked evaluations.
type blockedQueue struct {
	// tried is the index of the view of each evaluation's last failed attempt.
	tried map[cluster.EvalID]uint64
	// capacity is the capacity index of the last attempt. dirty means that the attempt may
	// have left out evaluations.
	capacity uint64
	dirty    bool
	// notBefore is the earliest time of the next attempt.
	notBefore time.Time
	// roomReturned means that a plan in flight has not used the room that was kept for it. freed is an
	// index: attempts in views before it may have lacked that room.
	roomReturned bool
	freed        uint64
}

// wake requests the next step at the time or before it.
func (t *turn) wake(at time.Time) { t.wakeAt = earliest(t.wakeAt, at) }

// land forgets the writes that the view shows, and adds the placements of the others to the
// world. A view may show a plan before its answer comes. In the first turn land also finds lost and
// disconnected allocations.
func (t *turn) land() {
	for _, job := range sortedJobs(t.flights) {
		f := t.flights[job]
		if f.answered && f.answer.Outcome == raftwrite.Applied && t.world.Index() >= f.answer.Index {
			delete(t.flights, job)
			continue
		}
		if f.answered && f.answer.Outcome == raftwrite.Applied {
			t.wake(t.now.Add(t.config.RetryBase))
		}
		if f.plan != nil {
			for _, a := range f.plan.Places {
				if t.world.Alloc(a.ID) == nil {
					t.world.ahead = append(t.world.ahead, a)
				}
			}
		}
	}
	t.full = len(t.flights) >= t.config.MaxInFlight
	if !t.rebuilt {
		t.rebuilt = true
		t.blocked.dirty, t.blocked.freed = true, t.world.Index() // the plans of an earlier leader may be lost
		t.findLost()
		t.findDelayed()
	}
	if t.blocked.roomReturned {
		t.blocked.roomReturned, t.blocked.dirty = false, true
		t.blocked.freed = t.world.Index() + 1 // an attempt in this view may have lacked the room, too
	}
}

// planPending plans the jobs with pending evaluations, until the turn is full.
func (t *turn) planPending() {
	planned := make(map[cluster.JobKey]bool)
	for e := range t.world.PendingEvals() {
		if t.full {
			return
		}
		if job := e.JobKey(); !planned[job] {
			planned[job] = true
			if t.mayPlan(job) {
				t.write(t.plan(newestPending(t.world, e)))
			}
		}
	}
}

// newestPending returns the newest pending evaluation of the job of e.
func newestPending(v View, e *cluster.Evaluation) *cluster.Evaluation {
	newest := e
	for other := range v.OpenEvals(e.JobKey()) {
		if other.Status == cluster.EvalPending {
			newest = other
		}
	}
	return newest
}

// mayPlan reports whether the job has no write in flight and needs not wait.
func (t *turn) mayPlan(job cluster.JobKey) bool {
	if t.flights[job] != nil {
		return false
	}
	until, waits := t.retries.waits(job, t.now)
	if waits {
		t.wake(until)
	}
	return !waits
}

// plan returns the plan of an evaluation. It notes the next evaluation that the job needs.
func (t *turn) plan(e *cluster.Evaluation) *cluster.Plan {
	plan, again := schedule(t.world, e, t.now, t.config.IDs, t.config.MaxPlanParts+1) // one more part than written shows that parts are left
	t.setNextEval(e.JobKey(), again)
	return plan
}

// write begins the plan's write. It reports false if the applier has no room.
func (t *turn) write(plan *cluster.Plan) (queued bool) {
	part := firstPart(plan, t.config.MaxPlanParts)
	f := &flight{job: plan.Eval.JobKey(), plan: part}
	queued = t.config.Applier.ApplyPlan(part, t.reply(f))
	t.begin(f, queued)
	return queued
}

// begin notes a started write, or that the applier has no room.
func (t *turn) begin(f *flight, queued bool) {
	if !queued {
		t.full = true
		t.wake(t.now.Add(t.config.RetryBase))
		return
	}
	t.flights[f.job] = f
	t.full = len(t.flights) >= t.config.MaxInFlight
}

// planBlocked tries the blocked evaluations again if capacity was added since their last
// attempt. It does not write a plan that changes nothing.
func (t *turn) planBlocked() {
	capacity := max(t.world.CapacityIndex(), t.blocked.freed)
	if !t.blocked.dirty && capacity <= t.blocked.capacity {
		return
	}
	t.blocked.notBefore = noLater(t.blocked.notBefore, t.now.Add(t.config.BlockedInterval))
	if t.full || t.now.Before(t.blocked.notBefore) {
		t.blocked.dirty = true
		if !t.full {
			t.wake(t.blocked.notBefore)
		}
		return
	}
	tried := make(map[cluster.EvalID]uint64)
	t.blocked.dirty = false
	attempted := false
	for e := range t.world.BlockedEvals() {
		since := max(e.SnapshotIndex, t.blocked.tried[e.ID])
		switch {
		case capacity <= since:
			tried[e.ID] = since
		case t.full || !t.mayPlan(e.JobKey()):
			t.blocked.dirty = true
		default:
			attempted = true
			if plan := t.plan(e); isIdle(plan, e) {
				tried[e.ID] = plan.SnapshotIndex
			} else if !t.write(plan) {
				t.blocked.dirty = true
			}
		}
	}
	// freed may be an index that the next entry will have. That entry may bring capacity.
	t.blocked.tried, t.blocked.capacity = tried, min(capacity, t.world.Index())
	if !t.blocked.dirty && len(t.flights) == 0 { // a plan in flight may block in a view that lacked the room
		t.blocked.freed = 0
	}
	if attempted {
		t.blocked.notBefore = t.now.Add(t.config.BlockedInterval)
	}
}

// isIdle reports whether the plan of a blocked evaluation changes nothing.
func isIdle(p *cluster.Plan, e *cluster.Evaluation) bool {
	return len(p.Stops)+len(p.Places)+len(p.Answers) == 0 && p.Eval.Status == e.Status && maps.Equal(p.Eval.Queued, e.Queued)
}

// setNextEval sets the next evaluation that the job needs.
func (t *turn) setNextEval(job cluster.JobKey, next nextEval) {
	if next.at.IsZero() {
		delete(t.nextEval, job)
		return
	}
	t.nextEval[job] = next
}

// addNextEval sets an evaluation that the job needs, unless it needs an earlier one.
func (t *turn) addNextEval(job cluster.JobKey, next nextEval) {
	t.setNextEval(job, t.nextEval[job].or(next))
}

// findLost finds allocations on nodes that are down, gone or disconnected. An earlier
// scheduler may not have handled them.
func (t *turn) findLost() {
	for id := range t.world.OccupiedNodes() {
		switch n := t.world.Node(id); {
		case isDisconnected(n):
			t.findDisconnected(n)
		case isDead(n):
			t.findForgotten(id)
		}
	}
}

// findDisconnected notes when the node's allocations become lost.
func (t *turn) findDisconnected(n *cluster.Node) {
	for a := range t.world.LiveAllocsByNode(n.ID) {
		job := jobView{view: t.world, job: t.world.Job(a.JobKey()), now: t.now}
		if g := job.group(a); g != nil && a.ClientStatus == cluster.ClientUnknown && !a.ServerTerminal() {
			t.addNextEval(a.JobKey(), nextEval{at: lostAt(g, a, n), trigger: cluster.TriggerNodeUpdate})
		}
	}
}

// findForgotten schedules an evaluation for each job that has allocations on a node that is
// down or gone, and no pending evaluation.
func (t *turn) findForgotten(id cluster.NodeID) {
	for a := range t.world.LiveAllocsByNode(id) {
		if !t.isPending(a.JobKey()) {
			t.setNextEval(a.JobKey(), nextEval{at: t.now, trigger: cluster.TriggerNodeUpdate})
		}
	}
}

// findDelayed notes when replacements are due. An earlier scheduler may have been waiting for them, or may
// not have been there when they became due.
func (t *turn) findDelayed() {
	for j := range t.world.Jobs() {
		job := jobView{view: t.world, job: j, now: t.now}
		if !slices.ContainsFunc(j.TaskGroups, func(g *cluster.TaskGroup) bool { return g != nil && g.Reschedule != nil }) {
			continue
		}
		for a := range t.world.UnconcludedAllocs(j.Key()) {
			switch r := awaited(job, a); {
			case r.Waits(t.now):
				t.addNextEval(j.Key(), retryOf(r))
			case r != nil && !t.isPending(j.Key()):
				t.addNextEval(j.Key(), nextEval{at: t.now, trigger: cluster.TriggerAllocFailure})
			}
		}
	}
}

// isPending reports whether the job has a pending evaluation. A blocked evaluation does not
// count: it waits for capacity, and a lost node adds none.
func (t *turn) isPending(job cluster.JobKey) bool {
	for e := range t.world.OpenEvals(job) {
		if e.Status == cluster.EvalPending {
			return true
		}
	}
	return false
}

// evaluateDue creates an evaluation for each job that needs one by now. Jobs with a pending evaluation need none: this turn or a later one plans them.
func (t *turn) evaluateDue() {
	for _, job := range sortedJobs(t.nextEval) {
		next := t.nextEval[job]
		switch j := t.world.Job(job); {
		case !next.due(t.now):
			t.wake(next.at)
		case j == nil:
			delete(t.nextEval, job)
		case t.full || !t.mayPlan(job):
		default:
			f := &flight{job: job}
			evals := []*cluster.Evaluation{JobEval(j, next.trigger, t.now, t.config.IDs.Eval())}
			t.begin(f, t.config.Applier.UpsertEvals(evals, t.reply(f)))
		}
	}
}
