package drainer

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// group is one group as a view and a time show it: the numbers of its budget,
// and who of it could leave. Planning and re-checking judge by the same group,
// so that what is planned from a state is accepted in that state.
type group struct {
	*moment
	key cluster.GroupKey
	// job is the current version, or nil if the job is gone.
	job  *cluster.Job
	pace cluster.Pace
	// exists says that the job and the group exist in the current version.
	exists bool

	// stateHealthy counts the group's healthy allocations, wherever they are, as the view
	// does; it is read when it is first asked for, see healthy. Released counts those of
	// them that were marked since.
	stateHealthy, released int
	healthyRead            bool

	// looked says that what follows has been counted, slotted that slots have: most
	// groups have no use for these. It costs a look at what of the group is restless: to
	// judge a mark takes less.
	looked, slotted bool
	// slots are the allocations that hold a slot for free and canary marks, once
	// for each slot.
	slots []cluster.AllocID
	// slotDue is the earliest time at which a slot is free because a missing verdict
	// has become overdue, or zero.
	slotDue time.Time
	// underway are the allocations whose mark, stop or verdict is outstanding,
	// by id.
	underway []cluster.AllocID
	// staying are the allocations on draining nodes that nobody has asked to
	// leave, by id.
	staying []resident
	// waiting says that a marked allocation on a reachable draining node runs on.
	waiting bool
	// onDraining are the group's live allocations on draining nodes, by id.
	onDraining []*cluster.Allocation
	// openEvals are the evaluations of the job that are pending or blocked, by
	// creation; they are read when they are first asked for, see evals.
	openEvals []*cluster.Evaluation
	evalsRead bool
	// verdictDue is the earliest time at which a missing verdict becomes
	// overdue, or zero.
	verdictDue time.Time
}

// resident is an allocation with its node, which drains.
type resident struct {
	*cluster.Allocation
	node *cluster.Node
}

// newGroup returns a group that was not looked at.
func (m *moment) newGroup(key cluster.GroupKey) *group {
	g := &group{moment: m, key: key, job: m.view.Job(key.Job)}
	g.pace, g.exists = cluster.PaceOf(g.job, key.Name)
	return g
}

// lookAt returns a group that was looked at.
func (m *moment) lookAt(key cluster.GroupKey) *group {
	g := m.newGroup(key)
	g.look()
	return g
}

// expect makes room for so many allocations on draining nodes: there are about as many
// as there were when the group was last looked at.
func (g *group) expect(onDraining int) {
	g.staying = make([]resident, 0, onDraining)
	g.onDraining = make([]*cluster.Allocation, 0, onDraining)
}

// look counts what of the group is restless, but for slots. Nothing of it has been
// counted or marked.
func (g *group) look() {
	g.looked = true
	for a := range g.view.RestlessAllocs(g.key) {
		g.count(a)
	}
	slices.SortFunc(g.staying, func(a, b resident) int { return compareID(a.Allocation, b.Allocation) })
	slices.SortFunc(g.onDraining, compareID)
}

func compareID(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) }

// lookAtSlots counts the slots, once. What was marked before stays counted.
func (g *group) lookAtSlots() {
	if g.slotted {
		return
	}
	g.slotted = true
	for a := range g.view.RestlessAllocs(g.key) {
		if a.Unrest() > cluster.UnrestSlot {
			break
		}
		g.countSlots(a)
	}
}

// anyMoving reports whether something of the group that is not at rest is as asked. It
// looks no further than it must.
func (g *group) anyMoving(is func(a *cluster.Allocation, node *cluster.Node) bool) bool {
	for a := range g.view.RestlessAllocs(g.key) {
		if a.Unrest() > cluster.UnrestMoving {
			break
		}
		if !a.ClientTerminal() && is(a, g.node(a.NodeID)) {
			return true
		}
	}
	return false
}

// copied returns the group to be planned, which counts marks, and stays as it was.
func (g *group) copied() *group {
	c := *g
	c.slots, c.underway = slices.Clip(g.slots), slices.Clip(g.underway) // which are added to
	return &c
}

// count adds one allocation to the group's numbers.
func (g *group) count(a *cluster.Allocation) {
	if a.ClientTerminal() {
		return
	}
	node := g.node(a.NodeID)
	if g.isUnderway(a, node) {
		g.underway = append(g.underway, a.ID)
	}
	if g.awaitsVerdict(a) {
		g.verdictDue = earliest(g.verdictDue, a.DueAt(g.pace, g.policy.HealthGrace))
	}
	if !node.Draining() {
		return
	}
	g.onDraining = append(g.onDraining, a)
	if !a.Asked() {
		g.staying = append(g.staying, resident{a, node})
	}
	g.waiting = g.waiting || isWaiting(a, node)
}

// countSlots adds the slots for free and canary marks that the allocation takes:
// one while a mark of it is such and it has not stopped, and one in the place of
// a healthy canary that left, until it has a verdict or is overdue, though it has
// been asked to leave itself. While nothing has come in its place but something may,
// the canary holds that one itself.
func (g *group) countSlots(a *cluster.Allocation) {
	if a.ClientTerminal() {
		if a.NextAllocation == "" && leftHealthy(a) && len(g.evals()) > 0 {
			g.slots = append(g.slots, a.ID)
		}
		return
	}
	if class := a.DesiredTransition.Class; class == cluster.MarkFree || class == cluster.MarkCanary {
		g.slots = append(g.slots, a.ID)
	}
	if a.PreviousAllocation != "" && g.lacksVerdict(a) && leftHealthy(g.view.Alloc(a.PreviousAllocation)) {
		g.slots = append(g.slots, a.ID)
		g.slotDue = earliest(g.slotDue, a.DueAt(g.pace, g.policy.HealthGrace))
	}
}

// isWaiting reports whether the allocation is marked and runs on, on a draining node
// from which it could be stopped.
func isWaiting(a *cluster.Allocation, node *cluster.Node) bool {
	return a.Marked() && !a.ServerTerminal() && a.ClientStatus != cluster.ClientUnknown && node.Draining() && node.Reachable()
}

// leftHealthy reports whether the allocation, or nil, is a canary that a drain
// marked while it was healthy, and that has stopped.
func leftHealthy(a *cluster.Allocation) bool {
	return a != nil && a.ClientTerminal() && a.DesiredTransition.Class == cluster.MarkCanary && a.JudgedHealthy()
}

// isUnderway reports whether the group's numbers may still change by themselves
// on account of the allocation: it is on its way out, or on its way to a verdict.
func (g *group) isUnderway(a *cluster.Allocation, node *cluster.Node) bool {
	return a.Asked() || (!a.Canary() && node.Reachable() && g.awaitsVerdict(a))
}

// awaitsVerdict reports whether a verdict on the allocation's health is still to
// come in time. What is left of a group that is gone leaves without one.
func (g *group) awaitsVerdict(a *cluster.Allocation) bool {
	return g.exists && !a.Asked() && g.lacksVerdict(a)
}

// lacksVerdict reports whether the allocation has no verdict on its health and is
// not overdue.
func (g *group) lacksVerdict(a *cluster.Allocation) bool {
	return a.JobType() == cluster.JobService && a.ClientStatus != cluster.ClientUnknown &&
		!a.HasVerdict() && !a.ClientTerminal() && g.now.Before(a.DueAt(g.pace, g.policy.HealthGrace))
}

// stuck reports whether a marked allocation runs on and no evaluation is open
// that would stop it.
func (g *group) stuck() bool {
	if g.looked && !g.waiting {
		return false
	}
	return len(g.evals()) == 0 && (g.looked || g.anyMoving(isWaiting))
}

// evals are the open evaluations of the group's job, by creation.
func (g *group) evals() []*cluster.Evaluation {
	if !g.evalsRead {
		g.evalsRead = true
		g.openEvals = slices.AppendSeq(g.openEvals, g.view.OpenEvals(g.key.Job))
	}
	return g.openEvals
}

// healthy counts the group's healthy allocations, wherever they are, less those that were
// marked since. Where nothing is to be marked nobody asks.
func (g *group) healthy() int {
	if !g.healthyRead {
		g.stateHealthy, g.healthyRead = g.view.Healthy(g.key), true
	}
	return g.stateHealthy - g.released
}

// room is how many paced marks the group's budget leaves.
func (g *group) room() int { return g.pace.Room(g.healthy()) }

// freeSlots is how many free and canary marks the group may take.
func (g *group) freeSlots() int {
	g.lookAtSlots()
	return g.maxSlots() - len(g.slots)
}

func (g *group) maxSlots() int { return max(1, g.pace.MaxParallel) }

// mayProceed reports whether a group below its budget may give up one more: the
// policy says so, and nothing is on its way that could mend it.
func (g *group) mayProceed() bool {
	if g.policy.BelowBudget != Proceed || g.room() > 0 || len(g.underway) > 0 || slices.ContainsFunc(g.evals(), isPending) {
		return false
	}
	return g.looked || !g.anyMoving(g.isUnderway)
}

// ruling is what a group says of one allocation that stays on a draining node:
// the class a mark of it would have, or, with [cluster.MarkNone], why there can
// be none. Room and slots are not considered.
type ruling struct {
	class cluster.MarkClass
	hold  Reason
}

// judge says under which class the allocation could leave the node. The node is
// its own and drains.
func (g *group) judge(a *cluster.Allocation, node *cluster.Node) ruling {
	stage := a.Stage()
	switch {
	case leavesAsWhole(a, node, g.now):
		return g.judgeStage(a, node)
	case a.ClientStatus == cluster.ClientUnknown || !node.Reachable():
		return ruling{hold: ReasonDisconnected}
	case !g.exists && stage == cluster.StageConsumers:
		return ruling{class: cluster.MarkGone}
	case a.JobType() != cluster.JobService:
		return ruling{hold: ReasonBatchRunning}
	case !g.turnHasCome(node, stage):
		return ruling{hold: ReasonWaitingForStage}
	case !g.exists:
		return ruling{class: cluster.MarkGone}
	case a.Canary():
		return ruling{class: cluster.MarkCanary}
	}
	return g.judgeHealth(a, node)
}

// judgeHealth judges a service allocation whose turn has come.
func (g *group) judgeHealth(a *cluster.Allocation, node *cluster.Node) ruling {
	switch {
	case a.Healthy(node) && g.pace.MaxParallel == 0:
		return ruling{hold: ReasonNoPacedMoves}
	case a.Healthy(node):
		return ruling{class: cluster.MarkPaced}
	case a.HasVerdict() && !a.JudgedHealthy():
		return ruling{class: cluster.MarkFree}
	case !g.now.Before(a.DueAt(g.pace, g.policy.HealthGrace)):
		return ruling{class: cluster.MarkFree}
	}
	return ruling{hold: ReasonWaitingForHealth}
}

// judgeStage judges an allocation that leaves with its whole stage: at its turn,
// or when the deadline or force takes it.
func (g *group) judgeStage(a *cluster.Allocation, node *cluster.Node) ruling {
	d := node.Drain
	switch {
	case !d.Leaves(a.Stage()):
		return ruling{hold: ReasonLeftByRequest}
	case a.Stage() == cluster.StageConsumers && d.Strategy.Forced():
		return ruling{class: cluster.MarkForced}
	case a.Stage() == cluster.StageConsumers:
		return ruling{class: cluster.MarkDeadline}
	case !d.Strategy.Passed(g.now) && (a.ClientStatus == cluster.ClientUnknown || !node.Reachable()):
		return ruling{hold: ReasonDisconnected}
	case !g.turnHasCome(node, a.Stage()):
		return ruling{hold: ReasonWaitingForStage}
	}
	return ruling{class: cluster.MarkStage}
}

func hasOpenEval(v View, job cluster.JobKey) bool {
	for range v.OpenEvals(job) {
		return true
	}
	return false
}

func hasPendingEval(v View, job cluster.JobKey) bool {
	for e := range v.OpenEvals(job) {
		if isPending(e) {
			return true
		}
	}
	return false
}

func isPending(e *cluster.Evaluation) bool { return e.Status == cluster.EvalPending }

// earliest returns the earlier of two times, where zero means none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// latest returns the later of two times; zero is before any other.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
