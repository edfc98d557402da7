package rules

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
)

// stageState is the progress of one stage of a drain.
type stageState struct {
	// over means that the next stage need not wait for this one.
	over bool
	// staying means that an allocation has to leave and is not leaving yet.
	staying bool
	// waitEnds is when the wait for one stopping allocation ends. Plan the stage again then. It
	// is set only after the deadline, for a stage that waits for stopping allocations.
	waitEnds time.Time
}

// stageOf returns the progress of one stage of a node's drain. Before the deadline a stage is over
// when it has no allocations left. After the deadline it is also over when nothing is left to mark
// and the stopping allocations have used their time. It then does not wait for allocations that
// cannot report.
//
// It reads no more than necessary. Before the deadline it reads at most one allocation that has to
// leave. It uses the count of consumers, unless CompletionMarked depends on whether they are
// leaving.
func (s *Planner) stageOf(n *cluster.Node, stage cluster.Stage) stageState {
	if !n.Drain.Leaves(stage) {
		return stageState{over: true}
	}
	taken := passed(s, n)
	if stage == cluster.StageConsumers && !taken && s.policy.Completion != CompletionMarked {
		return stageState{over: s.view.Consumers(n.ID) == 0}
	}
	for a := range s.view.NodeAllocs(n.ID, stage, false) {
		if s.leaves(a, n) {
			return stageState{staying: true}
		}
	}
	for a := range s.view.NodeAllocs(n.ID, stage, true) {
		switch {
		case !s.leaves(a, n):
			continue
		case !taken:
			return stageState{}
		}
		// One allocation that the stage waits for is enough. To read all of them after each client
		// report would cost the square of their number.
		if ends := waitEnd(a, n, s.policy); canReport(a, n) && s.now.Before(ends) {
			return stageState{waitEnds: ends}
		}
	}
	return stageState{over: true}
}

// waitEnd is when the wait for a leaving allocation ends after the deadline: its stop time and a
// margin, counted from the deadline or from its mark or stop, whichever is later.
func waitEnd(a *cluster.Allocation, n *cluster.Node, p Policy) time.Time {
	since := a.DesiredTransition.MarkedAt
	if !a.Marked() {
		since = a.StoppedAt
	}
	// Added one by one: the sum of two durations may overflow.
	return latest(since, passedAt(n.Drain)).Add(a.StopTimeOn(n)).Add(p.StopMargin)
}

// passedAt is when the drain's deadline passes, or when the drain was forced. It has no meaning
// for a drain without a deadline.
func passedAt(d *cluster.Drain) time.Time {
	if d.Strategy.Forced() {
		return d.UpdatedAt
	}
	return d.Strategy.ForceDeadline
}

// turnHasCome reports whether the stages before this one are over, so that it may begin. With
// [PluginsAfterStop], plugins wait, also after the deadline, until no allocation of these stages is
// left that can report. The answer is the same for every allocation of a stage and is cached.
func (s *Planner) turnHasCome(n *cluster.Node, stage cluster.Stage) bool {
	if stage == cluster.StageConsumers {
		return true // the first
	}
	key := turn{node: n.ID, stage: stage}
	come, cached := s.turns[key]
	if !cached {
		come = s.findTurn(n, stage)
		s.turns[key] = come
	}
	return come
}

func (s *Planner) findTurn(n *cluster.Node, stage cluster.Stage) bool {
	toTheEnd := stage == cluster.StagePlugins && s.policy.PluginsAfterDeadline == PluginsAfterStop
	for _, before := range cluster.Stages() {
		if before >= stage {
			return true
		}
		if !s.stageOf(n, before).over {
			return false
		}
		if toTheEnd && n.Drain.Leaves(before) && s.stillStopping(n, before) {
			return false
		}
	}
	return true
}

// stillStopping reports whether an allocation of the stage can report and is not client-terminal.
func (s *Planner) stillStopping(n *cluster.Node, stage cluster.Stage) bool {
	for a := range s.view.NodeAllocs(n.ID, stage, true) {
		if canReport(a, n) {
			return true
		}
	}
	return false
}

// onNode are the allocations on a draining node that are not client-terminal. staying and leaving
// have to leave; the drain leaves excluded on the node.
type onNode [cluster.StageCount]struct{ staying, leaving, excluded []*cluster.Allocation }

func (s *Planner) allocsOn(n *cluster.Node) *onNode {
	var on onNode
	for stage := range on {
		o := &on[stage]
		o.staying = slices.AppendSeq(o.staying, s.view.NodeAllocs(n.ID, cluster.Stage(stage), false))
		o.leaving = slices.AppendSeq(o.leaving, s.view.NodeAllocs(n.ID, cluster.Stage(stage), true))
		exclude := func(a *cluster.Allocation) bool {
			if s.leaves(a, n) {
				return false
			}
			o.excluded = append(o.excluded, a)
			return true
		}
		o.staying, o.leaving = slices.DeleteFunc(o.staying, exclude), slices.DeleteFunc(o.leaving, exclude)
	}
	return &on
}

func (o *onNode) count() int {
	n := 0
	for s, stage := range o {
		n += o.left(cluster.Stage(s)) + len(stage.excluded)
	}
	return n
}

// left counts the allocations of a stage that have to leave.
func (o *onNode) left(s cluster.Stage) int { return len(o[s].staying) + len(o[s].leaving) }

// bound is the latest end of a drain with a deadline, judged now, while there is a leader with a
// quorum. writeTime bounds the time until a write is applied. Stage after stage, leaving
// allocations take their stop time; the others are marked within writeTime and then take their stop
// time. The completion takes another writeTime. bound is zero under [PluginsAfterStop] with plugins
// on the node.
func (o *onNode) bound(n *cluster.Node, now time.Time, p Policy, writeTime time.Duration) time.Time {
	bound := latest(now, passedAt(n.Drain))
	for _, s := range cluster.Stages() {
		end, any := o.stageBound(n, s, bound.Add(writeTime), p)
		if any && s == cluster.StagePlugins && p.PluginsAfterDeadline == PluginsAfterStop {
			return time.Time{}
		}
		bound = latest(bound, end)
	}
	return bound.Add(writeTime)
}

// stageBound is the latest time at which the stage is over if its staying allocations are marked at
// markedAt, and whether it has any allocation.
func (o *onNode) stageBound(n *cluster.Node, s cluster.Stage, markedAt time.Time, p Policy) (end time.Time, any bool) {
	for _, a := range o[s].leaving {
		end, any = latest(end, waitEnd(a, n, p)), true
	}
	for _, a := range o[s].staying {
		end, any = latest(end, markedAt.Add(a.StopTimeOn(n)).Add(p.StopMargin)), true
	}
	return end, any
}

// earliest returns the earlier of two times, where zero means none.
func earliest(a, b time.Time) time.Time { return alarm.Earliest(a, b) }

// latest returns the later of two times. Zero is before any other.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
