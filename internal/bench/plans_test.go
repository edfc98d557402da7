package main

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/plan"
)

// figurePlans: what an operator waits for after a question about drains. The state has observed the times of all
// groups, so that the plays are different ones.
func figurePlans(b *testing.B) {
	few, many := drainCase{20, 1000, 50}, drainCase{1000, 10_000, 50}
	if measure.SizeOf(b) == measure.Small {
		few, many = drainCase{4, 100, 10}, drainCase{10, 200, 10}
	}
	for _, l := range []struct {
		name   string
		layout layout
	}{{"jobs-on-neighbours", dealt}, {"jobs-anywhere", 0}} {
		b.Run(fmt.Sprintf("first/%s/%s", few, l.name), func(b *testing.B) { newPlayWorld(b, few, 1, l.layout).playOnce(b, time.Second) })
		b.Run(fmt.Sprintf("all/%s/%s", few, l.name), func(b *testing.B) { newPlayWorld(b, few, 1, l.layout).playAll(b, 50*time.Second) })
		b.Run(fmt.Sprintf("many/%s/%s", many, l.name), func(b *testing.B) { newPlayWorld(b, many, 10, l.layout).playOnce(b, 100*time.Second) })
	}
}

// playWorld is a cluster with a question.
type playWorld struct {
	*testCluster
	question plan.Question
	allocs   int // how many have to leave
}

func newPlayWorld(b *testing.B, c drainCase, maxParallel int, l layout) *playWorld {
	t := newCluster(b, clusterPlan{
		nodes: c.nodes, perNode: c.perNode, jobSize: 20, layout: l, job: cluster.JobService, maxParallel: maxParallel, observed: true,
	})
	return &playWorld{t, plan.Question{Nodes: t.nodes[:c.drained], At: epoch.Add(time.Minute)}, c.drained * c.perNode}
}

// playOnce measures one play.
func (w *playWorld) playOnce(b *testing.B, bound time.Duration) {
	w.measure(b, bound, func() {
		r, err := plan.Play(context.Background(), w.fsm.Store(), w.question, plan.Settings{})
		must.NoError(b, err)
		moves := 0
		for _, g := range r.Groups {
			must.True(b, g.Observed)
			moves += g.Moves
		}
		must.Positive(b, r.Took)
		must.SliceEmpty(b, r.Unplaced)
		measure.Count(b, w.allocs-moves, "kept")
		measure.Count(b, float64(r.Entries)/float64(moves), "entries/move")
		measure.Count(b, r.Took.Seconds(), "virtual-s")
	})
}

// playAll measures the answer of all plays, with the play of the drains one after the other.
func (w *playWorld) playAll(b *testing.B, bound time.Duration) {
	w.measure(b, bound, func() {
		a, err := plan.Answer(context.Background(), w.fsm.Store(), w.question, plan.Settings{}, 0, nil)
		must.NoError(b, err)
		must.EqOp(b, plan.DefaultPlays, a.Plays)
		must.Less(b, a.Most, a.Least)
		measure.Count(b, w.allocs-a.Allocs, "kept")
		measure.Count(b, a.Plays, "plays")
	})
}

// measure measures the processor time of a plan on one processor, with the collector, and counts what it writes to the
// state. On an idle second processor the collector would use more time than it needs.
func (w *playWorld) measure(b *testing.B, bound time.Duration, work func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var times []time.Duration
	before := w.fsm.Store().Snapshot().Index()
	for range measure.PairsOf(b) {
		times = append(times, measure.CPU(work))
	}
	reportTimes(b, "cpu", times, bound)
	measure.Count(b, w.fsm.Store().Snapshot().Index()-before, "writes")
}
