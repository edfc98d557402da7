package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/shortage"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// tally counts what the entries of a play do. It reads only entries and the state after them.
type tally struct {
	question Question
	times    times
	nodes    map[cluster.NodeID]*NodeResult
	groups   map[cluster.GroupKey]*groupTally
	// allocs counts the allocations on these nodes at the begin.
	allocs int
	// running counts the drains that have begun and not ended.
	running int
	lastEnd time.Time
	// movedTwice counts the placements on nodes of the question.
	movedTwice int
	// cut means that the play reached a limit.
	cut bool
}

// groupTally is a group with allocations on the nodes of the question.
type groupTally struct {
	GroupResult
	// marked is the time of the newest round, or zero before the first one.
	marked time.Time
	// requested means that a drain has requested a replacement before a mark.
	requested bool
	// now is the number of healthy allocations after the newest entry. lowSince and downSince are since when
	// it is the lowest, or zero: the zero time if it is not.
	now                 int
	lowSince, downSince time.Time
}

func newTally(state *statestore.Snapshot, q Question, times times) *tally {
	if q.Running {
		for n := range state.DrainView().DrainingNodes() {
			if n.Drain.PausedSince(state.DrainView().DrainPause()).IsZero() {
				q.Nodes = append(q.Nodes, n.ID)
			}
		}
	}
	t := &tally{question: q, times: times, nodes: make(map[cluster.NodeID]*NodeResult, len(q.Nodes)), groups: map[cluster.GroupKey]*groupTally{}}
	for _, id := range q.Nodes {
		n := &NodeResult{Node: id, Name: state.Node(id).Name, Observed: true}
		t.nodes[id] = n
		if q.Running {
			t.running++
		}
		for a := range state.WorkView().LiveAllocsByNode(id) {
			t.allocs++
			g := t.watch(state, a)
			if a.Leaving() {
				n.Observed = n.Observed && g.Observed
			}
		}
	}
	return t
}

// watch counts the health of the group of an allocation from now on.
func (t *tally) watch(state *statestore.Snapshot, a *cluster.Allocation) *groupTally {
	k := a.GroupKey()
	if g := t.groups[k]; g != nil {
		return g
	}
	g := &groupTally{GroupResult: GroupResult{Key: k, Type: a.JobType(), Healthy: state.DrainView().Healthy(k)}}
	if pace, ok := cluster.PaceOf(state.Job(k.Job), k.Name); ok {
		g.Count = pace.Count
		g.Observed = t.times.complete(k, g.Type)
		surges := !pace.StopsFirst && max(pace.MaxSurge, t.question.Spec.MaxSurge) > 0 // it needs no room
		g.NoRoom = g.Type == cluster.JobService && pace.Room(g.Healthy) <= 0 && !surges
	}
	g.now, g.Lowest = g.Healthy, g.Healthy
	t.groups[k] = g
	return g
}

// entry counts an applied entry.
func (t *tally) entry(a shims.Applied, now time.Time) {
	touched := map[cluster.GroupKey]bool{}
	switch m := a.Message.(type) {
	case *shims.NodeUpdateDrain:
		t.drained(a, m, now)
	case *shims.AllocUpdateDesiredTransition:
		t.marks(a, now, touched)
	case *shims.NodesDrainComplete:
		t.ended(a, now)
	case *shims.AllocClientUpdate:
		for _, r := range m.Reports {
			t.report(a, r, now, touched)
		}
	case *shims.ApplyPlan:
		for _, stop := range m.Stops {
			t.touch(a.After.Alloc(stop.Alloc), touched)
		}
		for _, place := range m.Places {
			if placed := a.After.Alloc(place.ID); placed != nil && t.nodes[placed.NodeID] != nil {
				t.movedTwice++ // a draining node gets no work
			}
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(touched), cluster.GroupKey.Compare) {
		t.groups[k].count(a.After, now, t.question.At)
	}
}

func (t *tally) touch(a *cluster.Allocation, touched map[cluster.GroupKey]bool) {
	if a != nil && t.groups[a.GroupKey()] != nil {
		touched[a.GroupKey()] = true
	}
}

// drained notes the begin of a drain. A node that drains already goes on with its drain.
func (t *tally) drained(a shims.Applied, m *shims.NodeUpdateDrain, now time.Time) {
	n := t.nodes[m.Node]
	if n == nil || a.After.Node(m.Node) == nil || !a.After.Node(m.Node).Draining() {
		return
	}
	n.Began = now.Sub(t.question.At)
	t.running++
}

// marks notes the accepted marks of the drains of the question, and their requests for replacements.
func (t *tally) marks(a shims.Applied, now time.Time, touched map[cluster.GroupKey]bool) {
	response, ok := a.Response.(shims.MarksApplied)
	if !ok {
		return
	}
	for _, mark := range response.Accepted {
		marked := a.After.Alloc(mark.Alloc)
		if marked == nil || t.nodes[marked.NodeID] == nil {
			continue
		}
		g := t.watch(a.Before, marked)
		n := t.nodes[marked.NodeID]
		n.Observed = n.Observed && g.Observed
		if mark.Surge {
			g.requested = true
			continue
		}
		g.Moves++
		if !g.marked.Equal(now) {
			g.Rounds++
			g.marked = now
		}
		touched[g.Key] = true
	}
}

// ended notes the ends of drains.
func (t *tally) ended(a shims.Applied, now time.Time) {
	response, ok := a.Response.(shims.CompletionsApplied)
	if !ok {
		return
	}
	for _, end := range response.Ended {
		n := t.nodes[end.Node]
		if n == nil {
			continue
		}
		record, _ := a.After.Story(end.Drain)
		if record == nil {
			continue
		}
		n.Outcome, n.Marked, n.StillStopping = record.Outcome, record.Marked, record.StillStopping
		n.Took = now.Sub(t.question.At) - n.Began
		t.running--
		t.lastEnd = now
	}
}

// report notes the report of a client.
func (t *tally) report(a shims.Applied, r cluster.AllocReport, now time.Time, touched map[cluster.GroupKey]bool) {
	after := a.After.Alloc(r.Alloc)
	if after == nil {
		return
	}
	g := t.groups[after.GroupKey()]
	if g == nil {
		return
	}
	touched[g.Key] = true
	if n := t.nodes[after.NodeID]; n != nil && after.ClientTerminal() && after.Marked() {
		n.Last = g.Key
		g.Left = now.Sub(t.question.At)
	}
}

// count counts the healthy allocations after an entry. Began is the begin of the play.
func (g *groupTally) count(state *statestore.Snapshot, now, began time.Time) {
	g.now = state.DrainView().Healthy(g.Key)
	if g.marked.IsZero() {
		return
	}
	if g.now < g.Lowest {
		g.Lowest, g.LowestFor, g.lowSince, g.LowestAt = g.now, 0, now, now.Sub(began)
		if pace, ok := cluster.PaceOf(state.Job(g.Key.Job), g.Key.Name); ok {
			g.Needed = -pace.Room(0)
		}
	}
	since(&g.lowSince, &g.LowestFor, g.now == g.Lowest && g.Lowest < g.Healthy, now)
	since(&g.downSince, &g.Down, g.now == 0 && g.Healthy > 0, now)
}

// since adds the time that a condition has held, when it ends.
func since(from *time.Time, sum *time.Duration, holds bool, now time.Time) {
	switch {
	case holds && from.IsZero():
		*from = now
	case !holds && !from.IsZero():
		*sum += now.Sub(*from)
		*from = time.Time{}
	}
}

// recovered reports whether each group has as many healthy allocations as before its first mark.
func (t *tally) recovered() bool {
	//lint:order all groups must pass
	for _, g := range t.groups {
		if !g.marked.IsZero() && g.Type == cluster.JobService && g.now < g.Healthy {
			return false
		}
	}
	return true
}

// result returns what came of the play.
func (t *tally) result(p *play) *Result {
	state := p.fsm.Store().Snapshot()
	r := &Result{Cut: t.cut, Entries: p.log.entries, MovedTwice: t.movedTwice}
	if t.running == 0 && p.begun == len(p.question.Nodes) && !t.lastEnd.IsZero() {
		r.Took = t.lastEnd.Sub(t.question.At)
	}
	for _, id := range t.question.Nodes {
		n := t.nodes[id]
		if node := state.Node(id); node != nil && node.Draining() {
			n.Marked = node.Drain.Marked
			if report, err := p.drainer.Explain(id, p.now); err == nil {
				for _, a := range report.Allocs {
					n.Waits = append(n.Waits, a.WithoutTexts())
				}
			}
		}
		r.Nodes = append(r.Nodes, *n)
	}
	for _, k := range slices.SortedFunc(maps.Keys(t.groups), cluster.GroupKey.Compare) {
		g := t.groups[k]
		if g.marked.IsZero() {
			continue
		}
		g.count(state, p.now, t.question.At)
		since(&g.lowSince, &g.LowestFor, false, p.now)
		since(&g.downSince, &g.Down, false, p.now)
		g.Recovered = g.now >= g.Healthy
		r.Groups = append(r.Groups, g.GroupResult)
	}
	r.Unplaced = t.unplaced(state)
	return r
}

// unplaced returns the groups of the drains with allocations that the scheduler could not place.
func (t *tally) unplaced(state *statestore.Snapshot) (all []Unplaced) {
	for e := range state.WorkView().BlockedEvals() {
		why := shortage.Of(state, e)
		for _, name := range slices.Sorted(maps.Keys(e.Queued)) {
			k := cluster.GroupKey{Job: e.JobKey(), Name: name}
			if g := t.groups[k]; g == nil || g.marked.IsZero() && !g.requested || e.Queued[name] == 0 {
				continue
			}
			all = append(all, Unplaced{Key: k, Allocs: e.Queued[name], Why: why[name]})
		}
	}
	slices.SortFunc(all, func(a, b Unplaced) int { return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.Allocs, b.Allocs)) })
	return all
}
