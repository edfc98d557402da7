package timeline

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// group is a service group that drains concerned.
type group struct {
	key cluster.GroupKey
	// healthy are its allocations that count.
	healthy map[cluster.AllocID]bool
	// levels are what it came to, each other than the one before it; never empty
	// once it is followed.
	levels []level
	// marks counts the marks on its allocations.
	marks int
	// violated counts the violations that name it.
	violated int
}

// level is how a group stood from a time on.
type level struct {
	at      time.Duration
	healthy int
	// limit is how few the migrate block allows of the count that the group wants.
	// Both are zero if it does not exist.
	limit, count int
	exists       bool
}

// room is how many more could have been marked. A group that does not exist has
// none to keep.
func (l level) room() int { return l.healthy - l.limit }

// below reports whether the group had fewer than its limit.
func (l level) below() bool { return l.exists && l.room() < 0 }

// tight reports whether the group had no room.
func (l level) tight() bool { return l.exists && l.room() == 0 && l.healthy < l.count }

// whole reports whether nothing was missing.
func (l level) whole() bool { return !l.exists || l.healthy >= l.count }

// pace is the level's limit and count as a job has them.
func (l level) pace(j *cluster.Job, name string) level {
	p, exists := opinion.PaceOf(j, name)
	l.limit, l.count, l.exists = 0, 0, exists
	if exists {
		l.limit, l.count = p.Limit(), p.Count
	}
	return l
}

// settle notes how the group stands from a time on.
func (g *group) settle(at time.Duration, j *cluster.Job) {
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

// count has an allocation count as healthy or not.
func (g *group) count(id cluster.AllocID, healthy bool) {
	if healthy {
		g.healthy[id] = true
	} else {
		delete(g.healthy, id)
	}
}

// lowest is the level with the least room, the first of equals.
func (g *group) lowest() level {
	low := g.levels[0]
	for _, l := range g.levels[1:] {
		if l.exists && (!low.exists || l.room() < low.room()) {
			low = l
		}
	}
	return low
}

// name is the job's id and the group's name, the latter once if they are the same.
func (g *group) name() string { return groupName(g.key) }

func groupName(g cluster.GroupKey) string {
	name := string(g.Job.ID)
	if g.Job.Namespace != cluster.DefaultNamespace {
		name = g.Job.String()
	}
	if g.Name != string(g.Job.ID) {
		name += "." + g.Name
	}
	return name
}
