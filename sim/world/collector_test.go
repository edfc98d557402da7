package world_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// age is the age of collected rows in these tests, and the time between two searches.
const age = 20 * time.Second

// collection is an entry that deletes ended rows, with its time.
type collection struct {
	at time.Duration
	// planned is the time on the leader's clock at which it made the entry.
	planned time.Duration
	allocs  []cluster.AllocID
	evals   int
	jobs    []cluster.JobKey
}

// collections returns the entries that delete ended rows.
func (w *fixture) collections() []collection {
	var all []collection
	for _, e := range w.entries {
		if m, is := e.Message.(*shims.Collect); is {
			all = append(all, collection{e.at, m.At.Sub(world.Epoch), m.Allocs, len(m.Evals), m.Jobs})
		}
	}
	return all
}

// times returns the times of the entries that delete allocations.
func (w *fixture) times() []time.Duration {
	var all []time.Duration
	for _, c := range w.collections() {
		if len(c.allocs) > 0 {
			all = append(all, c.at)
		}
	}
	return all
}

// empty scales a job down to nothing. Its allocations end two seconds later.
func (w *fixture) empty(job cluster.JobKey) {
	w.editJob(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 0 })
}

// stopped returns the allocations of a job that have ended.
func (w *fixture) stopped(job cluster.JobKey) (ids []cluster.AllocID) {
	for a := range w.Truth().AllocsByJob(job) {
		if a.ClientTerminal() {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// The leader searches at each multiple of the age. It deletes what is older than the age, and then
// nothing is left to do.
func TestCollector(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		o.Collect = age
		w := newFixture(t, o)
		var gone []cluster.AllocID
		w.at(10*time.Second, func() { w.empty(web) })
		w.at(25*time.Second, func() { gone = w.stopped(web) })
		must.True(t, w.run(t, time.Hour)) // a world without work becomes idle
		must.Len(t, 3, gone)
		all := w.collections()
		must.SliceNotEmpty(t, all)
		must.Eq(t, collection{at: 2*age + commits, planned: 2 * age, allocs: gone}, all[0]) // at the age they are younger
		must.SliceEmpty(t, w.stopped(web))
		w.sameStates(t)
	})
}

// A server that has applied no entry has a state of index 0. A round over this state finds nothing.
// Later rounds find rows. Bug: a leader that fell behind to this state never searched again.
func TestCollector_emptyLog(t *testing.T) {
	t.Parallel()
	w, err := world.New(world.Options{Collect: age})
	must.NoError(t, err)
	f := &fixture{World: w, ended: map[int]time.Duration{}}
	f.observe()
	f.at(age+age/4, func() {
		must.Zero(t, w.Truth().Index())
		f.register(t, "n1")
		f.place(t, web.ID, "n1")
		f.empty(web)
	})
	f.run(t, time.Hour)
	must.SliceNotEmpty(t, f.times())
	must.SliceEmpty(t, f.stopped(web))
}

// A world that collects nothing has no such entry.
func TestCollector_off(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{})
	w.at(10*time.Second, func() { w.empty(web) })
	w.run(t, time.Hour)
	must.SliceEmpty(t, w.collections())
	must.Len(t, 3, w.stopped(web))
}

// A round of many rows has several entries. Each waits for the answer to the one before.
func TestCollector_parts(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Collect: age})
	many := cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "many"}
	w.place(t, many.ID, slices.Repeat([]cluster.NodeID{"n1", "n2"}, 10)...)
	w.at(10*time.Second, func() { w.empty(many) })
	w.run(t, 2*age+10*time.Second)
	var sizes []int
	last := time.Duration(0)
	for _, c := range w.collections() {
		if len(c.allocs) > 0 {
			sizes = append(sizes, len(c.allocs))
			must.GreaterEq(t, last+commits, c.at)
			last = c.at
		}
	}
	must.Eq(t, []int{8, 8, 4}, sizes)
	must.SliceEmpty(t, w.stopped(many))
}

// Rows of a write that fails are left to the next round. An unknown outcome that was applied leaves
// nothing.
func TestCollector_fails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fate world.Fate
		want []time.Duration
	}{
		"rejected":            {world.Reject, []time.Duration{3*age + commits}},
		"no room":             {world.NoRoom, []time.Duration{3*age + commits}},
		"unknown and lost":    {world.UnknownLost, []time.Duration{3*age + commits}},
		"unknown and applied": {world.UnknownApplied, []time.Duration{2*age + commits}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, world.Options{Collect: age})
			w.at(10*time.Second, func() { w.empty(web) })
			first := true
			w.Log.OnWrite(func(p world.Write) world.Fate {
				if p.Source != world.FromCollector || !first {
					return world.Apply
				}
				first = false
				return c.fate
			})
			w.run(t, 4*age)
			must.Eq(t, c.want, w.times())
			must.SliceEmpty(t, w.stopped(web))
		})
	}
}

// A new leader begins its first round an age after its election, and the old one deletes nothing
// more.
func TestCollector_elections(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Servers: 3, Collect: age})
	w.at(10*time.Second, func() { w.empty(web) })
	w.at(35*time.Second, func() { must.NoError(t, w.Servers.Elect(false)) })
	w.run(t, 4*age)
	must.Eq(t, []time.Duration{35*time.Second + age + commits}, w.times())
}

// A paused leader collects after its pause.
func TestCollector_paused(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Collect: age})
	w.at(10*time.Second, func() { w.empty(web) })
	w.at(35*time.Second, func() { w.Servers.Pause(0, 15*time.Second) })
	w.run(t, 4*age)
	must.SliceNotEmpty(t, w.collections())
	must.Eq(t, 50*time.Second, w.collections()[0].planned)
	must.Eq(t, []time.Duration{50*time.Second + commits}, w.times())
}

// A clock that is set back does not delay a round by the same time. Rows from before it are
// collected when the clock shows that they are old.
func TestCollector_clockBack(t *testing.T) {
	t.Parallel()
	const back = 30 * time.Second
	for name, at := range map[string]time.Duration{
		"before the first round": 15 * time.Second,
		"between rounds":         25 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, world.Options{Collect: age})
			w.at(10*time.Second, func() { w.empty(web) })
			w.at(at, func() { w.Servers.SetClock(0, -back) })
			w.run(t, time.Hour)
			times := w.times()
			must.Len(t, 1, times)
			// The rows are old by the clock after 10 s + age + back, and a round begins at most one
			// age later.
			must.Greater(t, 10*time.Second+age+back, times[0])
			must.LessEq(t, 10*time.Second+2*age+back+commits, times[0])
			must.SliceEmpty(t, w.stopped(web))
		})
	}
}

// A clock that is set back by an hour and is right soon after delays the next round by less than an
// age.
func TestCollector_clockRightAgain(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Duration{
		"before the first round": 15 * time.Second,
		"between rounds":         25 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, world.Options{Collect: age})
			w.at(10*time.Second, func() { w.empty(web) })
			w.at(at, func() { w.Servers.SetClock(0, -time.Hour) })
			w.at(50*time.Second, func() { w.Servers.SetClock(0, 0) })
			w.run(t, 2*time.Hour)
			times := w.times()
			must.Len(t, 1, times)
			must.Between(t, 50*time.Second, times[0], 50*time.Second+age+commits)
		})
	}
}

// A clock that is set back while a request has no answer delays the next round by the time between
// two checks of the clock.
func TestCollector_clockBackInFlight(t *testing.T) {
	t.Parallel()
	const check = 30 * time.Second
	w := newFixture(t, world.Options{Collect: age})
	other := cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "other"}
	w.place(t, other.ID, "n1", "n2")
	w.at(time.Second, func() { w.Servers.SetClock(0, 3*time.Minute) })
	w.at(10*time.Second, func() { w.empty(web) })
	w.at(2*age+commits/2, func() { w.Servers.SetClock(0, 0) })
	w.at(2*age+5*time.Second, func() { w.empty(other) })
	w.run(t, time.Hour)
	times := w.times()
	must.Len(t, 2, times)
	must.Eq(t, 2*age+commits, times[0])
	must.LessEq(t, 2*age+check+2*age+2*commits, times[1])
}

// A clock that is set forward makes rows old. A clock that is right again delays no round.
func TestCollector_clockForward(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Collect: age})
	other := cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "other"}
	w.place(t, other.ID, "n1", "n2")
	w.at(10*time.Second, func() { w.empty(web) })
	w.at(15*time.Second, func() { w.Servers.SetClock(0, time.Hour) })
	w.at(50*time.Second, func() { w.Servers.SetClock(0, 0); w.empty(other) })
	w.run(t, time.Hour)
	times := w.times()
	must.Len(t, 2, times)
	must.LessEq(t, 2*age, times[0]) // younger than the age, but not by the clock
	must.Between(t, 50*time.Second+age, times[1], 50*time.Second+2*age+10*time.Second)
}
