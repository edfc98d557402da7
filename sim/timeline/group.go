package timeline

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// group is a service group with an allocation on a draining node.
type group struct {
	key cluster.GroupKey
	// healthy are its healthy allocations.
	healthy map[cluster.AllocID]bool
	// levels are the changes of the group's level; not empty once the group has a lane.
	levels []level
	// marks counts the marks on its allocations.
	marks int
	// violated counts the violations that name the group.
	violated int
}

// level is the health of a group from a time on.
type level struct {
	moment
	healthy int
	// limit is the lowest number of healthy allocations that the migrate block allows. count is
	// the count of the job. Both are zero if the group does not exist.
	limit, count int
	exists       bool
}

// room is the number of further allocations that the drainer could have marked.
func (l level) room() int { return l.healthy - l.limit }

// below reports whether the group was below its limit.
func (l level) below() bool { return l.exists && l.room() < 0 }

// tight reports whether the group had no room.
func (l level) tight() bool { return l.exists && l.room() == 0 && l.healthy < l.count }

// whole reports whether no healthy allocation was missing.
func (l level) whole() bool { return !l.exists || l.healthy >= l.count }

// pace returns the level with the limit and the count of a job's group.
func (l level) pace(j *cluster.Job, name string) level {
	p, exists := opinion.PaceOf(j, name)
	l.limit, l.count, l.exists = 0, 0, exists
	if exists {
		l.limit, l.count = p.Limit(), p.Count
	}
	return l
}

// recordLevel records the level of the group at a time, if the level has changed.
func (g *group) recordLevel(at time.Duration, j *cluster.Job) {
	now := level{healthy: len(g.healthy)}.pace(j, g.key.Name)
	if len(g.levels) > 0 {
		now.at = g.levels[len(g.levels)-1].at
		if now == g.levels[len(g.levels)-1] {
			return
		}
	}
	now.at = at
	g.levels = append(g.levels, now)
}

// count records whether an allocation is healthy.
func (g *group) count(id cluster.AllocID, healthy bool) {
	if healthy {
		g.healthy[id] = true
	} else {
		delete(g.healthy, id)
	}
}

// lowest is the level with the least room. Of equal ones it is the first.
func (g *group) lowest() level {
	low := g.levels[0]
	for _, l := range g.levels[1:] {
		if l.exists && (!low.exists || l.room() < low.room()) {
			low = l
		}
	}
	return low
}

// name is "job.group", without the default namespace, and without a group of the job's name.
func (g *group) name() string { return scenario.GroupText(g.key) }

// glyph is the character of the level.
func (l level) glyph(g drawing.Glyphs) rune {
	if !l.below() && l.whole() {
		return g.Whole
	}
	return g.Room(l.room())
}
