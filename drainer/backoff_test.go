package drainer

import (
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/shoenig/test/must"
)

func TestBackoff_After(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		backoff Backoff
		want    []time.Duration // after the first failure, the second, ...
	}{
		"doubles up to max":   {Backoff{50 * ms, 300 * ms}, []time.Duration{50 * ms, 100 * ms, 200 * ms, 300 * ms, 300 * ms}},
		"reaches max exactly": {Backoff{50 * ms, 200 * ms}, []time.Duration{50 * ms, 100 * ms, 200 * ms, 200 * ms}},
		"one wait":            {Backoff{time.Second, time.Second}, []time.Duration{time.Second, time.Second}},
		"never wraps around":  {Backoff{math.MaxInt64 / 3, math.MaxInt64}, []time.Duration{math.MaxInt64 / 3, math.MaxInt64 / 3 * 2, math.MaxInt64, math.MaxInt64}},
		"the defaults":        {Backoff{DefaultRetryBase, DefaultRetryMax}, []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 15 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, want := range test.want {
				must.Eq(t, want, test.backoff.after(i+1), must.Sprintf("after %d failures", i+1))
			}
			must.Eq(t, test.backoff.Max, test.backoff.after(10_000))
		})
	}
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	var a attempts
	must.True(t, a.wait(fixture.Epoch).IsZero(), must.Sprint("the first attempt does not wait"))
	b := Backoff{time.Second, time.Minute}
	a.failed(b, fixture.Epoch)
	must.Eq(t, fixture.Epoch.Add(time.Second), a.wait(fixture.Epoch))
	must.Eq(t, fixture.Epoch.Add(time.Second), a.wait(fixture.Epoch.Add(time.Second-1)))
	must.True(t, a.wait(fixture.Epoch.Add(time.Second)).IsZero())
	a.failed(b, fixture.Epoch.Add(time.Hour))
	must.Eq(t, 2, a.count)
	must.Eq(t, fixture.Epoch.Add(time.Hour+2*time.Second), a.wait(fixture.Epoch.Add(time.Hour)))
	must.True(t, a.wait(fixture.Epoch.Add(time.Hour-1)).IsZero(), must.Sprint("the clock was set back: the wait would be an hour longer"))
}

// Each mark that was answered and is still planned has its own wait. A mark that is no longer planned
// is removed.
func TestRetries(t *testing.T) {
	t.Parallel()
	now, b := fixture.Epoch, Backoff{time.Second, time.Minute}
	var r retries
	lost := &logged{}
	hold := func(planned ...cluster.AllocID) (ready []cluster.AllocID, again time.Time) {
		lost.messages = nil
		var marks []rules.Mark
		for _, id := range planned {
			marks = append(marks, rules.Mark{Alloc: id})
		}
		again = r.keep(marks, now, slog.New(lost))
		for _, m := range marks {
			if !r.waits(m, now) {
				ready = append(ready, m.Alloc)
			}
		}
		return ready, again
	}
	check := func(wantReady []cluster.AllocID, wantAgain time.Duration, wantLost int, ready []cluster.AllocID, again time.Time) {
		t.Helper()
		must.Eq(t, wantReady, ready)
		must.Eq(t, wantAgain == 0, again.IsZero())
		must.True(t, again.IsZero() || again.Equal(now.Add(wantAgain)), must.Sprintf("again at %s, now %s", again, now))
		must.Len(t, wantLost, lost.messages)
	}
	type ids = []cluster.AllocID

	ready, again := hold("a", "b", "c")
	check(ids{"a", "b", "c"}, 0, 0, ready, again)
	r.answered(rules.Mark{Alloc: "a"}, false, b, now)
	r.answered(rules.Mark{Alloc: "b"}, true, b, now)
	ready, again = hold("a", "b", "c")
	check(ids{"c"}, time.Second, 1, ready, again)
	ready, again = hold("a", "b", "c")
	check(ids{"c"}, time.Second, 0, ready, again) // it is logged once
	now = now.Add(time.Second)
	r.answered(rules.Mark{Alloc: "a"}, false, b, now)
	ready, again = hold("a", "b", "c")
	check(ids{"b", "c"}, 2*time.Second, 0, ready, again)
	ready, again = hold("b", "c") // a is not planned
	check(ids{"b", "c"}, 0, 0, ready, again)
	ready, again = hold("a", "b")
	check(ids{"a", "b"}, 0, 0, ready, again)

	r.answered(rules.Mark{Alloc: "a", Drain: "an earlier drain"}, false, b, now)
	ready, again = hold("a")
	check(ids{"a"}, 0, 0, ready, again)
}
