package rules

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// budget is how many allocations of a group may be marked. It counts the admitted marks, so that
// each mark is judged in the state after the marks before it. It reads a number when a decision
// first needs it: a paced mark needs no slots, and a free mark no count of healthy allocations.
type budget struct {
	group *group
	// healthy is the group's count in the view; -1 until it is read. released counts the
	// healthy allocations that were marked since.
	healthy, released int
	// marked means that an allocation was marked since.
	marked bool
	// slots are the allocations that hold a slot for free and canary marks, once for each slot.
	// They include admitted marks. slotsRead means that the view's slots were added.
	slots     []cluster.AllocID
	slotsRead bool
	// slotDue is the earliest time at which a slot becomes free because a missing verdict
	// is overdue, or zero.
	slotDue time.Time
	// requested are the allocations with a requested replacement that no plan has stopped, with those of admitted
	// requests, and movedOn counts the marked ones of them. surgeRead means that those of the view were added.
	requested []cluster.AllocID
	movedOn   int
	surgeRead bool
	// standbys has -1 for the healthy standbys that marks have made active, and more for marked ones; or it is nil.
	standbys map[cluster.AllocID]int
}

func (g *group) budget() *budget { return &budget{group: g, healthy: -1} }

// healthyNow counts the group's healthy allocations on all nodes, without those that were marked
// since.
func (b *budget) healthyNow() int {
	if b.healthy < 0 {
		b.healthy = b.group.planner.view.Healthy(b.group.key)
	}
	return b.healthy - b.released
}

// room is how many more paced marks the budget allows.
func (b *budget) room() int { return b.group.pace.Room(b.healthyNow()) }

// maxSlots is how many free and canary marks may be outstanding.
func (b *budget) maxSlots() int { return max(1, b.group.pace.MaxParallel) }

// freeSlots is how many more free and canary marks the group may have.
func (b *budget) freeSlots() int {
	b.readSlots()
	return b.maxSlots() - len(b.slots)
}

// readSlots counts the slots that are taken in the view, once.
func (b *budget) readSlots() {
	if b.slotsRead {
		return
	}
	b.slotsRead = true
	for a := range b.group.planner.view.ChangingAllocs(b.group.key) {
		if a.Progress() > cluster.ProgressHoldsSlot {
			break
		}
		b.countSlots(a)
	}
}

// countSlots adds the slots that the allocation holds. A free or canary mark holds one until its
// allocation has stopped. A healthy canary that left holds one until its replacement has a
// verdict or is overdue. Until a replacement exists, the canary itself holds the slot, as long as
// an evaluation may still place a replacement.
func (b *budget) countSlots(a *cluster.Allocation) {
	if a.ClientTerminal() {
		if a.NextAllocation == "" && leftHealthy(a) && len(b.group.openEvals()) > 0 {
			b.slots = append(b.slots, a.ID)
		}
		return
	}
	if takesSlot(a.DesiredTransition.Class) {
		b.slots = append(b.slots, a.ID)
	}
	if a.PreviousAllocation != "" && b.group.lacksVerdict(a) && leftHealthy(b.group.planner.view.Alloc(a.PreviousAllocation)) {
		b.slots = append(b.slots, a.ID)
		b.slotDue = earliest(b.slotDue, b.group.overdueAt(a))
	}
}

func takesSlot(c cluster.MarkClass) bool { return c == cluster.MarkFree || c == cluster.MarkCanary }

// leftHealthy reports whether the allocation is a canary that has stopped and that a drain marked
// while it was healthy. It accepts nil.
func leftHealthy(a *cluster.Allocation) bool {
	return a != nil && a.ClientTerminal() && a.DesiredTransition.Class == cluster.MarkCanary && a.JudgedHealthy()
}

// mayProceed reports whether one more allocation of a group below its budget may be marked: the
// policy allows it, and nothing is under way that could restore the budget.
func (b *budget) mayProceed() bool {
	return b.group.planner.policy.BelowBudget == BelowBudgetProceed && b.room() <= 0 && !b.marked &&
		!hasPendingEval(b.group.planner.view, b.group.key.Job) && !b.group.anyChanging(b.group.isUnderway)
}

// admit returns why the allocation cannot be marked under the class, or counts the mark and
// returns the empty string. could is the ruling on the allocation. surge means that the mark is only a request for a
// replacement.
func (b *budget) admit(could ruling, a *cluster.Allocation, n *cluster.Node, class cluster.MarkClass, surge bool) string {
	if class == cluster.MarkProceed && could.class == cluster.MarkPaced && !could.surge && !could.replaced {
		could.class = cluster.MarkProceed
	}
	switch {
	case could.class == cluster.MarkNone:
		return "the allocation is held: " + could.hold.String()
	case could.class != class:
		return "the allocation would be marked " + could.class.String() + ", not " + class.String()
	case could.surge && !surge:
		return "the allocation needs a healthy replacement first"
	case surge && !could.surge:
		return "the allocation needs no replacement beside it"
	case could.surge || could.replaced:
		if why := b.surgeFull(could, a, n); why != "" {
			return why
		}
		b.countSurge(could, a, n)
		return ""
	case class == cluster.MarkPaced && b.room() <= 0:
		return "the group has no room"
	case class == cluster.MarkProceed && !b.mayProceed():
		return "the group may not go further below its budget"
	case takesSlot(class) && b.freeSlots() <= 0:
		return "the group has no free slot"
	}
	b.countLeaving(a, n)
	if takesSlot(class) {
		b.slots = append(b.slots, a.ID)
	}
	return ""
}

// countLeaving counts an allocation as marked. Its standbys are none from then on.
func (b *budget) countLeaving(a *cluster.Allocation, n *cluster.Node) {
	if a.Healthy(n) {
		b.released++
	}
	if a.Standby && cluster.TakesOver(a, n) {
		b.countStandby(a, +1)
	}
	for standby := range standbysOf(b.group.planner, a) {
		if cluster.TakesOver(standby, b.group.planner.Node(standby.NodeID)) {
			b.countStandby(standby, -1)
		}
	}
	b.marked = true
}

// countStandby counts a healthy standby that its original makes active, or that is marked itself. It counts as healthy
// only after the first of both, and only if the second does not follow.
func (b *budget) countStandby(a *cluster.Allocation, released int) {
	if b.standbys == nil {
		b.standbys = map[cluster.AllocID]int{}
	}
	if before := b.standbys[a.ID]; released < 0 && before == 0 || released > 0 && before < 0 {
		b.released += released
	}
	b.standbys[a.ID] += released
}
