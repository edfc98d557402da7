package drainer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Soft is what a drainer knows besides the state: what it wants written and has
// no answer to. A nil Soft knows nothing, as on a server that does not lead.
type Soft interface {
	// Pending returns the write that is planned or in flight for an allocation,
	// and whether there is one.
	Pending(cluster.AllocID) (PendingWrite, bool)
	// HeldSince returns since when a group was seen held for a reason, and
	// whether it was.
	HeldSince(cluster.GroupKey, Reason) (time.Time, bool)
	// Behind reports whether nothing is planned until a barrier is answered, and
	// what became of those that were asked for.
	Behind() (PendingWrite, bool)
}

// PendingWrite is a write that is planned or in flight.
type PendingWrite struct {
	// Since is when a mark was first planned by this leader, or zero.
	Since time.Time
	// Attempts counts the writes that failed since the last that did not.
	Attempts int
	// LastError is the last failure, or nil.
	LastError error
}

// nothingKnown is the Soft that a nil one stands for.
type nothingKnown struct{}

func (nothingKnown) Pending(cluster.AllocID) (PendingWrite, bool) { return PendingWrite{}, false }

func (nothingKnown) HeldSince(cluster.GroupKey, Reason) (time.Time, bool) { return time.Time{}, false }

func (nothingKnown) Behind() (PendingWrite, bool) { return PendingWrite{}, false }

// Explain reports the drain of one node and why each allocation is still there:
// exactly one reason each, the first that holds. It reports false if the node
// does not drain or does not exist. EndsBy is left to who knows how writes are
// retried; see [EndBound].
func Explain(v View, soft Soft, id cluster.NodeID, now time.Time, p Policy) (Report, bool) {
	node := v.Node(id)
	if !node.Draining() {
		return Report{}, false
	}
	return newExplainer(v, soft, now, p).report(node), true
}

// explainer gives reasons at one moment. Groups are counted once.
type explainer struct {
	*moment
	soft   Soft // never nil
	groups map[cluster.GroupKey]*explained
	// on is what is on the node of the last report, or nil before the first.
	on *onNode
	// waits remembers the answers of before.
	waits map[turn]string
}

// explained is a group with what is pending of it.
type explained struct {
	*group
	// planned are its allocations whose marks are in flight, or would be planned
	// now, by id, those that leave with their nodes among them; taking are those
	// of them that take a slot for free and canary marks.
	planned []cluster.AllocID
	taking  []cluster.AllocID
}

func newExplainer(v View, soft Soft, now time.Time, p Policy) *explainer {
	if soft == nil {
		soft = nothingKnown{}
	}
	return &explainer{
		moment: newMoment(v, now, p), soft: soft,
		groups: map[cluster.GroupKey]*explained{}, waits: map[turn]string{},
	}
}

func (e *explainer) report(n *cluster.Node) Report {
	r := Report{Status: Status{Drain: n.Drain, NodeName: n.Name}}
	e.on = lookOn(e.view, n)
	r.Allocs = slices.Grow(r.Allocs, e.on.count())
	for _, s := range cluster.Stages() {
		stage := slices.Concat(e.on[s].staying, e.on[s].asked)
		slices.SortFunc(stage, compareID)
		for _, a := range stage {
			r.Allocs = append(r.Allocs, e.explain(a, n))
		}
		if n.Drain.Leaves(s) {
			r.Left[s] = len(stage)
		} else {
			r.Ignored += len(stage)
		}
	}
	for i, a := range r.Allocs {
		r.Waiting[a.Reason]++
		if i == 0 || a.Reason.severity() > r.Reason.severity() {
			r.Reason = a.Reason
		}
	}
	return r
}

// explain gives one allocation its reason: the first that matches.
func (e *explainer) explain(a *cluster.Allocation, n *cluster.Node) AllocReport {
	r := AllocReport{Alloc: a.ID, Group: a.GroupKey(), Stage: a.Stage()}
	pending, isPending := e.soft.Pending(a.ID)
	switch {
	case !n.Drain.Leaves(a.Stage()):
		r.set(ReasonLeftByRequest, Since{At: n.Drain.UpdatedAt}, "system jobs are ignored by this drain")
	case isPending && !a.Asked():
		r.pending(pending)
	case a.ServerTerminal():
		e.explainStopping(&r, a)
	case a.Marked():
		e.explainMarked(&r, a)
	default:
		e.explainStaying(&r, a, n)
	}
	return r
}

func (r *AllocReport) set(reason Reason, since Since, detail string) {
	r.Reason, r.Since, r.Detail = reason, since, detail
}

func (r *AllocReport) pending(p PendingWrite) {
	detail := "its mark is planned or in flight"
	if p.Attempts > 0 {
		detail = fmt.Sprintf("its mark is planned; %d writes in a row have failed, the last: %v", p.Attempts, p.LastError)
	}
	r.Attempts, r.LastError = p.Attempts, p.LastError
	r.set(ReasonWritePending, Since{At: p.Since, Seen: true}, detail)
}

func (e *explainer) explainStopping(r *AllocReport, a *cluster.Allocation) {
	if a.StoppedAt.IsZero() {
		r.set(ReasonStopping, Since{At: a.ModifyTime}, fmt.Sprintf("stopping, may take %s", a.StopTime()))
		return
	}
	r.Due = a.StoppedAt.Add(a.StopTime())
	detail := fmt.Sprintf("stopping, may take %s", a.StopTime())
	if over := e.now.Sub(r.Due); over > 0 {
		detail = fmt.Sprintf("stopping, overdue by %s: its client has not reported", over.Round(time.Second))
	}
	r.set(ReasonStopping, Since{At: a.StoppedAt}, detail)
}

func (e *explainer) explainMarked(r *AllocReport, a *cluster.Allocation) {
	for eval := range e.view.OpenEvals(a.JobKey()) {
		r.Eval = eval
		break
	}
	detail := "marked, and no evaluation of its job is open: it is proposed again"
	if r.Eval != nil {
		detail = fmt.Sprintf("marked, evaluation %s is %s", r.Eval.ID, r.Eval.Status)
	}
	since := Since{At: a.DesiredTransition.MarkedAt}
	if since.At.IsZero() {
		since.At = a.ModifyTime
	}
	r.set(ReasonWaitingForScheduler, since, detail)
}

// explainStaying gives the reason of an allocation nobody has asked to leave.
func (e *explainer) explainStaying(r *AllocReport, a *cluster.Allocation, n *cluster.Node) {
	g := e.group(r.Group)
	if a.JobType() == cluster.JobService {
		r.Healthy, r.Count, r.MaxParallel = g.healthy(), g.pace.Count, g.pace.MaxParallel
	}
	here := latest(a.CreateTime, n.Drain.Strategy.StartedAt)
	switch could := g.judge(a, n); {
	case could.class != cluster.MarkNone:
		e.explainMovable(r, g, could.class, here)
	case could.hold == ReasonDisconnected:
		since := n.StatusChangedAt
		if n.Reachable() || since.IsZero() {
			since = a.ModifyTime // the node is back, or says nothing
		}
		r.set(could.hold, Since{At: since}, fmt.Sprintf("its node is %s, the allocation %s", n.Status, a.ClientStatus))
	case could.hold == ReasonBatchRunning:
		r.Due = n.Drain.Strategy.ForceDeadline
		r.set(could.hold, Since{At: here}, fmt.Sprintf("%s work runs until it is done%s", a.JobType(), untilDeadline(", or", r.Due)))
	case could.hold == ReasonWaitingForStage:
		r.set(could.hold, Since{At: here}, e.before(n, a.Stage()))
	case could.hold == ReasonWaitingForHealth:
		r.Due = a.DueAt(g.pace, e.policy.HealthGrace)
		detail := "no health verdict yet, due at "
		if a.HasVerdict() {
			detail = fmt.Sprintf("judged healthy but %s, overdue at ", a.ClientStatus)
		}
		r.set(could.hold, Since{At: here}, detail+r.Due.Format(time.RFC3339))
	case could.hold == ReasonNoPacedMoves:
		r.Due = n.Drain.Strategy.ForceDeadline
		r.set(could.hold, e.seen(r.Group, could.hold), "max_parallel is 0: it stays"+untilDeadline("", r.Due))
	default:
		r.set(could.hold, Since{At: here}, could.hold.String())
	}
}

// untilDeadline ends a sentence with the deadline, if there is one.
func untilDeadline(joint string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return joint + " until the deadline at " + t.Format(time.RFC3339)
}

// explainMovable gives the reason of an allocation that could be marked.
func (e *explainer) explainMovable(r *AllocReport, g *explained, class cluster.MarkClass, here time.Time) {
	if _, planned := slices.BinarySearch(g.planned, r.Alloc); planned {
		e.explainPlanned(r)
		return
	}
	if class == cluster.MarkFree || class == cluster.MarkCanary {
		g.lookAtSlots()
		r.Outstanding = sorted(g.slots, g.taking)
		r.set(ReasonWaitingForRoom, e.seen(r.Group, ReasonWaitingForRoom),
			fmt.Sprintf("%d of %d moves that take no room under way", len(g.slots)+len(g.taking), g.maxSlots()))
		return
	}
	numbers := fmt.Sprintf("%d of %d healthy, max_parallel %d", g.healthy(), g.pace.Count, g.pace.MaxParallel)
	reason := g.shortFor(class, len(g.planned))
	since := e.seen(r.Group, reason)
	switch reason {
	case ReasonWaitingForReplacement:
		r.Eval = g.blockedEval()
		since = Since{At: latest(r.Eval.CreateTime, here)}
		r.set(reason, since, fmt.Sprintf("%s; evaluation %s is blocked: %s", numbers, r.Eval.ID, r.Eval.StatusDescription))
	case ReasonWaitingForRoom:
		r.Outstanding = sorted(g.underway, g.planned)
		r.set(reason, since, fmt.Sprintf("%s; %d of the group on their way", numbers, len(r.Outstanding)))
	default:
		r.set(reason, since, fmt.Sprintf("%s, need %d", numbers, g.pace.Count-g.pace.MaxParallel+1))
	}
}

// explainPlanned gives the reason of an allocation whose mark is to be planned,
// and is not yet: the state has only just come to allow it, or nothing is planned
// here.
func (e *explainer) explainPlanned(r *AllocReport) {
	detail := "its mark is to be planned"
	if behind, is := e.soft.Behind(); is {
		r.Attempts, r.LastError = behind.Attempts, behind.LastError
		detail = "its mark is to be planned behind a barrier"
		if behind.Attempts > 0 {
			detail += fmt.Sprintf(", of which %d in a row have failed, the last: %v", behind.Attempts, behind.LastError)
		}
	}
	r.set(ReasonWritePending, Since{Seen: true}, detail)
}

// sorted merges lists of allocations.
func sorted(lists ...[]cluster.AllocID) []cluster.AllocID {
	ids := slices.Concat(lists...)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// group counts a group, and plans it as the drainer would.
func (e *explainer) group(key cluster.GroupKey) *explained {
	if g := e.groups[key]; g != nil {
		return g
	}
	g := &explained{group: e.lookAt(key)}
	e.groups[key] = g
	before := func(id cluster.AllocID) progress {
		if _, pending := e.soft.Pending(id); pending {
			return wasAsked // or sent, it is the same to those that wait
		}
		return notAsked
	}
	for _, a := range g.staying {
		if before(a.ID) != notAsked || leavesWithNode(g.judge(a.Allocation, a.node).class) {
			g.planned = append(g.planned, a.ID)
		}
	}
	for _, m := range g.copied().plan(before).marks {
		g.planned = append(g.planned, m.Alloc)
		if m.Class == cluster.MarkFree || m.Class == cluster.MarkCanary {
			g.taking = append(g.taking, m.Alloc)
		}
	}
	g.planned = sorted(g.planned)
	return g
}

// seen dates a reason for which the state holds no time.
func (e *explainer) seen(key cluster.GroupKey, r Reason) Since {
	at, _ := e.soft.HeldSince(key, r)
	return Since{At: at, Seen: true}
}

// before says what of the earlier stages is left. It is found out once for all that
// wait for it.
func (e *explainer) before(n *cluster.Node, s cluster.Stage) string {
	key := turn{node: n.ID, stage: s}
	text, known := e.waits[key]
	if !known {
		text = e.findBefore(n, s)
		e.waits[key] = text
	}
	return text
}

func (e *explainer) findBefore(n *cluster.Node, s cluster.Stage) string {
	var parts []string
	for _, earlier := range cluster.Stages() {
		if left := e.on.left(n, earlier); earlier < s && left > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", left, earlier))
		}
	}
	return "waits for " + strings.Join(parts, ", ")
}

// severity ranks reasons by how unlikely the allocation is to leave by itself.
func (r Reason) severity() int {
	order := [...]Reason{
		ReasonLeftByRequest, ReasonStopping, ReasonWritePending, ReasonWaitingForScheduler, ReasonWaitingForStage, ReasonWaitingForRoom,
		ReasonWaitingForHealth, ReasonBatchRunning, ReasonWaitingForReplacement, ReasonDisconnected, ReasonNoPacedMoves, ReasonBelowBudget,
	}
	return slices.Index(order[:], r)
}
