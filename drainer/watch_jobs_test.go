package drainer

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// watch is a job watcher with its own state. The test acts as the drainer: it steps the watcher,
// writes its requests, and replies.
type watch struct {
	*jobWatcher
	state  *memory
	errors *logged
	now    time.Time
}

func newWatch(w *fixture.Cluster, policy rules.Policy) *watch {
	state, errors := newMemory(w), &logged{}
	env := Env{Logger: slog.New(errors), Feed: state.Subscribe(make(chan struct{}, 1)), Policy: policy, Retry: Backoff{time.Second, time.Minute}}
	return &watch{jobWatcher: NewJobWatcher(env).(*jobWatcher), state: state, errors: errors, now: fixture.Epoch}
}

// step steps the watcher with its feed's changes, and returns the time of its next step and its
// request.
func (w *watch) step() (wakeAt time.Time, request *DrainRequest) {
	wakeAt = w.Step(Reading{Now: w.now, View: w.state.Snapshot(), Changes: w.state.feed().Take()})
	select {
	case request = <-w.Drain():
	default:
	}
	return wakeAt, request
}

// register registers groups, and steps again for newly followed jobs.
func (w *watch) register(groups ...cluster.GroupKey) (wakeAt time.Time, request *DrainRequest) {
	w.RegisterJobs(groups)
	w.step()
	return w.step()
}

// apply writes the marks of a request into the state, and answers it.
func (w *watch) apply(r *DrainRequest) {
	index := w.state.commit(func(t *fixture.Cluster) {
		for _, m := range r.Marks {
			t.Mark(m.Alloc, m.Drain, m.Class, w.now)
		}
	})
	r.Reply(DrainReply{Answer: Answer{Outcome: raftwrite.Applied, Index: index}, At: w.now, Marks: r.Marks, Reevaluated: r.Reevaluate})
}

// refuse answers a request: the marks of these allocations are refused, and the others are
// answered as applied.
func (w *watch) refuse(r *DrainRequest, ids ...cluster.AllocID) {
	reply := DrainReply{Answer: Answer{Outcome: raftwrite.Applied}, At: w.now, Marks: r.Marks}
	for _, id := range ids {
		reply.Response = append(reply.Response, rules.Refusal{Alloc: id})
	}
	r.Reply(reply)
}

func (w *watch) moved() []cluster.NodeID {
	select {
	case m := <-w.Migrated():
		return m
	default:
		return nil
	}
}

// requested are the allocations of a request's marks.
func requested(r *DrainRequest) (ids []cluster.AllocID) {
	if r != nil {
		for _, m := range r.Marks {
			ids = append(ids, m.Alloc)
		}
	}
	return ids
}

// reevaluated are the groups that a request evaluates again.
func reevaluated(r *DrainRequest) []cluster.GroupKey {
	if r == nil {
		return nil
	}
	return r.Reevaluate
}

// A feed does not name a change between the view of a step and a Follow in that step. So the next
// step plans the group again.
func TestJobWatcher_RereadsFollowedGroups(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(1, 1)
	begin.TaskGroup().Count = 5
	begin.StartDrain("n1", 0)
	w := newWatch(begin, rules.Policy{})
	w.RegisterJobs([]cluster.GroupKey{fixture.Group})
	old := w.state.Snapshot()
	w.state.commit(func(t *fixture.Cluster) { t.TaskGroup().Count = 1 }) // the job is not followed yet
	must.Eq(t, w.now, w.Step(Reading{Now: w.now, View: old}), must.Sprint("the next step is now"))
	wakeAt, request := w.step()
	must.Eq(t, []cluster.AllocID{"a1"}, requested(request), must.Sprint("the group has room by now"))
	must.True(t, wakeAt.IsZero())
}

// A newer request replaces an unread one and holds all writes\. When there is nothing
// to write any more, the watcher sends one empty request.
func TestJobWatcher_NewerRequestReplacesUnread(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(2, 4)
	begin.StartDrain("n1", 0)
	w := newWatch(begin, rules.Policy{})
	_, request := w.register(fixture.Group)
	must.Eq(t, []cluster.AllocID{"a1"}, requested(request))
	for room, want := range map[int][]cluster.AllocID{2: {"a1", "a3"}, 1: {"a1"}, 0: nil} {
		w.state.commit(func(t *fixture.Cluster) { t.TaskGroup().Migrate.MaxParallel = 2 - room })
		w.Step(Reading{Now: w.now, View: w.state.Snapshot(), Changes: w.state.feed().Take()})
		w.state.commit(func(t *fixture.Cluster) { t.TaskGroup().Migrate.MaxParallel = room })
		_, request := w.step()
		must.NotNil(t, request)
		must.Eq(t, want, requested(request))
		_, request = w.step()
		must.Eq(t, want, requested(request), must.Sprint("what is needed is requested in every step"))
	}
}

// A job is followed once for all its watched groups, and unfollowed with the last of them.
func TestJobWatcher_Follows(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(2, 2)
	job := begin.Jobs[0]
	second := *job.TaskGroups[0]
	second.Name = "h"
	job.TaskGroups = append(job.TaskGroups, &second)
	begin.Place("h1", job, "n1").TaskGroup = "h"
	begin.StartDrain("n1", 0)
	w := newWatch(begin, rules.Policy{})
	h := cluster.GroupKey{Job: fixture.Group.Job, Name: "h"}
	one := map[cluster.JobKey]int{fixture.Group.Job: 1}
	w.register(fixture.Group, h, fixture.Group)
	w.register(h)
	must.Eq(t, one, w.state.feed().follows())

	// A group without allocations on draining nodes is dropped.
	w.register(cluster.GroupKey{Job: cluster.JobKey{Namespace: "other", ID: "web"}, Name: "g"})
	must.Eq(t, one, w.state.feed().follows())

	w.state.commit(func(t *fixture.Cluster) { t.Alloc("h1").ClientStatus = cluster.ClientComplete })
	w.step()
	must.Eq(t, one, w.state.feed().follows())
	w.state.commit(func(t *fixture.Cluster) { t.Node("n1").Drain = nil })
	_, request := w.register(fixture.Group) // as the term does when a node stops draining
	must.MapEmpty(t, w.state.feed().follows())
	must.MapEmpty(t, w.groups)
	must.False(t, w.agenda.Pending())
	must.True(t, w.agenda.First().IsZero())
	must.SliceEmpty(t, requested(request))
}

// Migrated names the nodes that allocations have left, once for each. Unread names are
// merged into the next.
func TestJobWatcher_MigratedMerges(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(2, 6)
	begin.StartDrain("n1", 0)
	begin.StartDrain("n2", 0)
	w := newWatch(begin, rules.Policy{})
	w.register(fixture.Group)
	must.Nil(t, w.moved())
	w.state.commit(func(t *fixture.Cluster) { t.Alloc("a3").ClientStatus = cluster.ClientComplete })
	w.step()
	w.state.commit(func(t *fixture.Cluster) {
		t.Allocs = slices.DeleteFunc(t.Allocs, func(a *cluster.Allocation) bool { return a.ID == "a1" })
		t.Alloc("a2").ClientStatus = cluster.ClientFailed
	})
	w.step()
	must.Eq(t, []cluster.NodeID{"n1", "n1", "n2"}, w.moved())
	must.Nil(t, w.moved())
}

// The only wake-up is the time at which a missing verdict is overdue.
func TestJobWatcher_WakesWhenHealthIsDue(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(2, 2)
	begin.StartDrain("n1", 0)
	a := begin.Alloc("a1")
	a.DeploymentStatus, a.CreateTime = nil, fixture.Epoch
	w := newWatch(begin, rules.Policy{HealthGrace: 5 * time.Second})
	due := fixture.Epoch.Add(65 * time.Second)
	wakeAt, request := w.register(fixture.Group)
	must.Eq(t, due, wakeAt)
	must.Nil(t, request)
	w.now = due.Add(-1)
	wakeAt, request = w.step()
	must.Eq(t, due, wakeAt)
	must.Nil(t, request)
	w.now = due
	wakeAt, request = w.step()
	must.True(t, wakeAt.IsZero())
	must.Eq(t, []cluster.AllocID{"a1"}, requested(request))
}

// The end of the time for which an allocation is held that was healthy is a wake-up. Without it the
// allocation stayed until another change of its group.
func TestJobWatcher_WakesWhenAnUnhealthyOneIsGivenUp(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(2, 2)
	begin.StartDrain("n1", 0)
	begin.Alloc("a1").DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false), UnhealthySince: fixture.Epoch}
	w := newWatch(begin, rules.Policy{})
	until := fixture.Epoch.Add(time.Minute)
	wakeAt, request := w.register(fixture.Group)
	must.Eq(t, until, wakeAt)
	must.Nil(t, request)
	w.now = until
	wakeAt, request = w.step()
	must.True(t, wakeAt.IsZero())
	must.Eq(t, []cluster.AllocID{"a1"}, requested(request))
}

// The watcher remembers since when a group is held. It has no time for a group that is due.
func TestJobWatcher_Holds(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(2, 2)
	begin.TaskGroup().Count = 9
	begin.StartDrain("n1", 0)
	w := newWatch(begin, rules.Policy{})
	w.register(fixture.Group)
	w.now = fixture.Epoch.Add(time.Minute)
	w.state.commit(func(t *fixture.Cluster) { t.Alloc("a1").ModifyTime = w.now })
	w.step()
	held := map[cluster.GroupKey][]hold{fixture.Group: {{rules.ReasonBelowBudget, fixture.Epoch}}}
	must.Eq(t, held, w.holds(w.now), must.Cmp())
	g := w.groups.get(fixture.Group)
	w.agenda.At(g, w.now.Add(1))
	must.Eq(t, held, w.holds(w.now), must.Cmp())
	must.MapEmpty(t, w.holds(w.now.Add(1)), must.Sprint("the group is due"))

	// Changes that an earlier step could not read may have ended the current reason.
	w.state.commit(func(t *fixture.Cluster) { t.Alloc("a1").ModifyTime = w.now.Add(1) })
	w.Step(Reading{Now: w.now, View: w.state.Snapshot(), Changes: w.state.feed().Take(), Deferred: true})
	must.Eq(t, w.now, w.holds(w.now)[fixture.Group][0].since)
	w.state.commit(func(t *fixture.Cluster) { t.TaskGroup().Count = 2 })
	w.step()
	must.MapEmpty(t, w.holds(w.now), must.Sprint("it is not held any more"))
}

// When everything may have changed, the watcher plans all groups.
func TestJobWatcher_PlansEverythingOnAll(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(1, 2)
	begin.TaskGroup().Count = 9
	begin.StartDrain("n1", 0)
	w := newWatch(begin, rules.Policy{})
	_, request := w.register(fixture.Group)
	must.Nil(t, request)
	w.state.commit(func(t *fixture.Cluster) { t.TaskGroup().Count = 2 })
	w.state.feed().Take() // the hint is lost
	_, request = w.step()
	must.Nil(t, request)
	w.state.feed().add(Changes{All: true})
	_, request = w.step()
	must.Eq(t, []cluster.AllocID{"a1"}, requested(request))
}

// Applied marks are in the state. Rejected and unknown marks are requested again: the outbox spaces
// the writes. A mark that was refused, or was answered as applied and is not in the state, waits,
// and another allocation uses its room.
func TestJobWatcher_Replies(t *testing.T) {
	t.Parallel()
	const lost = "a write was answered as applied, but the state does not show it"
	for name, test := range map[string]struct {
		reply func(*watch, *DrainRequest)
		want  []cluster.AllocID // requested after the reply
		again []cluster.AllocID // requested a second later
		error []string
	}{
		"applied": {reply: (*watch).apply},
		"rejected": {func(w *watch, r *DrainRequest) {
			r.Reply(DrainReply{Answer: Answer{Outcome: raftwrite.Rejected}, At: w.now, Marks: r.Marks})
		}, []cluster.AllocID{"a1"}, []cluster.AllocID{"a1"}, nil},
		"unknown": {func(w *watch, r *DrainRequest) { r.Reply(DrainReply{Answer: Answer{}, At: w.now, Marks: r.Marks}) }, []cluster.AllocID{"a1"}, []cluster.AllocID{"a1"}, nil},
		"refused": {func(w *watch, r *DrainRequest) { w.refuse(r, "a1") }, []cluster.AllocID{"a3"}, []cluster.AllocID{"a1"}, nil},
		"lost":    {func(w *watch, r *DrainRequest) { w.refuse(r) }, []cluster.AllocID{"a3"}, []cluster.AllocID{"a1"}, []string{lost}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := fixture.NewCluster(2, 4)
			begin.StartDrain("n1", 0)
			w := newWatch(begin, rules.Policy{})
			_, request := w.register(fixture.Group)
			must.Eq(t, []cluster.AllocID{"a1"}, requested(request))
			test.reply(w, request)
			wakeAt, request := w.step()
			must.Eq(t, test.want, requested(request))
			must.Eq(t, len(test.want) == 1 && test.want[0] == "a3", wakeAt.Equal(w.now.Add(time.Second)))
			w.now = w.now.Add(time.Second)
			_, request = w.step()
			must.Eq(t, test.again, requested(request))
			must.Eq(t, test.error, w.errors.messages)
		})
	}
}

// A refused mark waits longer each time, counted from the reply. The other marks of its group do
// not wait.
func TestJobWatcher_RefusedMarkBacksOff(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(1, 2)
	begin.TaskGroup().Migrate.MaxParallel = 2
	begin.StartDrain("n1", 0)
	w := newWatch(begin, rules.Policy{})
	_, request := w.register(fixture.Group)
	for _, wait := range []time.Duration{1, 2, 4, 8} {
		must.Eq(t, []cluster.AllocID{"a1", "a2"}, requested(request))
		request.Marks = request.Marks[:1]
		w.refuse(request, "a1")
		w.now = w.now.Add(time.Millisecond) // stepped later than the reply
		var wakeAt time.Time
		wakeAt, request = w.step()
		must.Eq(t, []cluster.AllocID{"a2"}, requested(request))
		must.Eq(t, w.now.Add(wait*time.Second-time.Millisecond), wakeAt)
		w.now = wakeAt
		_, request = w.step()
	}
}

// The job of a marked allocation that still runs and has no evaluation is evaluated again:
// immediately, then after growing waits, until the allocation stops.
func TestJobWatcher_Reevaluates(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(1, 1)
	begin.StartDrain("n1", 0)
	begin.Alloc("a1").DesiredTransition.Migrate = true
	w := newWatch(begin, rules.Policy{})
	_, request := w.register(fixture.Group)
	for i, wait := range []time.Duration{1, 2, 4} {
		must.Eq(t, []cluster.GroupKey{fixture.Group}, reevaluated(request))
		must.SliceEmpty(t, request.Marks)
		w.apply(request)
		for _, status := range []cluster.EvalStatus{cluster.EvalPending, cluster.EvalFailed} {
			w.state.commit(func(t *fixture.Cluster) {
				t.Evals = []*cluster.Evaluation{{ID: "e", Namespace: "default", JobID: "web", Status: status, CreateIndex: uint64(i + 1)}}
			})
			_, request = w.step()
			must.SliceEmpty(t, reevaluated(request), must.Sprintf("evaluation %d is %s", i+1, status))
		}
		wakeAt, _ := w.step()
		must.Eq(t, w.now.Add(wait*time.Second), wakeAt)
		w.now = wakeAt
		_, request = w.step()
	}
	w.state.commit(func(t *fixture.Cluster) { t.Alloc("a1").ClientStatus = cluster.ClientComplete })
	wakeAt, _ := w.step()
	must.True(t, wakeAt.IsZero())
	must.MapEmpty(t, w.state.feed().follows())
}

// The watcher does not wait for an evaluation that was not written. A rejected evaluation is requested
// again without a wait, and so is one after a failed evaluation of another source.
func TestJobWatcher_EvaluationNotWritten(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(1, 1)
	begin.StartDrain("n1", 0)
	begin.Alloc("a1").DesiredTransition.Migrate = true
	w := newWatch(begin, rules.Policy{})
	again := []cluster.GroupKey{fixture.Group}
	_, request := w.register(fixture.Group)
	must.Eq(t, again, reevaluated(request))
	request.Reply(DrainReply{Answer: Answer{Outcome: raftwrite.Rejected}, At: w.now, Reevaluated: request.Reevaluate})
	_, request = w.step()
	must.Eq(t, again, reevaluated(request))
	for status, want := range map[cluster.EvalStatus][]cluster.GroupKey{cluster.EvalPending: nil, cluster.EvalFailed: again} {
		w.state.commit(func(t *fixture.Cluster) {
			t.Evals = []*cluster.Evaluation{{ID: "e", Namespace: "default", JobID: "web", Status: status}}
		})
		_, request = w.step()
		must.Eq(t, want, reevaluated(request), must.Sprintf("%s", status))
	}
}

// When no marked allocation still runs, the count of evaluations is reset.
func TestJobWatcher_ReevaluationsAreCountedInARow(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(1, 1)
	begin.StartDrain("n1", 0)
	begin.Alloc("a1").DesiredTransition.Migrate = true
	w := newWatch(begin, rules.Policy{})
	_, request := w.register(fixture.Group)
	for range 3 {
		must.Eq(t, []cluster.GroupKey{fixture.Group}, reevaluated(request))
		w.apply(request)
		for _, marked := range []bool{false, true} {
			w.state.commit(func(t *fixture.Cluster) { t.Alloc("a1").DesiredTransition.Migrate = marked })
			_, request = w.step()
		}
	}
}

// A reply to a group that was dropped is ignored.
func TestJobWatcher_LateReply(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(1, 1)
	begin.StartDrain("n1", 0)
	w := newWatch(begin, rules.Policy{})
	_, request := w.register(fixture.Group)
	w.state.commit(func(t *fixture.Cluster) { t.Node("n1").Drain = nil })
	w.register(fixture.Group)
	request.Reevaluate = []cluster.GroupKey{fixture.Group}
	w.apply(request)
	wakeAt, _ := w.step()
	must.True(t, wakeAt.IsZero())
	must.MapEmpty(t, w.groups)
}

// A request has about as many marks as a round of writes takes, of the first groups in order. The
// other groups are planned when these marks are applied.
func TestJobWatcher_MarksAhead(t *testing.T) {
	t.Parallel()
	begin := fixture.NewCluster(1, 3)
	begin.TaskGroup().Migrate.MaxParallel = 3
	other := begin.AddJob("other", cluster.JobService)
	begin.Place("b1", other, "n1")
	begin.StartDrain("n1", 0)
	w := newWatch(begin, rules.Policy{})
	w.marksAhead = 1
	_, request := w.register(fixture.Group, cluster.GroupKey{Job: other.Key(), Name: "g"})
	for _, want := range [][]cluster.AllocID{{"b1"}, {"a1", "a2", "a3"}, nil} {
		must.Eq(t, want, requested(request))
		if request != nil {
			w.apply(request)
		}
		_, request = w.step()
	}
}
