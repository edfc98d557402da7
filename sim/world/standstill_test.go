package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// silent is a store whose feed knows what has changed, and forgets to wake anybody.
type silent struct{ drainer.StateReader }

func (s silent) Subscribe(chan<- struct{}) drainer.Feed {
	return s.StateReader.Subscribe(make(chan struct{}, 1))
}

// Nobody is stepped who was not woken: where somebody forgets to wake, the world
// stands still, and what it waits for never comes.
func TestWorld_standsStill(t *testing.T) {
	t.Parallel()
	for _, forgets := range []bool{false, true} {
		w := newTown(t, world.Options{Reader: func(s *statestore.Store) drainer.StateReader {
			if forgets {
				return silent{s.Reader()}
			}
			return s.Reader()
		}})
		w.drain()
		must.True(t, w.run(t, lasts), must.Sprint("something is left to be done"))
		must.Eq(t, forgets, w.State().Node("n1").Draining())
		must.Eq(t, forgets, w.stepped(drains, lasts) == 0)
	}
}

// Somebody may look right before what happens next where nothing has happened for long, and
// at the limit; the time goes on from where it was.
func TestWorld_isStill(t *testing.T) {
	t.Parallel()
	w, err := world.New(world.Options{})
	must.NoError(t, err)
	var looked, happened []time.Duration
	w.OnStill(func() error { looked = append(looked, w.Now().Sub(world.Epoch)); return nil })
	for _, at := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, time.Minute} {
		w.At(world.Epoch.Add(at), func() error { happened = append(happened, w.Now().Sub(world.Epoch)); return nil })
	}
	idle, err := w.Run(world.Epoch.Add(time.Hour))
	must.NoError(t, err)
	must.True(t, idle)
	must.Eq(t, []time.Duration{10*time.Second - 1, time.Minute - 1, time.Hour - 1}, looked)
	must.Eq(t, []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, time.Minute}, happened)
	must.Eq(t, world.Epoch.Add(time.Minute), w.Now())
}

// Who has nothing to do is not stepped, whatever happens elsewhere: not for jobs that
// no drain concerns, not because a leader has caught up, not because another drainer
// or the scheduler is.
func TestWorld_wakesNobodyForNothing(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		w := newTown(t, o)
		for i := range 10 {
			w.at(armed+time.Duration(i)*time.Second, func() {
				must.NoError(t, w.EditJob(web, func(j *cluster.Job) { j.TaskGroups[0].Count++ }))
			})
		}
		w.at(drains+500*time.Millisecond, func() {
			must.NoError(t, w.Depose(world.Election{Next: 1, Believes: time.Second}))
		})
		w.run(t, lasts)
		must.Greater(t, 30, len(w.entries))
		must.Eq(t, 0, w.stepped(time.Second, drains+500*time.Millisecond))
		// A term begins with a step, and has another when its barrier is applied.
		must.Eq(t, 2, w.stepped(drains, lasts))
	})
}

// A clock that was set is found out at the next look, and only by who waits for a
// time. Set forward, what is due happens; set back beyond the last step, whoever
// waits looks at everything again, and goes on.
func TestSetClock(t *testing.T) {
	t.Parallel()
	const deadline, look = time.Hour, 30 * time.Second
	jumped := drains + time.Minute
	for _, c := range []struct {
		ahead time.Duration
		found time.Duration // when it is stepped because of it, or zero
		ends  time.Duration
	}{
		{0, 0, drains + commits + deadline},
		{2 * deadline, jumped + look, jumped + look},
		{time.Minute, 0, drains + commits + deadline - time.Minute},
		{-30 * time.Second, 0, drains + commits + deadline + 30*time.Second},
		{-time.Hour, jumped + look, drains + commits + 2*deadline},
	} {
		w := newTown(t, world.Options{Client: func(a *cluster.Allocation) world.Behaviour {
			b := world.DefaultBehaviour(a)
			b.Stop = world.Never // so that the drain waits
			return b
		}})
		w.at(drains, func() { w.Drain("n1", cluster.DrainSpec{Deadline: deadline}, "") })
		w.at(jumped, func() { w.SetClock(0, c.ahead) })
		w.run(t, 3*deadline)
		if c.found > 0 {
			must.Positive(t, w.stepped(c.found-1, c.found+1), must.Sprintf("at %s, ahead %s", c.found, c.ahead))
		}
		must.Eq(t, c.found > 0, w.stepped(jumped-1, jumped+deadline/2) > 0, must.Sprintf("ahead %s", c.ahead))
		must.Positive(t, w.stepped(c.ends-2*commits, c.ends+2*commits), must.Sprintf("at %s, ahead %s", c.ends, c.ahead))
	}
}

// A view that is stale holds back what it does not show, and then tells of all of it,
// also of jobs that were followed meanwhile: a drain of which it was not told ends.
func TestFaults_staleAndThenTold(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		for i := range 40 {
			w := newTown(t, o)
			w.place(t, "api", "n1", "n2")
			w.drain()
			at := drains + time.Duration(i)*500*time.Millisecond
			w.at(at, func() {
				f := scenario.Fault{Name: scenario.ViewStale, For: 10 * time.Second, Delay: exactly(7 * time.Second)}
				must.NoError(t, w.Arm(f))
				w.WakeDrainer()
				w.Drain("n3", cluster.DrainSpec{}, "")
			})
			for j := range 60 { // it looks although it was told of nothing
				w.at(at+time.Duration(j)*500*time.Millisecond, w.WakeDrainer)
			}
			must.True(t, w.run(t, time.Hour))
			must.Positive(t, len(w.strikes))
			must.False(t, w.State().Node("n1").Draining())
			must.False(t, w.State().Node("n3").Draining())
		}
	})
}
