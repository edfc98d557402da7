package httpapi

import (
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// givenUp returns the groups of the job with slots that the scheduler does not fill again, or nil.
func givenUp(q *request, s State, j *cluster.Job) map[string]wire.GroupGivenUp {
	if q.backend.Planner == nil {
		return nil
	}
	var groups map[string]wire.GroupGivenUp
	for _, id := range q.backend.Planner.GivenUp(j.Key()) {
		a := s.Alloc(id)
		if a == nil {
			continue // the planner has read a newer state
		}
		replaced := 0
		if before := rescheduled(s, a); before != nil {
			replaced = len(before.Events)
		}
		g := groups[a.TaskGroup]
		g.Slots, g.Failed, g.Replaced = g.Slots+1, g.Failed+replaced+1, max(g.Replaced, replaced)
		task, event := lastFailure(a)
		if at := wire.NewTime(event.Time); g.AllocID == "" || at.After(g.At.Time) {
			g.AllocID, g.NodeID, g.Task, g.Event, g.Message, g.At = string(a.ID), string(a.NodeID), task, event.Type, event.Message, at
		}
		if groups == nil {
			groups = make(map[string]wire.GroupGivenUp)
		}
		groups[a.TaskGroup] = g
	}
	return groups
}

// lastFailure returns the newest event that says how a failed task of the allocation failed. If the client
// has reported none, the task is empty, and the message is what the client says of the allocation.
func lastFailure(a *cluster.Allocation) (task string, last cluster.TaskEvent) {
	if a.TaskStates == nil {
		return "", cluster.TaskEvent{Message: a.ClientDescription}
	}
	said := false
	for _, t := range a.TaskStates.Tasks {
		for _, e := range t.Events {
			// Other events say what followed.
			says := e.Type == "Terminated" || strings.HasSuffix(e.Type, "Failure")
			if t.Failed && (says || !said) && (says != said || !e.Time.Before(last.Time)) {
				task, last, said = t.Name, e, says
			}
		}
	}
	if task == "" {
		last.Message = a.ClientDescription
	}
	return task, last
}
