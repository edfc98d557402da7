package scheduler

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

// Refusal is the reason why a part of a plan was not applied.
type Refusal struct {
	// Alloc is the allocation to stop or to place, or empty if the whole plan was
	// refused.
	Alloc cluster.AllocID
	// Node is the node of the placement, or empty.
	Node cluster.NodeID
	Why  string
}

// Check judges a plan in the state in which it is applied. It returns the part that may be
// applied: never nil, and empty if nothing may be written. Check is pure, so that all servers
// decide alike. The result shares no memory with the plan that either of them changes.
//
// Check refuses the whole plan if its evaluation is closed or gone, or if the job was written
// after the plan's snapshot. Otherwise it judges each part in the state left by the parts
// before it, stops first:
//
//   - a stop of a stopped allocation is dropped without a refusal;
//   - a stop of a marked allocation requires that the mark is still there;
//   - a stop of a lost or unknown allocation requires that its node is still away;
//   - a stop of a lost allocation that may be replaced requires that no mark excludes a replacement
//     by now, from the cluster version of volumes on: batch work that a deadline stops does not run
//     again, also if its node dies in that moment;
//   - a stop of a lost allocation that no other may replace requires that no mark permits a replacement by
//     now, from [cluster.VersionOfLateMarks] on;
//   - a stop of a surplus allocation requires that its group has a surplus, of which marked
//     allocations go first;
//   - a stop of a standby allocation requires that no drain requests it any more;
//   - a placement of a standby allocation needs no slot and no name, and requires that a drain still requests it;
//   - a placement requires a ready and acceptable node with free resources and healthy drivers, a
//     predecessor that has no other replacement, a free slot and a free name: a stale plan never
//     gives a group more than its count, nor two of its slots one name;
//   - a placement of a group with volumes requires a free claim of each, and a node with a healthy
//     storage plugin that has room for them;
//   - a placement of a group that requests devices requires devices that exist, are healthy and are not
//     in use, as many as the tasks request and of the kinds that they name; other placements have no devices;
//   - a placement of a group that requests ports requires a port for each, with the number and from the range
//     that the request has, which no allocation on the node has; other placements have no ports;
//   - a placement of a group whose tasks have cores for themselves requires as many cores of the node for each,
//     which no allocation on the node has; other placements have no cores;
//   - a placement of a group with constraints requires a node that was not written after the plan's
//     snapshot. Check does not judge constraints: the plan did, and the facts are the same.
//
// If a part is refused, the evaluation becomes or stays pending, and Check drops the blocked
// evaluation: the scheduler plans again from a newer state.
func Check(v View, plan *cluster.Plan) (accepted *cluster.Plan, refused []Refusal) {
	if plan == nil || plan.Eval == nil {
		return &cluster.Plan{}, []Refusal{{Why: "the plan has no evaluation"}}
	}
	c := &checker{
		jobView:  jobView{view: v, job: v.Job(plan.Eval.JobKey()), now: plan.At},
		plan:     plan,
		eval:     v.Eval(plan.Eval.ID),
		accepted: &cluster.Plan{At: plan.At, SnapshotIndex: plan.SnapshotIndex},
		stays:    make(map[cluster.AllocID]bool),
		left:     make(map[cluster.AllocID]bool),
		replaced: make(map[cluster.AllocID]bool),
		placed:   make(map[cluster.AllocID]bool),
		rooms:    make(map[cluster.NodeID]*room),
		held:     make(map[cluster.NodeID]*held),
		clients:  make(map[*cluster.TaskGroup]feasible.Client),
		rollouts: make(map[string]*rollout),
		book:     volumes.NewBook(v),
	}
	if why := c.stale(); why != "" {
		return c.accepted, []Refusal{{Why: why}}
	}
	c.tally = newTally(c.jobView, plan)
	for _, s := range plan.Stops {
		c.judgeStop(s)
	}
	for _, a := range plan.Places {
		c.judgePlace(a)
	}
	c.conclude()
	return c.accepted, c.refused
}

// checker judges one plan.
type checker struct {
	jobView
	plan *cluster.Plan
	// eval is the plan's evaluation in the state, or nil.
	eval     *cluster.Evaluation
	accepted *cluster.Plan
	refused  []Refusal
	tally    *tally
	// stays are the allocations whose stop was refused. left are those whose stop was
	// accepted.
	stays, left map[cluster.AllocID]bool
	// replaced are the predecessors of accepted placements. placed are their ids.
	replaced, placed map[cluster.AllocID]bool
	// rooms are the free resources of nodes after the accepted placements.
	rooms map[cluster.NodeID]*room
	// held is what allocations have alone on the nodes that got allocations with such things.
	held map[cluster.NodeID]*held
	// clients are the demands on clients of the groups that the plan places.
	clients map[*cluster.TaskGroup]feasible.Client
	// rollouts are the rollouts of the job's groups after the accepted stops.
	rollouts map[string]*rollout
	// book has the claims of the accepted placements.
	book *volumes.Book
}

// stale returns why the whole plan is refused, or the empty string.
func (c *checker) stale() string {
	switch {
	case c.eval == nil:
		return fmt.Sprintf("evaluation %s is gone", c.plan.Eval.ID)
	case !c.eval.Open():
		return fmt.Sprintf("evaluation %s is %s", c.eval.ID, c.eval.Status)
	case c.eval.JobKey() != c.plan.Eval.JobKey():
		return fmt.Sprintf("evaluation %s is of job %s", c.eval.ID, c.eval.JobKey())
	case c.job != nil && c.job.ModifyIndex > c.plan.SnapshotIndex:
		return fmt.Sprintf("job %s was written at index %d, after the plan's %d", c.job.Key(), c.job.ModifyIndex, c.plan.SnapshotIndex)
	}
	return ""
}

// judgeStop accepts, refuses or drops one stop.
func (c *checker) judgeStop(s cluster.PlanStop) {
	a := c.view.Alloc(s.Alloc)
	switch {
	case a == nil || c.left[s.Alloc] || isMoot(s, a):
		return
	case a.JobKey() != c.plan.Eval.JobKey():
		c.refuseStop(s, fmt.Sprintf("it is of job %s", a.JobKey()))
		return
	}
	if why := c.stayReason(s, a); why != "" {
		c.refuseStop(s, why)
		return
	}
	c.left[s.Alloc] = true
	c.tally.leave(s, a)
	c.accepted.Stops = append(c.accepted.Stops, s)
}

func (c *checker) refuseStop(s cluster.PlanStop, why string) {
	c.stays[s.Alloc] = true
	c.refused = append(c.refused, Refusal{Alloc: s.Alloc, Why: why})
}

// isMoot reports whether the stop has no effect any more.
func isMoot(s cluster.PlanStop, a *cluster.Allocation) bool {
	switch {
	case s.Description == cluster.DescOriginalStays:
		return !a.Standby
	case s.Lost:
		return a.ServerTerminal() && a.ClientTerminal()
	case s.Unknown:
		return a.Terminal() || a.ClientStatus == cluster.ClientUnknown
	}
	return a.ServerTerminal()
}

// stayReason returns why the stop is refused, or the empty string.
func (c *checker) stayReason(s cluster.PlanStop, a *cluster.Allocation) string {
	node := c.view.Node(a.NodeID)
	g := c.group(a)
	switch {
	case s.Migrate && !a.Marked():
		return "its mark was withdrawn"
	case s.Lost && s.Description == cluster.DescLost && isStopOnly(a) && c.view.ClusterVersion() >= cluster.VersionOfVolumes:
		return "it was marked, and must not be replaced"
	case s.Lost && s.Description == cluster.DescLost && markFreesSlot(g, a) && a.ModifyIndex > c.plan.SnapshotIndex &&
		c.view.ClusterVersion() >= cluster.VersionOfLateMarks:
		return "it was marked, and must be replaced"
	case s.Description == cluster.DescOriginalStays:
		return standbyReason(c, a)
	case s.Lost && a.ClientTerminal():
		return fmt.Sprintf("it is %s", a.ClientStatus)
	case s.Lost && !isDead(node) && (g == nil || !c.isLost(g, a, node)):
		return fmt.Sprintf("node %s is back", a.NodeID)
	case s.Unknown && !isDisconnected(node):
		return fmt.Sprintf("node %s is not disconnected", a.NodeID)
	case s.Description == cluster.DescNewerVersion && g != nil && !s.Migrate && !s.Lost && !s.Unknown:
		return outdatedReason(c, g, a)
	case s.Migrate || s.Lost || s.Unknown || g == nil || c.job.Type.EveryNode():
		return ""
	case a.Standby && !a.ClientTerminal() && !c.tally.active[a.ID]:
		return "it stands by"
	case c.job.Rescheduling(a, c.view.Alloc) != nil:
		return endedReason(c, s, g, a)
	case a.ClientTerminal() || a.Canary():
		return ""
	case s.Description == cluster.DescOriginalReturned && isBlocked(c.jobView, g, a):
		return ""
	case c.tally.groups[g.Name] <= g.Count:
		return fmt.Sprintf("group %s has no surplus", g.Name)
	case !a.Marked() && c.tally.groups[g.Name]-c.tally.marked[g.Name] <= g.Count:
		return fmt.Sprintf("group %s has no surplus but what is marked", g.Name)
	}
	return ""
}

// endedReason returns why an allocation that ended by itself, of a group with a policy, must not be stopped, or
// the empty string. A stop gives its slot up: for its replacement, or because the group has a surplus.
func endedReason(c *checker, s cluster.PlanStop, g *cluster.TaskGroup, a *cluster.Allocation) string {
	standing := c.standEnded(a)
	switch {
	case s.Description == cluster.DescRescheduled && standing == spent:
		return "it has had all replacements that its group permits"
	case s.Description == cluster.DescRescheduled && standing == delayed:
		return fmt.Sprintf("its replacement is due at %s", c.job.Rescheduling(a, c.view.Alloc).DueAt.Format(time.RFC3339Nano))
	case s.Description == cluster.DescRescheduled || a.Canary() || a.Standby && !c.tally.active[a.ID]:
		return ""
	case c.holds(a) && c.tally.groups[g.Name] <= g.Count, !c.holds(a) && c.tally.groups[g.Name] < g.Count:
		return fmt.Sprintf("group %s has no surplus", g.Name)
	}
	return ""
}

// judgePlace accepts or refuses one placement.
func (c *checker) judgePlace(a *cluster.Allocation) {
	if a == nil {
		c.refused = append(c.refused, Refusal{Why: "a placement is missing"})
		return
	}
	if a.Standby != standsBy(c, a) {
		a = a.Copy()
		a.Standby = false
	}
	g := c.group(a)
	why := c.placeReason(g, a)
	if why != "" {
		c.refused = append(c.refused, Refusal{Alloc: a.ID, Node: a.NodeID, Why: why})
		return
	}
	// The job was not written after the plan's snapshot, so the state has the planned
	// version.
	placed := a.Copy()
	placed.Job = c.job
	placed.Resources = g.Resources()
	c.accepted.Places = append(c.accepted.Places, placed)
	c.placed[a.ID] = true
	if a.PreviousAllocation != "" {
		c.replaced[a.PreviousAllocation] = true
	}
	c.rooms[a.NodeID].take(placed.Resources)
	c.book.Add(placed, g)
	if placed.Devices != nil || placed.Ports != nil || placed.Cores != nil {
		c.heldOn(a.NodeID).add(placed)
	}
	c.tally.come(placed)
}

// placeReason returns why the placement is refused, or the empty string.
func (c *checker) placeReason(g *cluster.TaskGroup, a *cluster.Allocation) string {
	node := c.view.Node(a.NodeID)
	switch {
	case a.JobKey() != c.plan.Eval.JobKey():
		return fmt.Sprintf("it is of job %s", a.JobKey())
	case g == nil:
		return fmt.Sprintf("job %s needs no group %s", a.JobKey(), a.TaskGroup)
	case a.ID == "" || c.placed[a.ID] || c.view.Alloc(a.ID) != nil:
		return "its id is taken"
	case !node.Ready():
		return fmt.Sprintf("node %s is not ready", a.NodeID)
	case !accepts(node, c.job, g, c.view.ClusterVersion()):
		return fmt.Sprintf("node %s is not for group %s", a.NodeID, a.GroupKey())
	case !c.room(node).fits(g.Resources()):
		return fmt.Sprintf("node %s has no room", a.NodeID)
	}
	if why := c.refusal(g, node); why != "" {
		return fmt.Sprintf("node %s is not for group %s: %s", a.NodeID, a.GroupKey(), why)
	}
	if why := c.book.Refusal(a.Namespace, g, a.Name, node); why != "" {
		return fmt.Sprintf("node %s: %s", a.NodeID, why)
	}
	if why := c.devicesReason(g, a, node); why != "" {
		return fmt.Sprintf("node %s: %s", a.NodeID, why)
	}
	if why := portsReason(c, g, a, node); why != "" {
		return fmt.Sprintf("node %s: %s", a.NodeID, why)
	}
	if why := coresReason(c, g, a, node); why != "" {
		return fmt.Sprintf("node %s: %s", a.NodeID, why)
	}
	if why := c.predecessorReason(a); why != "" {
		return why
	}
	if why := apartReason(c, g, a); why != "" {
		return why
	}
	return c.tally.full(g, a)
}

// refusal returns why the group may not run on the node because of its drivers, its kill timeouts or
// its constraints, or the empty string. Jobs of cluster versions below 4 have no constraints and
// no drivers, and nodes no longest kill timeout. Constraints are not judged here: all servers must
// decide alike, and regular expressions depend on the version of Go.
func (c *checker) refusal(g *cluster.TaskGroup, n *cluster.Node) string {
	client, cached := c.clients[g]
	if !cached {
		client = feasible.ClientOf(g)
		c.clients[g] = client
	}
	if why := client.Refusal(n); why != "" {
		return why
	}
	if n.ModifyIndex > c.plan.SnapshotIndex && c.job.Constrained(g) {
		return fmt.Sprintf("it was written at index %d, after the plan's %d, and the group has constraints", n.ModifyIndex, c.plan.SnapshotIndex)
	}
	return ""
}

// apartReason returns why the allocation must not be on its node because another one is there, or the empty string.
func apartReason(c *checker, g *cluster.TaskGroup, a *cluster.Allocation) string {
	if !c.job.DistinctHosts && !g.DistinctHosts {
		return ""
	}
	conflicts := func(other *cluster.Allocation) bool { return !other.Terminal() && c.job.KeepsApart(g.Name, other) }
	for other := range c.view.LiveAllocsByNode(a.NodeID) {
		if conflicts(other) && !c.left[other.ID] {
			return fmt.Sprintf("node %s has allocation %s, and the job has distinct_hosts", a.NodeID, other.ID)
		}
	}
	for _, other := range c.accepted.Places {
		if other.NodeID == a.NodeID && conflicts(other) {
			return fmt.Sprintf("node %s gets allocation %s, and the job has distinct_hosts", a.NodeID, other.ID)
		}
	}
	return ""
}

// devicesReason returns why the allocation cannot have its devices, or the empty string.
func (c *checker) devicesReason(g *cluster.TaskGroup, a *cluster.Allocation, n *cluster.Node) string {
	if a.Devices == nil && !g.RequestsDevices() {
		return ""
	}
	return feasible.RefusalOfDevices(g, n, a.Devices, c.heldOn(n.ID).devices)
}

func (c *checker) heldOn(id cluster.NodeID) *held {
	h := c.held[id]
	if h == nil {
		h = heldOn(c.view, id)
		c.held[id] = h
	}
	return h
}

// portsReason returns why the allocation cannot have its ports, or the empty string.
func portsReason(c *checker, g *cluster.TaskGroup, a *cluster.Allocation, n *cluster.Node) string {
	if a.Ports == nil && !g.RequestsPorts() {
		return ""
	}
	return feasible.RefusalOfPorts(g, n, a.Ports, c.heldOn(n.ID).ports)
}

// coresReason returns why the allocation cannot have its cores, or the empty string.
func coresReason(c *checker, g *cluster.TaskGroup, a *cluster.Allocation, n *cluster.Node) string {
	if a.Cores == nil && g.Cores() == 0 {
		return ""
	}
	return feasible.RefusalOfCores(g, n, a.Cores, c.heldOn(n.ID).cores)
}

// predecessorReason returns why the allocation may not replace its predecessor, or the empty
// string. A deleted predecessor does not matter.
func (c *checker) predecessorReason(a *cluster.Allocation) string {
	previous := c.view.Alloc(a.PreviousAllocation)
	switch {
	case previous == nil && a.Canary():
		return "a canary only follows a canary"
	case previous == nil:
		return ""
	case c.stays[previous.ID]:
		return fmt.Sprintf("its predecessor %s stays", previous.ID)
	case previous.NextAllocation != "" || c.replaced[previous.ID]:
		return fmt.Sprintf("its predecessor %s has been replaced", previous.ID)
	case a.Standby && previous.Standby && !previous.Terminal() && !c.left[previous.ID]:
		return fmt.Sprintf("its predecessor %s runs", previous.ID)
	case !a.Canary():
		return ""
	case !previous.Canary():
		return "a canary only follows a canary"
	case !previous.Terminal() && !c.left[previous.ID]:
		return fmt.Sprintf("its predecessor %s runs", previous.ID)
	}
	return ""
}

func (c *checker) room(n *cluster.Node) *room {
	r := c.rooms[n.ID]
	if r == nil {
		on := roomOn(n, c.view.Usage(n.ID))
		r = &on
		c.rooms[n.ID] = r
	}
	return r
}

// conclude sets the status of the evaluations.
func (c *checker) conclude() {
	c.checkAnswers()
	if len(c.refused) == 0 {
		c.checkBlocked()
	}
	if len(c.refused) == 0 {
		if c.accepted.Eval == nil {
			c.accepted.Eval = c.plan.Eval.Copy()
		}
		return
	}
	c.accepted.Blocked = nil
	c.accepted.Eval = c.eval.Copy()
	c.accepted.Eval.Status = cluster.EvalPending
	c.accepted.Eval.StatusDescription = fmt.Sprintf("%d parts of a plan were refused", len(c.refused))
	c.accepted.Eval.ModifyTime = c.plan.At
}

// checkAnswers accepts the answers to evaluations that are still open.
func (c *checker) checkAnswers() {
	for _, e := range c.plan.Answers {
		if e == nil || e.ID == c.eval.ID || e.JobKey() != c.eval.JobKey() {
			continue
		}
		if current := c.view.Eval(e.ID); current != nil && current.Open() {
			c.accepted.Answers = append(c.accepted.Answers, e.Copy())
		}
	}
}

// checkBlocked makes sure that the job has at most one blocked evaluation.
func (c *checker) checkBlocked() {
	b := c.plan.Blocked
	if b == nil {
		return
	}
	if b.JobKey() != c.eval.JobKey() {
		c.refused = append(c.refused, Refusal{Why: fmt.Sprintf("blocked evaluation %s is of job %s", b.ID, b.JobKey())})
		return
	}
	if current := c.view.Eval(b.ID); current != nil && !current.Open() {
		c.refused = append(c.refused, Refusal{Why: fmt.Sprintf("blocked evaluation %s is %s", b.ID, current.Status)})
		return
	}
	for other := range c.view.OpenEvals(c.eval.JobKey()) {
		if other.Status == cluster.EvalBlocked && other.ID != b.ID && other.ID != c.eval.ID && !c.answers(other.ID) {
			c.accepted.Eval = c.plan.Eval.Copy()
			c.accepted.Eval.BlockedEval = other.ID
			return
		}
	}
	c.accepted.Blocked = b.Copy()
}

func (c *checker) answers(id cluster.EvalID) bool {
	for _, e := range c.accepted.Answers {
		if e.ID == id {
			return true
		}
	}
	return false
}
