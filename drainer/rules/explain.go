package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// TermState is the part of a report that is not in the state, because only the leader's term has it:
// its writes, and since when groups are held. The zero value is that of a server that does not lead.
type TermState struct {
	// Marks are the marks of the newest round of writes that are not applied, by allocation.
	Marks map[cluster.AllocID]PendingMark
	// Attempts counts consecutive failed rounds of writes, or consecutive failed barriers while
	// Barrier is set. LastError is the last failure, or nil.
	Attempts  int
	LastError error
	// Barrier means that the leader plans nothing until a barrier is applied.
	Barrier bool
	// Stalled is why nothing was written for too long, or empty. StalledSince is the time since then,
	// or zero.
	Stalled      string
	StalledSince time.Time
	// WriteTime bounds how long the leader takes until a write is applied. If it is nil, reports do
	// not contain the end of a drain.
	WriteTime func() time.Duration
	// HeldSince returns since when the leader has found a group held for a reason, or zero if the
	// leader has no such time. It may be nil.
	HeldSince func(cluster.GroupKey, Reason) time.Time
	// Placed returns how many allocations the leader has observed that were placed on the node of a
	// drain after the drain began, and the newest of them, or nil. It may be nil.
	Placed func(cluster.DrainID) (count int, newest *cluster.Allocation)
}

// boundedFrom is the time from which the end of a drain is bounded: now, or the time since which
// nothing was written. A bound that moved with the time would be a promise that never ends.
func (s *TermState) boundedFrom(now time.Time) time.Time {
	if !s.StalledSince.IsZero() && s.StalledSince.Before(now) {
		return s.StalledSince
	}
	return now
}

// trouble is, as the end of a sentence, why the leader's writes take longer than usual, or empty.
func (s *TermState) trouble() (text string) {
	switch {
	case s.Attempts == 1:
		text = fmt.Sprintf("; the last write has failed: %v", s.LastError)
	case s.Attempts > 1:
		text = fmt.Sprintf("; the last %d writes have failed: %v", s.Attempts, s.LastError)
	}
	if s.Stalled != "" {
		text += "; " + s.Stalled
	}
	return text
}

// unwritten counts, as the end of a sentence, the marks that are not written and for which an
// allocation of the class waits for room, with the trouble of their writes. It sets the numbers of
// the explanation.
func (s *TermState) unwritten(r *AllocExplanation, g *explained, class cluster.MarkClass) string {
	marks := len(g.planned)
	if takesSlot(class) {
		marks = len(g.taking)
	}
	if r.Reason != ReasonWaitingForRoom || marks == 0 {
		return ""
	}
	r.Attempts, r.LastError = s.Attempts, s.LastError
	return fmt.Sprintf(", marks not written: %d", marks) + s.trouble()
}

// PendingMark is a mark that is not applied.
type PendingMark struct {
	Drain cluster.DrainID
	// Since is when this leader first planned the mark.
	Since time.Time
	// InFlight means that the mark is in flight. Otherwise its write has failed, and the mark
	// is planned again.
	InFlight bool
}

// Explain reports the drain of one node and the [Reason] why each allocation is still there. The
// error wraps [ErrNotDraining].
func Explain(v View, term TermState, id cluster.NodeID, now time.Time, p Policy) (Report, error) {
	node := v.Node(id)
	if !node.Draining() {
		return Report{}, fmt.Errorf("explaining node %s: %w", id, ErrNotDraining)
	}
	return NewExplainer(v, term, now, p).Report(node), nil
}

// Explainer reports several drains at one time. It counts each group once.
type Explainer struct {
	*Planner
	term   TermState
	groups map[cluster.GroupKey]*explained
	// onNode are the allocations on the node of the last report, or nil before the first.
	onNode *onNode
}

// explained is a group with its plan. Its budget counts no marks of the plan.
type explained struct {
	group  *group
	budget *budget
	census *census
	// planned are, by id, the allocations whose marks are in flight or would be planned now. taking
	// are the planned allocations whose marks take a slot.
	planned, taking []cluster.AllocID
	// surging are the planned allocations whose replacement is requested, and inSurge is the first of all that
	// hold the group's max_surge.
	surging []cluster.AllocID
	inSurge *Culprit
	// moving is the first allocation for which paced marks wait, inSlots the first for which marks that
	// take a slot wait, and sick the first that should be healthy and is not. missing counts the
	// allocations that the group lacks. All are zero until a report needs them.
	moving, inSlots, sick *Culprit
	missing               int
}

// plans reports whether a mark of the allocation is planned or in flight.
func (g *explained) plans(id cluster.AllocID) bool {
	_, planned := slices.BinarySearch(g.planned, id)
	return planned
}

// NewExplainer returns an explainer over a view.
func NewExplainer(v View, term TermState, now time.Time, p Policy) *Explainer {
	return &Explainer{Planner: NewPlanner(v, now, p), term: term, groups: map[cluster.GroupKey]*explained{}}
}

// inFlight reports whether a mark of the allocation is in flight.
func (e *Explainer) inFlight(id cluster.AllocID) bool { return e.term.Marks[id].InFlight }

// Report reports the drain of a draining node of the view.
func (e *Explainer) Report(n *cluster.Node) Report {
	r := Report{Status: Status{Drain: n.Drain, NodeName: n.Name, Stalled: e.term.Stalled, PausedSince: pausedSince(e.Planner, n)}}
	if e.pauseOfAll.Holds(n.Drain) {
		r.PauseOfAll = e.pauseOfAll
	}
	e.onNode = e.allocsOn(n)
	awaited := slices.Collect(e.awaitedData(n))
	r.Allocs = slices.Grow(r.Allocs, e.onNode.count()+len(awaited))
	for _, s := range cluster.Stages() {
		stage := slices.Concat(e.onNode[s].staying, e.onNode[s].leaving, e.onNode[s].excluded)
		for _, a := range stage {
			r.countPlaced(a)
		}
		for _, a := range awaited {
			if a.Stage() == s {
				stage = append(stage, a)
			}
		}
		slices.SortFunc(stage, compareID)
		for _, a := range stage {
			r.Allocs = append(r.Allocs, e.explain(a, n))
		}
		r.Left[s] = e.onNode.left(s)
		r.Ignored += len(e.onNode[s].excluded)
	}
	r.Unconfirmed = countGivenUp(e.view, n)
	if e.term.WriteTime != nil && n.Drain.Strategy.Finite() && r.PausedSince.IsZero() {
		r.EndsBy = e.onNode.bound(n, e.term.boundedFrom(e.now), e.policy, e.term.WriteTime())
	}
	worst := 0
	for i, a := range r.Allocs {
		r.Waiting[a.Reason]++
		if a.Reason.severity() > r.Allocs[worst].Reason.severity() {
			worst = i
		}
	}
	if len(r.Allocs) > 0 {
		copied := r.Allocs[worst]
		r.Worst, r.Reason = &copied, copied.Reason
	}
	r.addObserved(&e.term)
	return r
}

func (e *Explainer) explain(a *cluster.Allocation, n *cluster.Node) AllocExplanation {
	r := AllocExplanation{Alloc: a.ID, Group: a.GroupKey(), Stage: a.Stage()}
	switch {
	case a.ClientTerminal():
		explainData(e, &r, a, n)
	case !n.Drain.Leaves(a.Stage()):
		r.set(ReasonLeftByRequest, Since{At: n.Drain.UpdatedAt}, "system jobs are ignored by this drain")
	case e.staysFor(a, n) != "":
		detail := fmt.Sprintf("serves a volume of allocation %s, and system jobs are ignored by this drain", e.staysFor(a, n))
		r.set(ReasonLeftByRequest, Since{At: n.Drain.UpdatedAt}, detail)
	case !a.Leaving() && e.inFlight(a.ID):
		e.explainPlanned(&r, n)
	case a.Leaving() && a.Stage() == cluster.StagePlugins && a.VolumeHolds.Count() > 0:
		e.explainHeld(&r, a, n)
	case a.ServerTerminal():
		e.explainStopping(&r, a, n)
	case a.Marked():
		e.explainMarked(&r, a)
	default:
		e.explainStaying(&r, a, n)
	}
	r.Detail = foreignText(a, n.Drain) + r.Detail
	return r
}

func (r *AllocExplanation) set(reason Reason, since Since, detail string) {
	r.Reason, r.Since, r.Detail = reason, since, detail
}

// explainHeld gives the reason of a storage plugin that waits for volumes on its node.
func (e *Explainer) explainHeld(r *AllocExplanation, a *cluster.Allocation, n *cluster.Node) {
	var since time.Time
	for _, v := range a.VolumeHolds.Volumes {
		since = earliest(since, v.Since)
	}
	if since.IsZero() {
		since = latest(a.StoppedAt, a.ModifyTime)
	}
	if !a.StoppedAt.IsZero() {
		r.Due = a.StoppedAt.Add(a.StopTimeOn(n))
	}
	r.set(ReasonHeldForVolumes, Since{At: since}, "waits for "+heldVolumes(a.VolumeHolds))
	r.Held = a.VolumeHolds
}

// WithoutTexts returns the explanation without the client's texts about volumes: errors of plugins
// and commands of processes, which may hold secrets.
func (r AllocExplanation) WithoutTexts() AllocExplanation {
	if r.Held != nil {
		detail := strings.TrimSuffix(r.Detail, heldVolumes(r.Held))
		r.Held = r.Held.WithoutReasons()
		r.Detail = detail + heldVolumes(r.Held)
	}
	return r
}

// heldVolumes names the volumes with the reasons why they are held.
func heldVolumes(h *cluster.VolumeHolds) string {
	var parts []string
	for _, v := range h.Volumes {
		part := fmt.Sprintf("volume %s/%s of allocation %s", v.Namespace, v.Volume, v.Alloc)
		if v.Path != "" {
			part += " at " + v.Path
		}
		if v.Reason != "" {
			part += ": " + v.Reason
		}
		parts = append(parts, part)
	}
	if h.More > 0 {
		parts = append(parts, fmt.Sprintf("%d more volumes", h.More))
	}
	return strings.Join(parts, "; ")
}

func (e *Explainer) explainStopping(r *AllocExplanation, a *cluster.Allocation, n *cluster.Node) {
	if a.StoppedAt.IsZero() {
		r.set(ReasonStopping, Since{At: a.ModifyTime}, fmt.Sprintf("stopping, may take %s", a.StopTimeOn(n)))
		return
	}
	r.Due = a.StoppedAt.Add(a.StopTimeOn(n))
	detail := fmt.Sprintf("stopping, may take %s", a.StopTimeOn(n))
	if over := e.now.Sub(r.Due); over > 0 {
		detail = fmt.Sprintf("stopping, overdue by %s: its client has not reported", over.Round(time.Second))
	}
	if a.VolumeHolds.Count() > 0 {
		detail += "; waits for " + heldVolumes(a.VolumeHolds)
		r.Held = a.VolumeHolds
	}
	if a.DesiredTransition.Class == cluster.MarkProceed {
		detail += "; its group is below its budget, and the policy below-budget=proceed moves also the last healthy allocation"
	}
	r.set(ReasonStopping, Since{At: a.StoppedAt}, detail)
}

func (e *Explainer) explainMarked(r *AllocExplanation, a *cluster.Allocation) {
	for eval := range e.view.OpenEvals(a.JobKey()) {
		r.Eval = eval
		break
	}
	detail := "marked, but its job has no open evaluation: the leader creates one" + e.term.trouble()
	if r.Eval != nil {
		detail = fmt.Sprintf("marked, evaluation %s is %s", r.Eval.ID, r.Eval.Status)
	}
	since := Since{At: a.DesiredTransition.MarkedAt}
	if since.At.IsZero() {
		since.At = a.ModifyTime
	}
	r.set(ReasonWaitingForScheduler, since, detail)
}

// explainStaying gives the reason of an allocation that is not leaving.
func (e *Explainer) explainStaying(r *AllocExplanation, a *cluster.Allocation, n *cluster.Node) {
	g := e.explained(r.Group)
	if a.JobType() == cluster.JobService {
		r.Healthy, r.Count, r.MaxParallel = g.budget.healthyNow(), g.group.pace.Count, g.group.pace.MaxParallel
	}
	here := latest(a.CreateTime, n.Drain.Strategy.StartedAt)
	switch could := g.group.judge(a, n); {
	case (could.surge || could.replaced) && !g.plans(r.Alloc):
		explainSurgeFull(e, r, g, could, n, here)
	case could.hold == ReasonWaitingForSurge:
		explainSurge(e, r, g, a, here)
	case could.class != cluster.MarkNone:
		e.explainMovable(r, g, n, could.class, here)
		r.Detail += e.term.unwritten(r, g, could.class)
	case could.hold == ReasonDisconnected:
		since := n.StatusChangedAt
		if n.Reachable() || since.IsZero() {
			since = a.ModifyTime // the node is back, or does not report
		}
		r.set(could.hold, Since{At: since}, fmt.Sprintf("its node is %s, the allocation %s", n.Status, a.ClientStatus))
	case could.hold == ReasonPaused:
		r.set(could.hold, Since{At: latest(pausedSince(e.Planner, n), a.CreateTime)}, pauseText(e.Planner, n))
	case could.hold == ReasonBatchRunning:
		r.Due = n.Drain.Strategy.ForceDeadline
		r.set(could.hold, Since{At: here}, fmt.Sprintf("%s work runs until it is done%s", a.JobType(), untilDeadline(", or", r.Due)))
	case could.hold == ReasonWaitingForStage:
		r.set(could.hold, Since{At: here}, e.before(a.Stage()))
		r.Culprit = e.onNode.culpritBefore(a.Stage(), n)
	case could.hold == ReasonWaitingForHealth:
		r.Due = g.group.overdueAt(a)
		detail := "no health verdict yet, due at " + r.Due.Format(time.RFC3339)
		switch {
		case a.DataIn.Pending():
			detail = "no health verdict yet: it waits for the data of the allocation that it replaces"
		case a.HasVerdict():
			detail = fmt.Sprintf("judged healthy but %s, overdue at %s", a.ClientStatus, r.Due.Format(time.RFC3339))
		}
		r.set(could.hold, Since{At: here}, detail)
	case could.hold == ReasonBelowBudget:
		r.Due = a.HeldUntil(g.group.pace)
		detail := fmt.Sprintf("%s; it was healthy, and moves if it is still unhealthy at %s", g.numbers(), r.Due.Format(time.RFC3339))
		r.set(could.hold, Since{At: latest(a.DeploymentStatus.UnhealthySince, here)}, detail)
	case could.hold == ReasonNoPacedMoves:
		r.Due = n.Drain.Strategy.ForceDeadline
		r.set(could.hold, e.heldSince(r.Group, could.hold, here), "max_parallel is 0: it stays"+untilDeadline("", r.Due))
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
func (e *Explainer) explainMovable(r *AllocExplanation, g *explained, n *cluster.Node, class cluster.MarkClass, here time.Time) {
	if g.plans(r.Alloc) {
		e.explainPlanned(r, n)
		return
	}
	if takesSlot(class) {
		g.budget.readSlots()
		r.Outstanding = sorted(g.budget.slots, g.taking)
		r.Culprit = g.among(e, &g.inSlots, r.Outstanding)
		r.set(ReasonWaitingForRoom, e.heldSince(r.Group, ReasonWaitingForRoom, here),
			fmt.Sprintf("%s outside the budget under way, the limit is %d", counted(len(g.budget.slots)+len(g.taking), "move"), g.budget.maxSlots()))
		return
	}
	numbers := g.numbers()
	reason := g.group.shortage(class, len(g.census.underway)+len(g.planned) > 0)
	since := e.heldSince(r.Group, reason, here)
	switch reason {
	case ReasonWaitingForReplacement:
		r.Eval = g.group.blockedEval()
		since = Since{At: latest(r.Eval.CreateTime, here)}
		r.set(reason, since, fmt.Sprintf("%s; evaluation %s is blocked: %s", numbers, r.Eval.ID, r.Eval.StatusDescription))
	case ReasonWaitingForRoom:
		r.Outstanding = sorted(g.census.underway, g.planned)
		r.Culprit = g.among(e, &g.moving, r.Outstanding)
		r.set(reason, since, numbers+"; "+underwayText(len(r.Outstanding)))
	default:
		g.findSick(e)
		r.Culprit, r.Missing = g.sick, g.missing
		r.set(reason, since, fmt.Sprintf("%s, need %d", numbers, g.group.pace.Count-g.group.pace.MaxParallel+1))
	}
}

// numbers are those of the group's budget, as a text.
func (g *explained) numbers() string {
	return fmt.Sprintf("%d of %d healthy, max_parallel %d", g.budget.healthyNow(), g.group.pace.Count, g.group.pace.MaxParallel)
}

// explainPlanned gives the reason of an allocation whose mark is in flight, failed, or is
// about to be planned.
func (e *Explainer) explainPlanned(r *AllocExplanation, n *cluster.Node) {
	p := e.term
	since := Since{Observed: true}
	if mark := p.Marks[r.Alloc]; mark.Drain == n.Drain.ID {
		since.At = mark.Since
	}
	r.Attempts, r.LastError = p.Attempts, p.LastError
	detail := "its mark is about to be planned"
	switch {
	case e.inFlight(r.Alloc):
		detail = "its mark is in flight"
	case p.Barrier:
		detail = "its mark is planned when a barrier is applied"
	case !since.At.IsZero():
		detail = "its mark is planned"
	}
	r.set(ReasonWritePending, since, detail+e.term.trouble())
}

// sorted merges lists of allocations.
func sorted(lists ...[]cluster.AllocID) []cluster.AllocID {
	ids := slices.Concat(lists...)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// explained returns a group, planned as the drainer would plan it. It caches the group.
func (e *Explainer) explained(key cluster.GroupKey) *explained {
	if g := e.groups[key]; g != nil {
		return g
	}
	of := e.group(key)
	g := &explained{group: of, budget: of.budget(), census: of.census()}
	e.groups[key] = g
	for _, a := range g.census.staying {
		if e.inFlight(a.ID) || PlannedWithNode(g.group.judge(a.Allocation, a.node).class) {
			g.planned = append(g.planned, a.ID)
		}
	}
	for _, m := range of.plan(g.census, of.budget(), e.inFlight, nil).Marks {
		g.planned = append(g.planned, m.Alloc)
		switch {
		case m.Surge:
			g.surging = append(g.surging, m.Alloc)
		case takesSlot(m.Class):
			g.taking = append(g.taking, m.Alloc)
		}
	}
	g.planned = sorted(g.planned)
	return g
}

// heldSince returns since when the leader has found a reason for which the state holds no time. The
// result is never before here, the time when the allocation was placed or the drain began.
func (e *Explainer) heldSince(key cluster.GroupKey, r Reason, here time.Time) Since {
	since := Since{Observed: true}
	if e.term.HeldSince != nil {
		since.At = e.term.HeldSince(key, r)
	}
	if !since.At.IsZero() {
		since.At = latest(since.At, here)
	}
	return since
}

// before counts, as a text, how many allocations of each earlier stage are left.
func (e *Explainer) before(s cluster.Stage) string {
	var parts []string
	for _, earlier := range cluster.Stages() {
		if left := e.onNode.left(earlier); earlier < s && left > 0 {
			name := earlier.String()
			if left == 1 {
				name = strings.TrimSuffix(name, "s") // consumers, storage plugins
			}
			parts = append(parts, fmt.Sprintf("%d %s", left, name))
		}
	}
	return "waits for " + strings.Join(parts, ", ")
}

// underwayText counts the allocations that a group waits for: those that leave and their replacements. A group
// with room for one may wait for two of them, one of each.
func underwayText(n int) string {
	if n == 1 {
		return "1 of the group leaves or arrives"
	}
	return fmt.Sprintf("%d of the group leave or arrive", n)
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
