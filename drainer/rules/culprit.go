package rules

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// CulpritState is the state of an allocation that causes the reason of another one.
type CulpritState uint8

// The states, in the order in which culprits are named.
const (
	// CulpritSilent: its client cannot report it, because the node cannot be reached.
	CulpritSilent CulpritState = iota
	// CulpritUnhealthy: its health verdict is bad.
	CulpritUnhealthy
	// CulpritOverdue: it has no health verdict, and the verdict is overdue.
	CulpritOverdue
	// CulpritNotRunning: its health verdict is good, but it does not run.
	CulpritNotRunning
	// CulpritUnjudged: it has no health verdict, and the verdict is not overdue.
	CulpritUnjudged
	// CulpritStopping: the servers have stopped it and its client has not reported the end.
	CulpritStopping
	// CulpritMarked: it is marked and the scheduler has not stopped it.
	CulpritMarked
	// CulpritAwaitsReplacement: it stays until the replacement beside it is healthy.
	CulpritAwaitsReplacement
	// CulpritNotReplaced: it has left, and its replacement is not placed.
	CulpritNotReplaced
	// CulpritUnwritten: its mark is planned or in flight.
	CulpritUnwritten
	// CulpritWithoutData: it replaces the allocation and does not have its data yet.
	CulpritWithoutData
	// CulpritStays: it is still on the draining node.
	CulpritStays

	// CulpritStateCount is how many states there are.
	CulpritStateCount
)

// String returns the state as the end of a sentence about the allocation.
func (s CulpritState) String() string {
	texts := [CulpritStateCount]string{
		"cannot report", "is unhealthy", "is overdue with its health verdict", "is judged healthy but does not run", "has no health verdict yet",
		"is stopping", "is marked and not stopped by the scheduler", "waits for a healthy replacement", "has left without a replacement", "has a mark that is not written", "does not have the data yet", "is still on the node",
	}
	if s >= CulpritStateCount {
		return "is in an unknown state"
	}
	return texts[s]
}

// Culprit is the first of the allocations that cause the reason of another one: by state, then the
// one that is in it for longest, then by id.
type Culprit struct {
	// Alloc is the allocation, never empty.
	Alloc cluster.AllocID
	// Node is its node, and NodeName the name of that, or empty if the node does not exist.
	Node     cluster.NodeID
	NodeName string
	State    CulpritState
	// Since is when the state began; of CulpritOverdue, when the verdict was due. It is zero if the
	// state of the cluster has no such time.
	Since time.Time
	// More counts the other allocations that cause the reason, in any state.
	More int
}

func (c *Culprit) String() string {
	text := fmt.Sprintf("alloc %s on %s %s", c.Alloc, cmp.Or(c.NodeName, string(c.Node)), c.State)
	if !c.Since.IsZero() {
		text += " since " + c.Since.Format(time.RFC3339)
	}
	if c.More > 0 {
		text += fmt.Sprintf(", and %d more", c.More)
	}
	return text
}

// Cause names in one line what causes the reason: an allocation, the missing ones of the group or an
// evaluation. It is empty if the reason names none: then it is the allocation itself, or its node.
func (r *AllocExplanation) Cause() string {
	text := ""
	if r.Culprit != nil {
		text = r.Culprit.String()
	}
	if r.Missing > 0 {
		if text != "" {
			text += "; "
		}
		text += "the group lacks " + counted(r.Missing, "allocation")
	}
	if text == "" && r.Eval != nil {
		text = evalCause(r.Eval, r.Group.Name)
	}
	return text
}

// evalCause is why an open evaluation of a group's job is not done, as far as its row has it.
func evalCause(e *cluster.Evaluation, group string) string {
	text := fmt.Sprintf("evaluation %s is %s", e.ID, e.Status)
	if e.Status == cluster.EvalPending {
		return text + ": the scheduler has not processed it"
	}
	queued := e.Queued[group]
	if queued > 0 {
		text += fmt.Sprintf(": %s of the group cannot be placed", counted(queued, "allocation"))
	}
	if e.StatusDescription != "" && (queued == 0 || e.StatusDescription != cluster.BlockedEvalDescription) {
		text += ": " + e.StatusDescription
	}
	return text
}

// first keeps the first of the culprits, and counts the others. It accepts nil.
func (c *Culprit) first(o Culprit) *Culprit {
	if c == nil {
		return &o
	}
	if cmp.Or(cmp.Compare(o.State, c.State), o.Since.Compare(c.Since), cmp.Compare(o.Alloc, c.Alloc)) < 0 {
		o.More, c = c.More, &o
	}
	c.More++
	return c
}

// among returns the first culprit of a list of the group's allocations. It keeps the culprit in cached.
func (g *explained) among(e *Explainer, cached **Culprit, ids []cluster.AllocID) *Culprit {
	if *cached != nil {
		return *cached
	}
	for _, id := range ids {
		if a := e.view.Alloc(id); a != nil {
			*cached = (*cached).first(g.culprit(e, a))
		}
	}
	return *cached
}

// findSick finds the first of the group's allocations that should be healthy and is not, and counts
// the allocations that the group lacks. It does so once: a group below its budget has one or the other.
func (g *explained) findSick(e *Explainer) {
	if g.sick != nil || g.missing > 0 {
		return
	}
	missing := g.group.pace.Count
	for a := range e.view.GroupAllocs(g.group.key) {
		if a.ClientTerminal() || a.Canary() || a.Standby {
			continue
		}
		missing--
		if !a.Healthy(e.Node(a.NodeID)) {
			g.sick = g.sick.first(g.culprit(e, a))
		}
	}
	g.missing = max(0, missing)
}

// culprit returns the allocation of the group with its state.
func (g *explained) culprit(e *Explainer, a *cluster.Allocation) Culprit {
	node := e.Node(a.NodeID)
	c := Culprit{Alloc: a.ID, Node: a.NodeID}
	if node != nil {
		c.NodeName = node.Name
	}
	switch due := g.group.dueAt(a); {
	case a.ClientTerminal():
		c.State, c.Since = CulpritNotReplaced, a.ModifyTime
	case !canReport(a, node):
		c.State, c.Since = CulpritSilent, silentSince(a, node)
	case a.ServerTerminal():
		c.State, c.Since = CulpritStopping, orModified(a.StoppedAt, a)
	case a.Marked():
		c.State, c.Since = CulpritMarked, orModified(a.DesiredTransition.MarkedAt, a)
	case g.plans(a.ID):
		c.State, c.Since = CulpritUnwritten, e.term.Marks[a.ID].Since
	case cluster.HoldsSurge(a) && a.Healthy(node):
		c.State, c.Since = CulpritAwaitsReplacement, orModified(a.DesiredTransition.SurgeAt, a)
	case a.JudgedHealthy():
		c.State, c.Since = CulpritNotRunning, a.ModifyTime
	case a.HasVerdict():
		c.State, c.Since = CulpritUnhealthy, orModified(a.DeploymentStatus.Timestamp, a)
	case e.now.Before(due):
		c.State, c.Since = CulpritUnjudged, a.CreateTime
	default:
		c.State, c.Since = CulpritOverdue, due
	}
	return c
}

// silentSince is since when the client of an allocation cannot report it, or zero. A node that is
// back, or does not exist, has no such time.
func silentSince(a *cluster.Allocation, n *cluster.Node) time.Time {
	if n == nil || n.Reachable() || n.StatusChangedAt.IsZero() {
		return a.ModifyTime
	}
	return n.StatusChangedAt
}

// orModified returns the time, or that of the allocation's last write if there is none.
func orModified(t time.Time, a *cluster.Allocation) time.Time {
	if t.IsZero() {
		return a.ModifyTime
	}
	return t
}

// culpritBefore returns the first allocation of the stages before the stage that has to leave the node: of
// the earliest stage, by id.
func (o *onNode) culpritBefore(s cluster.Stage, n *cluster.Node) *Culprit {
	c := &Culprit{Node: n.ID, NodeName: n.Name, State: CulpritStays, More: -1}
	for _, earlier := range cluster.Stages() {
		if earlier >= s {
			break
		}
		on := &o[earlier] // both lists are sorted
		heads := slices.Concat(on.staying[:min(1, len(on.staying))], on.leaving[:min(1, len(on.leaving))])
		if c.Alloc == "" && len(heads) > 0 {
			c.Alloc = slices.MinFunc(heads, compareID).ID
		}
		c.More += o.left(earlier)
	}
	if c.Alloc == "" {
		return nil
	}
	return c
}
