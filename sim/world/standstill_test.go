package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// noWakes is a store whose feed never wakes its reader.
type noWakes struct{ drainer.StateReader }

func (s noWakes) Subscribe(chan<- struct{}) drainer.Feed {
	return s.StateReader.Subscribe(make(chan struct{}, 1))
}

// The loop steps the drainer only after a wake-up. Without wake-ups the drain never ends.
func TestWorld_standsStill(t *testing.T) {
	t.Parallel()
	for _, withoutWakes := range []bool{false, true} {
		w := newFixture(t, world.Options{Reader: func(s *statestore.Store) drainer.StateReader {
			if withoutWakes {
				return noWakes{s.Reader()}
			}
			return s.Reader()
		}})
		w.drain()
		must.True(t, w.run(t, lasts), must.Sprint("the queue still holds an event"))
		must.Eq(t, withoutWakes, w.State().Node("n1").Draining())
		must.Eq(t, withoutWakes, w.stepped(drains, lasts) == 0)
	}
}

// OnStill is called right before the end of long pauses, and right before the limit. It does
// not move the time on.
func TestWorld_OnStill(t *testing.T) {
	t.Parallel()
	w, err := world.New(world.Options{})
	must.NoError(t, err)
	var stills, ran []time.Duration
	w.OnStill(func() error { stills = append(stills, w.Now().Sub(world.Epoch)); return nil })
	for _, at := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, time.Minute} {
		w.At(world.Epoch.Add(at), func() error { ran = append(ran, w.Now().Sub(world.Epoch)); return nil })
	}
	idle, err := w.Run(world.Epoch.Add(time.Hour))
	must.NoError(t, err)
	must.True(t, idle)
	must.Eq(t, []time.Duration{10*time.Second - 1, time.Minute - 1, time.Hour - 1}, stills)
	must.Eq(t, []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, time.Minute}, ran)
	must.Eq(t, world.Epoch.Add(time.Minute), w.Now())
}

// OnSilence is called when a report of clients reaches the servers, not when the clients step
// before.
func TestWorld_OnSilence(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{})
	var stills, silences []time.Duration
	w.OnStill(func() error { stills = append(stills, w.time()); return nil })
	w.OnSilence(func() error { silences = append(silences, w.time()); return nil })
	w.drain()
	w.run(t, lasts)
	healthy := drains + 11*time.Second + 3*commits
	must.Eq(t, []time.Duration{drains - 1, healthy - 1, lasts - 1}, stills)
	must.Eq(t, []time.Duration{drains - 1, healthy + commits - 1, lasts - 1}, silences)
}

// A drainer without work takes no step: not for jobs that no drain concerns, not when its leader
// has caught up, and not after a step of another drainer or of the scheduler.
func TestWorld_noIdleWakes(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		w := newFixture(t, o)
		for i := range 10 {
			w.at(armed+time.Duration(i)*time.Second, func() {
				w.editJob(web, func(j *cluster.Job) { j.TaskGroups[0].Count++ })
			})
		}
		w.at(drains+500*time.Millisecond, func() {
			must.NoError(t, w.Servers.Depose(world.Election{Next: 1, Unaware: time.Second}))
		})
		w.run(t, lasts)
		must.Greater(t, 30, len(w.entries))
		must.Eq(t, 0, w.stepped(time.Second, drains+500*time.Millisecond))
		// A term starts with a step, and takes another when its barrier is applied.
		must.Eq(t, 2, w.stepped(drains, lasts))
	})
}

// A waiting drainer detects at its next clock check that the clock was set. If the clock was set
// forward, the drainer handles the deadlines that have passed. If the clock was set back to
// before the last step, the drainer reads all drains again.
func TestServers_SetClock(t *testing.T) {
	t.Parallel()
	const deadline, check = time.Hour, 30 * time.Second
	jumped := drains + time.Minute
	for _, c := range []struct {
		ahead time.Duration
		found time.Duration // the step because of the clock, or zero
		ends  time.Duration
	}{
		{0, 0, drains + commits + deadline},
		{2 * deadline, jumped + check, jumped + check},
		{time.Minute, 0, drains + commits + deadline - time.Minute},
		{-30 * time.Second, 0, drains + commits + deadline + 30*time.Second},
		{-time.Hour, jumped + check, drains + commits + 2*deadline},
	} {
		w := newFixture(t, world.Options{Client: func(*cluster.Allocation) world.Behaviour {
			b := setting.Default()
			b.Stop = world.Never // the drain waits for its deadline
			return b
		}})
		w.at(drains, func() { w.drainNode("n1", deadline) })
		w.at(jumped, func() { w.Servers.SetClock(0, c.ahead) })
		w.run(t, 3*deadline)
		if c.found > 0 {
			must.Positive(t, w.stepped(c.found-1, c.found+1), must.Sprintf("at %s, ahead %s", c.found, c.ahead))
		}
		must.Eq(t, c.found > 0, w.stepped(jumped-1, jumped+deadline/2) > 0, must.Sprintf("ahead %s", c.ahead))
		must.Positive(t, w.stepped(c.ends-2*commits, c.ends+2*commits), must.Sprintf("at %s, ahead %s", c.ends, c.ahead))
	}
}

// After a stale view, the feed reports all hidden changes, even those of jobs that the drainer
// followed while the view was stale. So a drain that started during that time ends.
func TestFaults_afterStaleView(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		for i := range 40 {
			w := newFixture(t, o)
			w.place(t, "api", "n1", "n2")
			w.drain()
			at := drains + time.Duration(i)*500*time.Millisecond
			w.at(at, func() {
				f := scenario.Fault{Name: scenario.ViewStale, For: 10 * time.Second, Delay: exactly(7 * time.Second)}
				must.NoError(t, w.Faults.Arm(f))
				w.Servers.WakeDrainer()
				w.drainNode("n3", 0)
			})
			for j := range 60 { // the drainer reads the state without a reported change
				w.at(at+time.Duration(j)*500*time.Millisecond, w.Servers.WakeDrainer)
			}
			must.True(t, w.run(t, time.Hour))
			must.Positive(t, len(w.strikes))
			must.False(t, w.State().Node("n1").Draining())
			must.False(t, w.State().Node("n3").Draining())
		}
	})
}
