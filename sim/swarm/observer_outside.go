package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// What is done to the cluster while nodes drain: a generator that drew none of it any
// more would leave everything else as it is.

// clockSet counts a clock that is set, and one by which a term begins that is wrong.
func (o *Observer) clockSet(term int, ahead time.Duration) {
	begins := term > o.clockOf
	o.count(ClockSkewed, begins && ahead != 0 && ahead.Abs() <= maxSkew)
	if !begins && term == o.clockOf {
		o.count(ClockForward, ahead-o.ahead > maxSkew)
		o.count(ClockBack, o.ahead-ahead > maxSkew)
	}
	o.clockOf, o.ahead = max(o.clockOf, term), ahead
}

// edited counts what a new version of a job changes while a node drains.
func (o *Observer) edited(a shims.Applied, m *shims.JobRegister) {
	before := a.Before.Job(m.Job.Key())
	if before == nil || draining(a.Before) == 0 {
		return
	}
	limit, scale, groups := false, false, len(before.TaskGroups) != len(m.Job.TaskGroups)
	for _, g := range m.Job.TaskGroups {
		was := before.Group(g.Name)
		if was == nil {
			groups = true
			continue
		}
		limit = limit || limitOf(was) != limitOf(g)
		scale = scale || was.Count != g.Count
	}
	o.count(LimitEdited, limit)
	o.count(JobScaled, scale)
	o.count(GroupsEdited, groups)
}

func limitOf(g *cluster.TaskGroup) int {
	if g.Migrate == nil {
		return cluster.DefaultMaxParallel
	}
	return g.Migrate.MaxParallel
}

// returned counts a node that was out of touch or unknown and is there again.
func (o *Observer) returned(a shims.Applied, id cluster.NodeID) {
	o.count(NodeReturned, draining(a.Before) > 0 && !a.Before.Node(id).Reachable() && a.After.Node(id).Reachable())
}
