//race:skip one goroutine
package collect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// apply applies a request as the state machine does.
func (f *fixture) apply(r *collect.Request) (deleted collect.Rows) {
	f.t.Helper()
	f.write(func(txn *statestore.Txn) (err error) {
		deleted, err = collect.Apply(txn.State().WorkView(), txn, r)
		return err
	})
	return deleted
}

// run applies the whole round, and returns how many rows each request deleted.
func (f *fixture) run(r *collect.Round) (sizes []int) {
	f.t.Helper()
	for request := r.Next(f.state().WorkView()); request != nil; request = r.Next(f.state().WorkView()) {
		sizes = append(sizes, f.apply(request).Len())
	}
	return sizes
}

// The job has run, was moved, and was stopped. A single round takes everything of it: what it
// deletes first is all that keeps the rest.
func TestARoundTakesAStoppedJobWithAllOfIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.eval(f.web, "e1", cluster.EvalComplete)
	f.eval(f.web, "e2", cluster.EvalComplete)
	a := ended(f.web, "a")
	a.EvalID = "e1"
	f.place(a)
	b := running(f.web, "b", "a")
	b.EvalID = "e2"
	f.place(b)
	f.stop(f.web)
	f.end("b")

	round, err := collect.NewRound(collect.Options{}, three.Add(time.Hour))
	must.NoError(t, err)
	must.Eq(t, []int{1, 1}, f.run(round), must.Sprint("the job goes after the fourth hour, and what would run again goes with it"))
	must.NotNil(t, f.state().Job(f.web.Key()))
	must.Eq(t, collect.Held{Allocs: 2, EndedAllocs: 2, Evals: 3, EndedEvals: 3, Jobs: 1, EndedJobs: 1}, round.Held())

	round, err = collect.NewRound(collect.Options{}, three.Add(time.Hour+1))
	must.NoError(t, err)
	must.Eq(t, []int{1, 1, 1}, f.run(round))
	must.Nil(t, f.state().Job(f.web.Key()))
	must.Eq(t, 0, count(f.state().Evals())+count(f.state().Allocs()))
}

// A finished batch job goes in one piece, and work of it that is left never runs again.
func TestARoundTakesAFinishedBatchJobInOnePiece(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.batch("a", "b", "c")
	round, err := collect.NewRound(collect.Options{}, noon.Add(4*time.Hour))
	must.NoError(t, err)
	must.Eq(t, 0, len(f.run(round)), must.Sprint("it may go after the fourth hour"))
	must.Eq(t, 3, count(f.state().Allocs()))

	round, err = collect.NewRound(collect.Options{}, noon.Add(4*time.Hour+1))
	must.NoError(t, err)
	must.Eq(t, []int{1}, f.run(round))
	must.Eq(t, 1, round.Held().EndedJobs)
	must.Nil(t, f.state().Job(f.web.Key()))
	must.Eq(t, 0, count(f.state().Evals())+count(f.state().Allocs()))
}

func count[T any](rows func(func(T) bool)) (n int) {
	for range rows {
		n++
	}
	return n
}

// Above the bound the oldest go, however young they are. No request is larger than a batch.
func TestARoundKeepsTheNewestOfTooMany(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 10 {
		f.at = noon.Add(time.Duration(i) * time.Second)
		f.place(ended(f.web, cluster.AllocID(fmt.Sprint("a", i))))
	}
	round, err := collect.NewRound(collect.Options{MaxAllocs: 3, MaxBatch: 4}, f.at.Add(time.Second))
	must.NoError(t, err)
	must.Eq(t, []int{4, 3}, f.run(round))
	for i := range 10 {
		must.Eq(t, i >= 7, f.state().Alloc(cluster.AllocID(fmt.Sprint("a", i))) != nil, must.Sprint(i))
	}
}

// Between the leader's read and the entry a client has reported, an evaluation was created, and the
// job was started again. The entry leaves these alone and deletes the rest.
func TestAnEntryJudgesAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.place(ended(f.web, "a"))
	lost := ended(f.web, "b")
	lost.ClientStatus, lost.NodeID = cluster.ClientLost, "n2"
	f.place(lost)
	old := f.job(clustertest.Job("old", cluster.JobService, 1))
	f.stop(old)
	f.at = three
	request := &collect.Request{
		Before: collect.Before{Allocs: three, Evals: three, Jobs: three},
		Rows: collect.Rows{
			Allocs: []cluster.AllocID{"b", "a", "a", "gone"}, Evals: []cluster.EvalID{"gone"},
			Jobs: []cluster.JobKey{old.Key(), old.Key()},
		},
	}
	f.write(func(txn *statestore.Txn) error {
		txn.UpdateAllocsFromClient([]cluster.AllocReport{clustertest.Report(lost, cluster.ClientComplete, f.at)}, time.Time{})
		return txn.UpsertJob(clustertest.Job("old", cluster.JobService, 1))
	})
	must.Eq(t, []cluster.AllocID{"a"}, f.apply(request).Allocs)
	must.Nil(t, f.state().Alloc("a"))
	must.NotNil(t, f.state().Alloc("b"))
	must.NotNil(t, f.state().Job(old.Key()))
}

// The collector begins a round at each interval, pauses between requests, and waits until the
// cluster has a version that supports them. A clock that is set back does not stop it.
func TestACollectorWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 3 {
		f.place(ended(f.web, cluster.AllocID(fmt.Sprint("a", i))))
	}
	c, err := collect.NewCollector(collect.Options{Interval: time.Minute, MaxBatch: 2, Pause: time.Second}, three)
	must.NoError(t, err)
	step := func(at time.Time) (rows int, wait time.Duration) {
		request, next := c.Step(f.state().WorkView(), at)
		if request != nil {
			rows = f.apply(request).Len()
		}
		return rows, next.Sub(at)
	}
	expect := func(at time.Time, wantRows int, wantWait time.Duration) {
		t.Helper()
		rows, wait := step(at)
		must.Eq(t, wantRows, rows)
		must.Eq(t, wantWait, wait)
	}
	expect(three, 0, time.Minute)
	expect(three.Add(-time.Hour), 0, time.Minute)
	at := three.Add(-59 * time.Minute)
	expect(at, 2, time.Second)
	expect(at, 0, time.Second)
	expect(at.Add(time.Second), 1, time.Second)
	expect(at.Add(2*time.Second), 0, 58*time.Second)
	expect(at.Add(time.Minute), 0, time.Minute)

	f.place(ended(f.web, "b"))
	expect(at.Add(2*time.Minute), 1, time.Second)
	expect(at.Add(-30*time.Minute), 0, time.Minute) // the clock is set back in a round
	expect(at.Add(-29*time.Minute), 0, time.Minute)
	at = at.Add(-30 * time.Minute)

	old := statestore.New()
	request, next := c.Step(old.Snapshot().WorkView(), at.Add(2*time.Minute))
	must.Nil(t, request)
	must.Eq(t, at.Add(3*time.Minute), next)
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := collect.NewRound(collect.Options{EvalAge: -time.Second}, noon)
	must.EqError(t, err, "collect: Options.EvalAge is -1s and must be >= 0")
	_, err = collect.NewCollector(collect.Options{MaxBatch: -1}, noon)
	must.EqError(t, err, "collect: Options.MaxBatch is -1 and must be >= 0")
}
