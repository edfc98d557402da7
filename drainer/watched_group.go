package drainer

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// watchedGroup is what a job watcher keeps of a group with allocations on draining nodes.
// Everything except the retries and hold times can be derived from the state.
type watchedGroup struct {
	key cluster.GroupKey
	// nodes are the draining nodes of the group's live allocations at its last plan, in order,
	// once for each allocation.
	nodes []cluster.NodeID
	// retries spaces the group's marks, reevaluated its evaluations.
	retries     retries
	reevaluated attempts
	// held are the reasons for which allocations of the group are held, each with the time of the
	// first plan with it. A reason keeps its time only while this watcher plans from every state of
	// the group: see restartHolds. The slice is replaced, never written to.
	held []hold
	// foreign is what the last plan has found that no drain does, or nil.
	foreign map[foreignKey]bool
}

// hold is a reason for which allocations of a group are held, and since when.
type hold struct {
	reason rules.Reason
	since  time.Time
}

// Compare orders groups by key.
func (g *watchedGroup) Compare(o *watchedGroup) int { return g.key.Compare(o.key) }

// restartHolds removes the times of the hold reasons, so that the next plan sets them again. It is
// called when states of the group were skipped: a reason may have ended and begun again in them.
func (g *watchedGroup) restartHolds() { g.held = nil }

// noteHolds records since when each reason holds.
func (g *watchedGroup) noteHolds(holds [rules.ReasonCount]bool, now time.Time) {
	var held []hold
	for reason, holds := range holds {
		if holds {
			held = append(held, hold{rules.Reason(reason), now})
		}
	}
	for i, h := range held {
		for _, before := range g.held {
			if before.reason == h.reason {
				held[i].since = before.since
			}
		}
	}
	g.held = held
}

// reevaluate reports whether the group's job needs another evaluation: immediately the first time,
// then after growing waits while marked allocations still run. It returns when to check again, or
// zero.
func (g *watchedGroup) reevaluate(plan rules.GroupPlan, now time.Time) (needed bool, at time.Time) {
	switch {
	case !plan.RunsOnMarked:
		g.reevaluated = attempts{}
	case plan.Stuck:
		at = g.reevaluated.wait(now)
		return at.IsZero(), at
	}
	return false, time.Time{}
}

// departed returns the nodes on which the group has fewer allocations than before. Both lists are
// in order.
func departed(before, after []cluster.NodeID) []cluster.NodeID {
	var left []cluster.NodeID
	for _, id := range before {
		for len(after) > 0 && after[0] < id {
			after = after[1:]
		}
		if len(after) > 0 && after[0] == id {
			after = after[1:]
			continue
		}
		left = append(left, id)
	}
	return left
}

// watchedGroups are groups by job. Those of a job are in order of their names.
type watchedGroups map[cluster.JobKey][]*watchedGroup

// find returns the place of the group among those of its job, and whether it is there.
func (w watchedGroups) find(key cluster.GroupKey) (int, bool) {
	return slices.BinarySearchFunc(w[key.Job], key, func(g *watchedGroup, key cluster.GroupKey) int {
		return cmp.Compare(g.key.Name, key.Name)
	})
}

// get returns the group, or nil if it is not there.
func (w watchedGroups) get(key cluster.GroupKey) *watchedGroup {
	if i, is := w.find(key); is {
		return w[key.Job][i]
	}
	return nil
}

// add adds a group that is not in the list.
func (w watchedGroups) add(g *watchedGroup) {
	i, _ := w.find(g.key)
	w[g.key.Job] = slices.Insert(w[g.key.Job], i, g)
}

// remove removes the group, and its job with the last of its groups.
func (w watchedGroups) remove(g *watchedGroup) {
	i, is := w.find(g.key)
	if !is {
		return
	}
	w[g.key.Job] = slices.Delete(w[g.key.Job], i, i+1)
	if len(w[g.key.Job]) == 0 {
		delete(w, g.key.Job)
	}
}
