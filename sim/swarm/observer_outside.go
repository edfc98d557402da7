package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// These events are operations while nodes drain. If the generator stopped drawing them, no other event
// would become rarer.

// clockSet counts changes of the leader's clock, and terms that begin with a wrong clock.
func (o *Observer) clockSet(term int, ahead time.Duration) {
	begins := term > o.clockTerm
	o.count(ClockSkewed, begins && ahead != 0 && ahead.Abs() <= maxSkew)
	if !begins && term == o.clockTerm {
		o.count(ClockForward, ahead-o.ahead > maxSkew)
		o.count(ClockBack, o.ahead-ahead > maxSkew)
	}
	o.clockTerm, o.ahead = max(o.clockTerm, term), ahead
}

// edited counts the changes of a job while a node drains.
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

// returned counts a node that returns after it was unreachable or unknown.
func (o *Observer) returned(a shims.Applied, id cluster.NodeID) {
	o.count(NodeReturned, draining(a.Before) > 0 && !a.Before.Node(id).Reachable() && a.After.Node(id).Reachable())
}
