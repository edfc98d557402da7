package foretell

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
	"github.com/seed-f9cf0b39/nodedrain/plan"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Options say how worlds are compared. The zero value is the comparison of promise F3.
type Options struct {
	// Plays is the number of plays of a plan, Unseen the number of worlds that it is compared with. Zero is
	// [plan.DefaultPlays].
	Plays, Unseen int
	// Slower makes everything in the unseen worlds take so many times as long as before, so that the plan is
	// wrong. Zero is once.
	Slower float64
}

// Comparison is a plan and what happened.
type Comparison struct {
	Seed  uint64
	Nodes int
	// Moves: the data of some groups moves, so that their replacements wait for the end of their predecessors.
	Moves bool
	// Observed: all groups that the drains move have observed times. Partly: some have.
	Observed, Partly bool
	// Deadline: the question has one.
	Deadline bool
	// Foretold is the median of the plan, Least and Most are its range; without a range both are zero.
	Foretold, Least, Most time.Duration
	// Happened is the median of the unseen worlds. A time without an end is the longest one that there is.
	Happened time.Duration
	// Unseen counts them, Within those that ended within the range.
	Unseen, Within int
	// Allocs counts the allocations that leave, by the plan. TakenOff is how many more or fewer of them the
	// deadline took than foretold: the median of the unseen worlds.
	Allocs, TakenOff int
	// Lower counts the unseen worlds in which a group was less healthy than in all plays.
	Lower int
}

// Compare compares a plan with what happens, in the cluster of a seed.
func Compare(ctx context.Context, seed uint64, o Options) (*Comparison, error) {
	d := drawDraft(seed)
	store, at, err := d.begin()
	if err != nil {
		return nil, fmt.Errorf("seed %d: %w", seed, err)
	}
	return d.compare(ctx, store, d.question(store.Snapshot(), at), world.Stream(seed, "unseen"), o)
}

// CompareDrains compares plans of drains of single nodes with what happens, in a given cluster. The seed determines
// how long its allocations take, from which drains its servers have learned this, and the nodes. Each drain begins
// in the same state. each gets the comparisons.
func CompareDrains(ctx context.Context, seed uint64, c Cluster, drains int, o Options, each func(*Comparison)) error {
	d := draftOf(seed, c)
	store, at, err := d.begin()
	if err != nil {
		return fmt.Errorf("seed %d: %w", seed, err)
	}
	chance := world.Stream(seed, "unseen")
	for _, q := range d.questions(store.Snapshot(), at, drains) {
		one, err := d.compare(ctx, store, q, chance, o)
		if err != nil {
			return err
		}
		each(one)
	}
	return nil
}

// compare compares the plan of a question with what happens.
func (d *draft) compare(ctx context.Context, store *statestore.Store, q plan.Question, chance *rand.Rand, o Options) (*Comparison, error) {
	o.Unseen = cmp.Or(o.Unseen, plan.DefaultPlays)
	o.Slower = cmp.Or(o.Slower, 1)
	answer, err := plan.Answer(ctx, store, q, plan.Settings{}, o.Plays, nil)
	if err != nil {
		return nil, fmt.Errorf("seed %d: planning: %w", d.seed, err)
	}
	c := &Comparison{
		Seed: d.seed, Nodes: len(d.nodes), Moves: d.moves, Deadline: q.Spec.Deadline > 0, Observed: answer.Observed, Allocs: answer.Allocs,
		Partly:   slices.ContainsFunc(answer.Groups, func(g drainplan.Group) bool { return g.Observed }),
		Foretold: answer.Took, Least: answer.Least, Most: answer.Most, Unseen: o.Unseen,
	}
	if slices.ContainsFunc(answer.Nodes, func(n drainplan.Node) bool { return n.Outcome == "" }) {
		c.Foretold = endless
	}
	var times []time.Duration
	var taken []int
	for range o.Unseen {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h, err := d.play(store, q, chance.Uint64(), o.Slower)
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", d.seed, err)
		}
		times, taken = append(times, h.took), append(taken, h.taken)
		if within(h.took, answer) {
			c.Within++
		}
		if h.lowerThan(answer) {
			c.Lower++
		}
	}
	slices.Sort(times)
	slices.Sort(taken)
	c.Happened, c.TakenOff = times[len(times)/2], taken[len(taken)/2]-answer.Taken
	return c, nil
}

// endless is the time of drains that do not end.
const endless time.Duration = math.MaxInt64

// within reports whether a time is within the range of a plan. Plans are in whole seconds for their readers, so
// times count in whole seconds.
func within(took time.Duration, a *drainplan.Answer) bool {
	t := took.Round(time.Second)
	return a.Most > 0 && t >= a.Least.Round(time.Second) && t <= a.Most.Round(time.Second)
}

// lowerThan reports whether a group was less healthy than in all plays of the plan.
func (h *happened) lowerThan(a *drainplan.Answer) bool {
	for k, lowest := range h.lowest {
		if !slices.ContainsFunc(a.Groups, func(g drainplan.Group) bool {
			return cluster.JobID(g.JobID) == k.Job.ID && g.Group == k.Name && g.Lowest <= lowest
		}) {
			return true
		}
	}
	return false
}

// String returns the comparison in one line.
func (c *Comparison) String() string {
	return fmt.Sprintf("seed %d: %d nodes, observed %v, data moves %v; foretold %s (%s to %s), happened %s; %d of %d within, medians differ by %.0f %%; taken %+d of %d",
		c.Seed, c.Nodes, c.Observed, c.Moves, short(c.Foretold), short(c.Least), short(c.Most), short(c.Happened),
		c.Within, c.Unseen, 100*c.Off(), c.TakenOff, c.Allocs)
}

// short is a time for a reader.
func short(d time.Duration) string {
	if d == endless {
		return "no end"
	}
	return d.Round(100 * time.Millisecond).String()
}

// Off is by how much the foretold median differs from what happened, as a part of that.
func (c *Comparison) Off() float64 {
	if c.Foretold == c.Happened {
		return 0
	}
	if c.Foretold == endless || c.Happened == endless {
		return 1
	}
	return math.Abs(float64(c.Foretold-c.Happened)) / float64(c.Happened)
}
