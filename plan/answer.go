package plan

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/shortage"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

const (
	// DefaultPlays is the number of plays with observed times.
	DefaultPlays = 39
	// leastForRange is how many plays a range needs at least.
	leastForRange = 19
)

// Answer plays the drains of a question several times, and returns what they would do. Zero plays is
// [DefaultPlays]. If no group has observed times, all plays are equal, and Answer plays once. More is called
// after each play with the number of plays that are done, and ends them by false; nil never does. Errors are
// those of [Play].
func Answer(ctx context.Context, store *statestore.Store, q Question, s Settings, plays int, more func(done int) bool) (*drainplan.Answer, error) {
	base := store.Fork()
	if plays == 0 {
		plays = DefaultPlays
	}
	var results []*Result
	for i := range plays {
		s.Seed = uint64(i)
		r, err := Play(ctx, base, q, s)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
		if !r.observed() || more != nil && !more(len(results)) {
			break
		}
	}
	slices.SortStableFunc(results, func(a, b *Result) int { return cmp.Compare(a.end(), b.end()) })
	median := results[len(results)/2]
	a := median.answer(base.Snapshot())
	if s.Elsewhere {
		a.Limits = append(a.Limits, "placement was not judged: in the plan every replacement finds a place")
	}
	paused := q.resumes(base.Snapshot())
	if paused {
		a.Limits = append(a.Limits, "all drains are paused: in the plan they are resumed when it begins")
	}
	a.Plays = len(results)
	if least, most := results[0], results[len(results)-1]; len(results) >= leastForRange && most.Took > 0 {
		a.Least, a.Most = least.Took, most.Took
	}
	for _, r := range results {
		lowestOf(a.Groups, r.Groups)
	}
	if err := addComparisons(ctx, base, q, s, median, a); err != nil {
		return nil, err
	}
	if q.Spec.MaxSurge > 0 {
		stopsFirst(a.Groups, base.Snapshot())
	}
	if a.Sentence = sentence(a, q); paused {
		a.Sentence += "; all drains are paused now"
	}
	return a, nil
}

// addComparisons adds what other questions show: the deadline that would be enough, and the allocations that would move
// twice.
func addComparisons(ctx context.Context, base *statestore.Store, q Question, s Settings, median *Result, a *drainplan.Answer) error {
	s.Seed = 0
	if q.Spec.Deadline > 0 && a.Taken > 0 {
		without := q
		without.Spec.Deadline = 0
		r, err := Play(ctx, base, without, s)
		if err != nil {
			return err
		}
		a.EnoughDeadline = roundedUp(r.Took)
	}
	if len(q.Nodes) > 1 && !q.OneByOne {
		inTurn := q
		inTurn.OneByOne = true
		r, err := Play(ctx, base, inTurn, s)
		if err != nil {
			return err
		}
		a.MovedTwice = r.MovedTwice
	} else {
		a.MovedTwice = median.MovedTwice
	}
	return nil
}

// roundedUp rounds a time up to what an operator would write.
func roundedUp(d time.Duration) time.Duration {
	unit := 10 * time.Second
	switch {
	case d > time.Hour:
		unit = 5 * time.Minute
	case d > 10*time.Minute:
		unit = time.Minute
	}
	return (d + unit - 1) / unit * unit
}

// end is the time to the end of the drains. Without an end it is longer than all others.
func (r *Result) end() time.Duration {
	if r.Took == 0 {
		return math.MaxInt64
	}
	return r.Took
}

// observed reports whether a group has observed times.
func (r *Result) observed() bool {
	return slices.ContainsFunc(r.Groups, func(g GroupResult) bool { return g.Observed })
}

// answer returns what came of one play.
func (r *Result) answer(state *statestore.Snapshot) *drainplan.Answer {
	a := &drainplan.Answer{Index: state.Index(), Took: r.Took, Observed: len(r.Groups) > 0, Limits: r.limits()}
	for _, n := range r.Nodes {
		w := drainplan.Node{
			ID: string(n.Node), Name: n.Name, Began: n.Began, Took: n.Took, Outcome: string(n.Outcome),
			Allocs: n.allocs(), Taken: n.Taken(), StillStopping: n.StillStopping,
		}
		if n.Outcome == cluster.OutcomeNone {
			w.Outcome, w.Waits = "", wire.NewDrainAllocs(n.Node, n.Waits)
		}
		a.Allocs += w.Allocs
		a.Taken += w.Taken
		a.Nodes = append(a.Nodes, w)
	}
	for _, g := range r.Groups {
		a.Observed = a.Observed && g.Observed
		a.Groups = append(a.Groups, drainplan.Group{
			Namespace: string(g.Key.Job.Namespace), JobID: string(g.Key.Job.ID), Group: g.Key.Name, Type: string(g.Type), Count: g.Count,
			Moves: g.Moves, Rounds: g.Rounds, Healthy: g.Healthy, Lowest: g.Lowest, Needed: g.Needed,
			LowestAt: g.LowestAt, LowestFor: g.LowestFor, Down: g.Down, Left: g.Left, NoRoom: g.NoRoom, Recovered: g.Recovered, Observed: g.Observed,
		})
	}
	slices.SortStableFunc(a.Groups, func(a, b drainplan.Group) int { return cmp.Compare(b.Left, a.Left) })
	if len(a.Groups) > 0 {
		a.Groups[0].Longest = true
	}
	for _, u := range r.Unplaced {
		a.Unplaced = append(a.Unplaced, drainplan.Unplaced{
			Namespace: string(u.Key.Job.Namespace), JobID: string(u.Key.Job.ID), Group: u.Key.Name, Allocs: u.Allocs,
			Why: shortage.Line(map[string]*wire.AllocationMetric{u.Key.Name: u.Why}, u.Key.Name),
		})
	}
	return a
}

// allocs counts the allocations that leave.
func (n NodeResult) allocs() (sum int) {
	for _, marked := range n.Marked {
		sum += marked
	}
	return sum
}

// lowestOf notes the lowest health and the longest time without a healthy allocation of all plays.
func lowestOf(groups []drainplan.Group, played []GroupResult) {
	for i := range groups {
		g := &groups[i]
		for _, p := range played {
			if string(p.Key.Job.Namespace) == g.Namespace && string(p.Key.Job.ID) == g.JobID && p.Key.Name == g.Group {
				g.Down = max(g.Down, p.Down)
				if p.Lowest < g.Lowest {
					g.Lowest, g.Needed, g.LowestAt, g.LowestFor = p.Lowest, p.Needed, p.LowestAt, p.LowestFor
				}
			}
		}
	}
}

// stopsFirst notes why groups have no replacement beside their allocations, although the drains have a max_surge.
func stopsFirst(groups []drainplan.Group, state *statestore.Snapshot) {
	for i := range groups {
		g := &groups[i]
		j := state.Job(cluster.JobKey{Namespace: cluster.Namespace(g.Namespace), ID: cluster.JobID(g.JobID)})
		if of := j.Group(g.Group); of != nil && j.Type == cluster.JobService {
			g.StopsFirst = cluster.StopsFirst(of)
		}
	}
}

// limits are the things that a play does not show.
func (r *Result) limits() []string {
	all := []string{"nodes may go down, jobs may be changed, and other operators may start drains"}
	if slices.ContainsFunc(r.Groups, func(g GroupResult) bool { return g.Type.ToCompletion() }) {
		all = append(all, "batch work may end sooner: in the plan it runs until it is stopped")
	}
	if slices.ContainsFunc(r.Groups, func(g GroupResult) bool { return !g.Observed }) {
		all = append(all, "the times of some groups were never observed: in the plan they start in 2 s, and the other times are those that their jobs declare and, for volumes, their nodes")
	}
	if r.Cut {
		all = append(all, "the plan ended early, at its limit of time or of entries: it lacks everything that comes later")
	}
	return all
}
