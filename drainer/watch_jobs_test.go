package drainer

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// watch is a job watcher over a state of its own, stepped by hand.
type watch struct {
	*jobWatcher
	state *memory
	now   time.Time
}

func newWatch(w *town, policy Policy) *watch {
	state := newMemory(w)
	feed := state.Subscribe(make(chan struct{}, 1))
	env := Env{Logger: hclog.NewNullLogger(), Feed: feed, Policy: policy, RetryBase: time.Second, RetryMax: time.Minute}
	return &watch{jobWatcher: NewJobWatcher(env).(*jobWatcher), state: state, now: epoch}
}

// step steps the watcher with what its feed tells.
func (w *watch) step() (wakeAt time.Time) {
	return w.Step(Look{Now: w.now, View: w.state.Snapshot(), Changes: w.state.feed().Take()})
}

// register has the watcher look after groups and judge them: a job that is
// followed since now is looked at in a step of its own.
func (w *watch) register(groups ...cluster.GroupKey) (wakeAt time.Time) {
	w.RegisterJobs(groups)
	w.step()
	return w.step()
}

// request is the unread wish, or nil.
func (w *watch) request() *DrainRequest {
	select {
	case r := <-w.Drain():
		return r
	default:
		return nil
	}
}

func (w *watch) moved() []Migration {
	select {
	case m := <-w.Migrated():
		return m
	default:
		return nil
	}
}

func wished(r *DrainRequest) (ids []cluster.AllocID) {
	if r != nil {
		for _, m := range r.Marks {
			ids = append(ids, m.Alloc)
		}
	}
	return ids
}

// A job is followed before it is judged, and the view it is judged by is taken
// after that: what changes between the two would be told by nobody.
func TestJobWatcher_FollowsBeforeItLooks(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 1)
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.RegisterJobs([]cluster.GroupKey{web})
	old := w.state.Snapshot()
	w.state.commit(func(t *town) { t.group().Count = 5 }) // nobody follows the job yet
	must.Eq(t, w.now, w.Step(Look{Now: w.now, View: old}), must.Sprint("it wants another look at once"))
	must.SliceEmpty(t, wished(w.request()), must.Sprint("planned from a view older than the follow"))
	w.step()
	must.SliceEmpty(t, wished(w.request()), must.Sprint("the group has no room by now"))
}

// A newer wish replaces an unread one, and is the whole of what is wanted.
func TestJobWatcher_NewerRequestReplacesUnread(t *testing.T) {
	t.Parallel()
	begin := newTown(2, 4)
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.register(web)
	w.state.commit(func(t *town) { t.group().Migrate.MaxParallel = 2 })
	w.step()
	must.Eq(t, []cluster.AllocID{"a1", "a3"}, wished(w.request()))
	must.Nil(t, w.request())
	w.step()
	must.Nil(t, w.request(), must.Sprint("nothing has changed"))
}

// A job is followed once, however many of its groups are watched, and let go with
// the last.
func TestJobWatcher_Follows(t *testing.T) {
	t.Parallel()
	begin := newTown(2, 2)
	job := begin.jobs[0]
	second := *job.TaskGroups[0]
	second.Name = "h"
	job.TaskGroups = append(job.TaskGroups, &second)
	begin.place("h1", job, "n1").TaskGroup = "h"
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	h := cluster.GroupKey{Job: web.Job, Name: "h"}
	w.register(web, h, web)
	w.RegisterJobs([]cluster.GroupKey{h})
	w.step()
	must.Eq(t, map[cluster.JobKey]int{web.Job: 1}, w.state.feed().follows())

	// A group with nothing on a draining node is not looked after for long.
	w.register(cluster.GroupKey{Job: cluster.JobKey{Namespace: "other", ID: "web"}, Name: "g"})
	must.Eq(t, map[cluster.JobKey]int{web.Job: 1}, w.state.feed().follows())

	w.state.commit(func(t *town) { t.alloc("h1").ClientStatus = cluster.ClientComplete })
	w.step()
	must.Eq(t, map[cluster.JobKey]int{web.Job: 1}, w.state.feed().follows())
	w.state.commit(func(t *town) { t.node("n1").Drain = nil })
	w.register(web) // as the term says when a node stops draining
	must.MapEmpty(t, w.state.feed().follows())
	must.MapEmpty(t, w.groups)
	must.SliceEmpty(t, w.wanting)
	must.SliceEmpty(t, w.reevaluating)
	must.Eq(t, 0, w.alarms.Len())
	must.SliceEmpty(t, wished(w.request()))
}

// What left its node is reported with what became of it; an unread report is
// merged into the next; one whose node stopped draining has not left.
func TestJobWatcher_MigratedMerges(t *testing.T) {
	t.Parallel()
	begin := newTown(2, 6)
	begin.drain("n1", 0)
	begin.drain("n2", 0)
	w := newWatch(begin, Policy{})
	w.register(web)
	must.Nil(t, w.moved())
	w.state.commit(func(t *town) {
		t.alloc("a3").ClientStatus = cluster.ClientComplete
		t.alloc("a3").DesiredTransition.Migrate = true
	})
	w.step()
	w.state.commit(func(t *town) {
		t.allocs = slices.DeleteFunc(t.allocs, func(a *cluster.Allocation) bool { return a.ID == "a1" })
		t.node("n2").Drain = nil
	})
	w.register(web)
	must.Eq(t, []Migration{
		{Alloc: "a3", Node: "n1", Asked: true, Stopped: true, Replaced: true, Migrated: true},
		{Alloc: "a1", Node: "n1", Asked: true, Stopped: true, Replaced: true, Migrated: true},
	}, w.moved())
	must.Nil(t, w.moved())
}

// The due time of a verdict is a wake-up, and nothing else is.
func TestJobWatcher_WakesWhenHealthIsDue(t *testing.T) {
	t.Parallel()
	begin := newTown(2, 2)
	begin.drain("n1", 0)
	a := begin.alloc("a1")
	a.DeploymentStatus, a.CreateTime = nil, epoch
	w := newWatch(begin, Policy{HealthGrace: 5 * time.Second})
	due := epoch.Add(65 * time.Second)
	must.Eq(t, due, w.register(web))
	must.SliceEmpty(t, wished(w.request()))
	w.now = due.Add(-1)
	must.Eq(t, due, w.step())
	must.Nil(t, w.request())
	w.now = due
	must.True(t, w.step().IsZero())
	must.Eq(t, []cluster.AllocID{"a1"}, wished(w.request()))
}

// Since when a group is held is remembered as long as it is, and not a step longer.
func TestJobWatcher_HeldSince(t *testing.T) {
	t.Parallel()
	begin := newTown(2, 2)
	begin.group().Count = 9
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.register(web)
	w.now = epoch.Add(time.Minute)
	w.register(web)
	must.Eq(t, map[cluster.GroupKey][ReasonCount]time.Time{web: {ReasonBelowBudget: epoch}}, w.Holds())
	w.state.commit(func(t *town) { t.group().Count = 2 })
	w.step()
	must.Eq(t, map[cluster.GroupKey][ReasonCount]time.Time{web: {}}, w.Holds())
}

// Told that anything may have changed, it looks at everything it watches.
func TestJobWatcher_LooksEverywhereIfTold(t *testing.T) {
	t.Parallel()
	begin := newTown(1, 2)
	begin.group().Count = 9
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.register(web)
	must.SliceEmpty(t, wished(w.request()))
	w.state.commit(func(t *town) { t.group().Count = 2 })
	w.state.feed().Take() // the hint is lost
	w.step()
	must.Nil(t, w.request())
	w.Step(Look{Now: w.now, View: w.state.Snapshot(), Changes: Changes{All: true}})
	must.Eq(t, []cluster.AllocID{"a1"}, wished(w.request()))
}

// counted counts how often groups are looked at.
type counted struct {
	View
	looks int
}

func (c *counted) RestlessAllocs(key cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	c.looks++
	return c.View.RestlessAllocs(key)
}

// While writes are in flight nothing can be written of a group, however often it changes:
// it is looked at when they are answered, once.
func TestJobWatcher_JudgesOnceARound(t *testing.T) {
	t.Parallel()
	begin := newTown(2, 4)
	begin.drain("n1", 0)
	w := newWatch(begin, Policy{})
	w.register(web)
	must.Eq(t, []cluster.AllocID{"a1"}, wished(w.request()))

	look := func(inFlight func(cluster.AllocID) bool) int {
		view := &counted{View: w.state.Snapshot()}
		w.Step(Look{Now: w.now, View: view, Changes: w.state.feed().Take(), InFlight: inFlight})
		return view.looks
	}
	sent := func(ids ...cluster.AllocID) func(cluster.AllocID) bool {
		return func(id cluster.AllocID) bool { return slices.Contains(ids, id) }
	}
	for room := range 5 {
		w.state.commit(func(t *town) { t.group().Migrate.MaxParallel = room })
		must.Eq(t, 0, look(sent("a1")))
	}
	must.Nil(t, w.request())
	must.Eq(t, 1, look(nil))
	must.Eq(t, []cluster.AllocID{"a1", "a3"}, wished(w.request()))
	must.Eq(t, 0, look(nil), must.Sprint("nothing has changed"))
}

// What waits to be written while something else is in flight is wished as long as it
// makes sense, and no longer.
func TestJobWatcher_TakesBackWhatIsNotSent(t *testing.T) {
	t.Parallel()
	begin := newTown(2, 4)
	begin.drain("n1", 0)
	begin.group().Migrate.MaxParallel = 2
	w := newWatch(begin, Policy{})
	w.register(web)
	must.Eq(t, []cluster.AllocID{"a1", "a3"}, wished(w.request()))
	w.state.commit(func(t *town) { t.group().Migrate.MaxParallel = 1 })
	w.Step(Look{Now: w.now, View: w.state.Snapshot(), Changes: w.state.feed().Take(), InFlight: func(id cluster.AllocID) bool { return id == "a3" }})
	must.Eq(t, []cluster.AllocID{"a3"}, wished(w.request()))
}
