package drainer

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// What is asked takes room until it is answered; what was applied is in the state
// by then; what failed is wanted again.
func TestJobWatcher_Answers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer  Answer
		applied bool
		want    []cluster.AllocID // wanted after the answer
		again   []cluster.AllocID // and a second later
	}{
		"applied":  {Answer{Outcome: Applied}, true, nil, nil},
		"rejected": {Answer{Outcome: Rejected}, false, []cluster.AllocID{"a1"}, nil},
		"unknown":  {Answer{Outcome: Unknown}, false, []cluster.AllocID{"a1"}, nil},
		"refused":  {Answer{Outcome: Applied, Refused: []Refusal{{Alloc: "a1"}}}, false, nil, []cluster.AllocID{"a1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := newTown(2, 4)
			begin.drain("n1", 0)
			w := newWatch(begin, Policy{})
			w.register(web)
			r := w.request()
			must.Eq(t, []cluster.AllocID{"a1"}, wished(r))

			w.state.commit(func(t *town) { t.place("b1", t.jobs[0], "n1"); t.group().Count = 5 })
			w.step()
			must.Nil(t, w.request(), must.Sprint("a mark that is asked takes the room: nothing else is wanted"))

			if test.applied {
				w.state.commit(func(t *town) { t.mark(r.Marks, nil, w.now); t.index-- })
			}
			r.Reply(DrainReply{Answer: test.answer, At: w.now, Marks: r.Marks})
			wakeAt := w.step()
			must.Eq(t, test.want, wished(w.request()))
			if test.again != nil {
				must.Eq(t, w.now.Add(time.Second), wakeAt)
				w.now = wakeAt
				w.step()
				must.Eq(t, test.again, wished(w.request()))
			}
		})
	}
}

// A group whose marks keep being refused is planned less and less often; another
// group of the same answer is not.
func TestJobWatcher_RefusedGroupBacksOff(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 1)
	other := begin.job("other", cluster.JobService)
	begin.place("b1", other, "n1")
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.register(web, cluster.GroupKey{Job: other.Key(), Name: "g"})
	for _, wait := range []time.Duration{1, 2, 4, 8} {
		r := w.request()
		must.Eq(t, []cluster.AllocID{"b1", "a1"}, wished(r))
		r.Reply(DrainReply{Answer: Answer{Outcome: Applied, Refused: []Refusal{{Alloc: "a1"}}}, At: w.now, Marks: r.Marks[1:]})
		wakeAt := w.step()
		must.Eq(t, []cluster.AllocID{"b1"}, wished(w.request()))
		must.Eq(t, w.now.Add(wait*time.Second), wakeAt)
		w.now = wakeAt
		w.step()
	}
	// Answers of one step that refuse it are one refusal, and one that does not
	// ends the row.
	r := w.request()
	r.Reply(DrainReply{Answer: Answer{Outcome: Applied}, At: w.now, Marks: r.Marks[1:]})
	w.step()
	for range 2 {
		r.Reply(DrainReply{Answer: Answer{Outcome: Applied, Refused: []Refusal{{Alloc: "a1"}}}, At: w.now, Marks: r.Marks[1:]})
	}
	must.Eq(t, w.now.Add(time.Second), w.step())
}

// The wait after a refusal begins when the drainer was told of it: a watcher that is
// stepped later does not wait once more.
func TestJobWatcher_WaitsFromTheAnswer(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 1)
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.register(web)
	r := w.request()
	r.Reply(DrainReply{Answer: Answer{Outcome: Applied, Refused: []Refusal{{Alloc: "a1"}}}, At: w.now, Marks: r.Marks})
	w.now = w.now.Add(time.Second)
	w.step()
	must.Eq(t, []cluster.AllocID{"a1"}, wished(w.request()))
}

// What a group wished besides is taken back while it waits after a refusal, if another
// state does not bear it: planned from an older one, it would be refused too. Nothing is
// added before the wait is over.
func TestJobWatcher_TakesBackWhileItWaits(t *testing.T) {
	t.Parallel()
	begin := newTown(2, 6)
	begin.drain("n1", 0)
	begin.group().Migrate.MaxParallel = 3
	w := newWatch(begin, Policy{})
	w.register(web)
	r := w.request()
	must.Eq(t, []cluster.AllocID{"a1", "a3", "a5"}, wished(r))
	r.Reply(DrainReply{Answer: Answer{Outcome: Applied, Refused: []Refusal{{Alloc: "a1"}}}, At: w.now, Marks: r.Marks[:1]})
	w.step()
	must.Eq(t, []cluster.AllocID{"a3", "a5"}, wished(w.request()))

	limit := func(most int) []cluster.AllocID {
		w.state.commit(func(t *town) { t.group().Migrate.MaxParallel = most })
		w.step()
		return wished(w.request())
	}
	must.Eq(t, []cluster.AllocID{"a3"}, limit(1))
	must.SliceEmpty(t, limit(0))
	must.SliceEmpty(t, limit(3))
	w.now = w.now.Add(time.Second)
	w.step()
	must.Eq(t, []cluster.AllocID{"a1", "a3", "a5"}, wished(w.request()))
}

// An evaluation that was wanted and not written is not waited for: it came from
// elsewhere, failed, and one is wanted at once. Nor is one whose write failed.
func TestJobWatcher_EvaluationNeverWritten(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 1)
	begin.drain("n1", 0)
	begin.alloc("a1").DesiredTransition.Migrate = true
	w := newWatch(begin, Policy{})
	w.register(web)
	must.Eq(t, []cluster.GroupKey{web}, w.request().Reevaluate)
	for _, status := range []cluster.EvalStatus{cluster.EvalPending, cluster.EvalFailed} {
		w.state.commit(func(t *town) {
			t.evals = []*cluster.Evaluation{{ID: "e", Namespace: "default", JobID: "web", Status: status}}
		})
		w.step()
	}
	r := w.request()
	must.Eq(t, []cluster.GroupKey{web}, r.Reevaluate)
	r.Reply(DrainReply{Answer: Answer{Outcome: Rejected}, At: w.now, Reevaluated: r.Reevaluate})
	w.step()
	must.Eq(t, []cluster.GroupKey{web}, w.request().Reevaluate)
}

// An evaluation that is wanted and has come from elsewhere is not wanted any more,
// and the next time one is missing it is wanted at once again.
func TestJobWatcher_EvaluationFromElsewhere(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 1)
	begin.drain("n1", 0)
	begin.alloc("a1").DesiredTransition.Migrate = true
	w := newWatch(begin, Policy{})
	w.register(web)
	must.Eq(t, []cluster.GroupKey{web}, w.request().Reevaluate)
	w.state.commit(func(t *town) {
		t.evals = []*cluster.Evaluation{{ID: "e", Namespace: "default", JobID: "web", Status: cluster.EvalPending}}
	})
	w.step()
	must.SliceEmpty(t, w.request().Reevaluate)
	w.state.commit(func(t *town) { t.alloc("a1").DesiredTransition.Migrate = false; t.evals = nil })
	w.step()
	w.state.commit(func(t *town) { t.alloc("a1").DesiredTransition.Migrate = true })
	w.step()
	must.Eq(t, []cluster.GroupKey{web}, w.request().Reevaluate)
}

// A marked allocation that runs on without an evaluation has its job evaluated
// again at once, then with backoff, until it stops.
func TestJobWatcher_Reevaluates(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 1)
	begin.drain("n1", 0)
	begin.alloc("a1").DesiredTransition.Migrate = true
	w := newWatch(begin, Policy{})
	w.register(web)
	answer := func() {
		r := w.request()
		must.NotNil(t, r)
		must.Eq(t, []cluster.GroupKey{web}, r.Reevaluate)
		must.SliceEmpty(t, r.Marks)
		r.Reply(DrainReply{Answer: Answer{Outcome: Applied}, At: w.now, Reevaluated: r.Reevaluate})
	}
	answer()
	for i, wait := range []time.Duration{1, 2, 4} {
		// The evaluation is made, and fails.
		status := cluster.EvalPending
		for _, status = range []cluster.EvalStatus{cluster.EvalPending, cluster.EvalFailed} {
			w.state.commit(func(t *town) {
				t.evals = []*cluster.Evaluation{{ID: "e", Namespace: "default", JobID: "web", Status: status, CreateIndex: uint64(i + 1)}}
			})
			w.step()
			r := w.request()
			must.True(t, r == nil || len(r.Reevaluate) == 0, must.Sprintf("evaluation %d is %s", i+1, status))
		}
		wakeAt := w.step()
		must.Eq(t, w.now.Add(wait*time.Second), wakeAt)
		w.now = wakeAt
		w.step()
		answer()
	}
	w.state.commit(func(t *town) { t.alloc("a1").ClientStatus = cluster.ClientComplete })
	must.True(t, w.step().IsZero())
	must.MapEmpty(t, w.state.feed().follows())
}

// An answer that comes after its group was let go is nobody's business.
func TestJobWatcher_LateAnswer(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 1)
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.register(web)
	r := w.request()
	w.state.commit(func(t *town) { t.node("n1").Drain = nil })
	w.register(web)
	r.Reply(DrainReply{Answer: Answer{Outcome: Applied, Refused: []Refusal{{Alloc: "a1"}}}, At: w.now, Marks: r.Marks, Reevaluated: []cluster.GroupKey{web}})
	must.True(t, w.step().IsZero())
	must.MapEmpty(t, w.groups)
}

// A request names no more marks than a round may take: the first of them, and when
// they are answered the next. What is named is no matter of what is planned.
func TestJobWatcher_NamesTheNextWhenTheFirstAreAnswered(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 3)
	begin.group().Migrate.MaxParallel = 3
	other := begin.job("other", cluster.JobService)
	begin.place("b1", other, "n1")
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.ahead = 2
	w.register(web, cluster.GroupKey{Job: other.Key(), Name: "g"})
	for _, want := range [][]cluster.AllocID{{"b1", "a1"}, {"a2", "a3"}} {
		r := w.request()
		must.Eq(t, want, wished(r))
		w.state.commit(func(t *town) { t.mark(r.Marks, nil, w.now); t.index-- })
		w.step()
		w.request()
		r.Reply(DrainReply{Answer: Answer{Outcome: Applied}, At: w.now, Marks: r.Marks})
		w.step()
	}
	must.SliceEmpty(t, wished(w.request()))
}
