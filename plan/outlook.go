package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Estimate is when a running drain ends about.
type Estimate struct {
	// Ends is that time.
	Ends time.Time
	// Later is why the drain ends later than estimated before, or empty. It stays until the drain ends earlier
	// than that again.
	Later string
}

// Outlook has the estimates of all running drains. Its owner calls Play again and again, because things change
// or do not happen when expected. The zero value has none. It is not safe for concurrent use.
type Outlook struct {
	// index is that of the state of the last play.
	index     uint64
	estimates map[cluster.DrainID]Estimate
	// healthy has, for each group that the drains move, how many allocations were healthy.
	healthy map[cluster.GroupKey]int
}

// Estimates returns the estimate of each running drain that has one. A drain has none if it is paused, if it does not
// end as things are, or if the times of an allocation that has to leave were never observed. The caller must not
// change the map.
func (o *Outlook) Estimates() map[cluster.DrainID]Estimate { return o.estimates }

// lateness is how much later than before a drain must end until an estimate gives the reason.
const lateness = 5 * time.Second

// Play makes the estimates from the store's newest state. After an error the old ones stay.
func (o *Outlook) Play(ctx context.Context, store *statestore.Store, at time.Time, s Settings) error {
	s.Typical = true
	copied := store.Fork()
	state := copied.Snapshot()
	r, err := Play(ctx, copied, Question{Running: true, At: at}, s)
	if err != nil {
		return err
	}
	estimates, healthy := make(map[cluster.DrainID]Estimate, len(r.Nodes)), make(map[cluster.GroupKey]int, len(r.Groups))
	for _, g := range r.Groups {
		healthy[g.Key] = g.Healthy
	}
	for _, n := range r.Nodes {
		node := state.Node(n.Node)
		if n.Outcome == cluster.OutcomeNone || !n.Observed || !node.Draining() {
			continue
		}
		e := Estimate{Ends: at.Add(n.Took)}
		if before, known := o.estimates[node.Drain.ID]; known {
			e.Later = before.Later
			switch late := e.Ends.Sub(before.Ends); {
			case late > lateness:
				e.Later = o.why(state, r, n)
			case late < -lateness:
				e.Later = ""
			}
		}
		estimates[node.Drain.ID] = e
	}
	o.index, o.estimates, o.healthy = state.Index(), estimates, healthy
	return nil
}

// why returns what has happened since the last play that explains a later end, or what has not happened.
func (o *Outlook) why(state *statestore.Snapshot, r *Result, n NodeResult) string {
	if uint64(state.Node(n.Node).Drain.Revision) > o.index {
		return "the drain was changed"
	}
	for other := range state.Nodes() {
		switch {
		case other.ModifyIndex <= o.index:
		case other.Status != cluster.NodeReady:
			return fmt.Sprintf("node %s is %s", other.Name, other.Status)
		case other.Draining() && other.Drain.CreateIndex > o.index:
			return fmt.Sprintf("the drain of node %s began", other.Name)
		case other.SchedulingEligibility != cluster.NodeEligible && !other.Draining():
			return fmt.Sprintf("node %s became ineligible", other.Name)
		}
	}
	for _, g := range r.Groups {
		if j := state.Job(g.Key.Job); j != nil && j.JobModifyIndex > o.index {
			return fmt.Sprintf("job %s was changed", g.Key.Job.ID)
		}
	}
	for _, u := range r.Unplaced {
		return fmt.Sprintf("%s has no place", groupName(string(u.Key.Job.ID), u.Key.Name))
	}
	for _, g := range r.Groups {
		if before, known := o.healthy[g.Key]; known && g.Healthy < before && g.Healthy < g.Needed {
			return fmt.Sprintf("%s has %d healthy allocations, %d before", groupName(string(g.Key.Job.ID), g.Key.Name), g.Healthy, before)
		}
	}
	if n.Last.Job.ID == "" {
		return "the drain takes longer than before"
	}
	last := groupName(string(n.Last.Job.ID), n.Last.Name)
	if slices.ContainsFunc(r.Groups, func(g GroupResult) bool { return g.Key == n.Last }) {
		return last + " takes longer than before"
	}
	return "allocations of " + last + " take longer to stop than before"
}
