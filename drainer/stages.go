package drainer

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// stageState is how far one stage of a drain has come.
type stageState struct {
	// over: nothing of the stage is left that the next one waits for.
	over bool
	// staying: something that has to leave has not been asked to.
	staying bool
	// wait is for what still stops; zero if it has no end: before the deadline.
	wait stageWait
}

// stageWait is how long a stage is waited for after the deadline.
type stageWait struct {
	// ends is when the wait runs out, last the allocation that it lasts for.
	ends time.Time
	last cluster.AllocID
}

// stageOf looks at one stage of a node's drain. Before the deadline a stage is
// over when nothing of it is left. Once the deadline has passed it is also over
// when nothing is left to ask and what still stops has had its time; what is out
// of touch is not waited for then.
//
// It looks no further than it must: until the deadline, at one allocation, and at none of
// the consumers, which are counted, unless it matters whether they were asked.
func (m *moment) stageOf(n *cluster.Node, s cluster.Stage) stageState {
	if !n.Drain.Leaves(s) {
		return stageState{over: true}
	}
	passed := n.Drain.Strategy.Passed(m.now)
	if s == cluster.StageConsumers && !passed && m.policy.Completion != Asked {
		return stageState{over: m.consumers(n.ID) == 0}
	}
	for range m.view.NodeAllocs(n.ID, s, false) {
		return stageState{staying: true}
	}
	var wait stageWait
	for a := range m.view.NodeAllocs(n.ID, s, true) {
		if !passed {
			return stageState{}
		}
		if end := waitEnd(a, n.Drain, m.policy); inTouch(a, n) && wait.ends.Before(end) {
			wait = stageWait{ends: end, last: a.ID}
		}
	}
	return stageState{over: !m.now.Before(wait.ends), wait: wait}
}

// inTouch reports whether the allocation's client can say what becomes of it.
func inTouch(a *cluster.Allocation, n *cluster.Node) bool {
	return a.ClientStatus != cluster.ClientUnknown && n.Reachable()
}

// waitEnd is until when an allocation that was asked to leave is waited for once
// the deadline has passed: its stop time and a margin, from the deadline or from
// when it was asked, whichever came later.
func waitEnd(a *cluster.Allocation, d *cluster.Drain, p Policy) time.Time {
	asked := a.DesiredTransition.MarkedAt
	if !a.Marked() {
		asked = a.StoppedAt
	}
	// Added one by one: the sum of two durations may wrap around.
	return latest(asked, passedAt(d)).Add(a.StopTime()).Add(p.StopMargin)
}

// passedAt is when the drain's deadline passes, or when it was forced. It means
// nothing for a drain without a deadline.
func passedAt(d *cluster.Drain) time.Time {
	if d.Strategy.Forced() {
		return d.UpdatedAt
	}
	return d.Strategy.ForceDeadline
}

// turnHasCome reports whether the stages before s are over, so that s may begin.
// With [AfterStop], plugins wait past the deadline too until nothing is left
// that is in touch. The answer is remembered: it is asked once for every
// allocation of a stage and is the same for all of them.
func (m *moment) turnHasCome(n *cluster.Node, s cluster.Stage) bool {
	if s == cluster.StageConsumers {
		return true // which are the first
	}
	key := turn{node: n.ID, stage: s}
	come, known := m.turns[key]
	if !known {
		come = m.findTurn(n, s)
		m.turns[key] = come
		if come && s == cluster.StagePlugins {
			m.pluginsTurns = append(m.pluginsTurns, n.ID)
		}
	}
	return come
}

func (m *moment) findTurn(n *cluster.Node, s cluster.Stage) bool {
	toTheEnd := s == cluster.StagePlugins && m.policy.PluginsAfterDeadline == AfterStop
	for _, before := range cluster.Stages() {
		if before >= s {
			return true
		}
		if !m.stageOf(n, before).over {
			return false
		}
		if toTheEnd && n.Drain.Leaves(before) && m.stillStopping(n, before) {
			return false
		}
	}
	return true
}

// stillStopping reports whether anything of the stage is in touch and not
// client-terminal.
func (m *moment) stillStopping(n *cluster.Node, s cluster.Stage) bool {
	for a := range m.view.NodeAllocs(n.ID, s, true) {
		if inTouch(a, n) {
			return true
		}
	}
	return false
}

// EndBound is when the node's drain ends at the latest, as seen now, while there
// is a leader with a quorum: what is asked has its time, what is not is asked
// within writeTime of its turn and has its time then, stage after stage, and the
// completion takes another writeTime, which bounds how long the drainer takes to
// get a write applied. It is zero for a drain without a deadline, and under
// [AfterStop] with plugins on the node.
func EndBound(v View, n *cluster.Node, now time.Time, p Policy, writeTime time.Duration) time.Time {
	p = p.withDefaults()
	if !n.Draining() || !n.Drain.Strategy.Finite() {
		return time.Time{} // without a look
	}
	return lookOn(v, n).bound(n, now, p, writeTime)
}

// onNode are a node's allocations that are not client-terminal.
type onNode [cluster.StageCount]struct{ staying, asked []*cluster.Allocation }

func lookOn(v View, n *cluster.Node) *onNode {
	var on onNode
	for s := range on {
		on[s].staying = slices.AppendSeq(on[s].staying, v.NodeAllocs(n.ID, cluster.Stage(s), false))
		on[s].asked = slices.AppendSeq(on[s].asked, v.NodeAllocs(n.ID, cluster.Stage(s), true))
	}
	return &on
}

// count counts them all.
func (o *onNode) count() int {
	n := 0
	for _, stage := range o {
		n += len(stage.staying) + len(stage.asked)
	}
	return n
}

// left counts those of a stage that have to leave.
func (o *onNode) left(n *cluster.Node, s cluster.Stage) int {
	if !n.Drain.Leaves(s) {
		return 0
	}
	return len(o[s].staying) + len(o[s].asked)
}

// bound is EndBound of a node that drains, by what is on it.
func (o *onNode) bound(n *cluster.Node, now time.Time, p Policy, writeTime time.Duration) time.Time {
	if !n.Drain.Strategy.Finite() {
		return time.Time{}
	}
	bound := latest(now, passedAt(n.Drain))
	for _, s := range cluster.Stages() {
		if !n.Drain.Leaves(s) {
			continue
		}
		end, any := o.stageBound(n, s, bound.Add(writeTime), p)
		if any && s == cluster.StagePlugins && p.PluginsAfterDeadline == AfterStop {
			return time.Time{}
		}
		bound = latest(bound, end)
	}
	return bound.Add(writeTime)
}

// stageBound is when the stage is over at the latest if what of it stays is
// marked at a time, and whether there is anything of it.
func (o *onNode) stageBound(n *cluster.Node, s cluster.Stage, markedAt time.Time, p Policy) (end time.Time, any bool) {
	for _, a := range o[s].asked {
		end, any = latest(end, waitEnd(a, n.Drain, p)), true
	}
	for _, a := range o[s].staying {
		end, any = latest(end, markedAt.Add(a.StopTime()).Add(p.StopMargin)), true
	}
	return end, any
}
