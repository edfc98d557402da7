package drainer

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// stageState is how far one stage of a drain has come.
type stageState struct {
	// over: nothing of the stage is left that the next one waits for.
	over bool
	// staying: something that has to leave has not been asked to.
	staying bool
	// waitEnds is when the wait for what still stops runs out, or zero if it has
	// no end: before the deadline.
	waitEnds time.Time
}

// stageOf looks at one stage of a node's drain. Before the deadline a stage is
// over when nothing of it is left. Once the deadline has passed it is also over
// when nothing is left to ask and what still stops has had its time; what is out
// of touch is not waited for then.
//
// It looks no further than it must: until the deadline, at one allocation.
func (m *moment) stageOf(n *cluster.Node, s cluster.Stage) stageState {
	if !n.Drain.Leaves(s) {
		return stageState{over: true}
	}
	for range m.view.NodeAllocs(n.ID, s, false) {
		return stageState{staying: true}
	}
	passed := n.Drain.Strategy.Passed(m.now)
	var ends time.Time
	for a := range m.view.NodeAllocs(n.ID, s, true) {
		if !passed {
			return stageState{}
		}
		if inTouch(a, n) {
			ends = latest(ends, waitEnd(a, n.Drain, m.policy))
		}
	}
	return stageState{over: !m.now.Before(ends), waitEnds: ends}
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
	key := turn{node: n.ID, stage: s}
	come, known := m.turns[key]
	if !known {
		come = m.findTurn(n, s)
		m.turns[key] = come
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

// EndBound is when the node's drain ends at the latest while there is a leader
// with a quorum: the deadline, and for each stage the longest stop time in it,
// the stop margin, and writeTime, which bounds how long the drainer takes to get
// a write applied; once more writeTime for the completion. It is zero for a
// drain without a deadline, and under [AfterStop] with plugins on the node.
func EndBound(v View, n *cluster.Node, p Policy, writeTime time.Duration) time.Time {
	p = p.withDefaults()
	if !n.Draining() || !n.Drain.Strategy.Finite() {
		return time.Time{}
	}
	bound := passedAt(n.Drain).Add(writeTime)
	for _, s := range cluster.Stages() {
		if !n.Drain.Leaves(s) {
			continue
		}
		longest, any := longestStop(v, n.ID, s)
		if !any {
			continue
		}
		if s == cluster.StagePlugins && p.PluginsAfterDeadline == AfterStop {
			return time.Time{}
		}
		bound = bound.Add(longest).Add(p.StopMargin).Add(writeTime)
	}
	return bound
}

func longestStop(v View, n cluster.NodeID, s cluster.Stage) (longest time.Duration, any bool) {
	for _, asked := range [...]bool{false, true} {
		for a := range v.NodeAllocs(n, s, asked) {
			longest, any = max(longest, a.StopTime()), true
		}
	}
	return longest, any
}
