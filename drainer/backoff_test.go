package drainer

import (
	"math"
	"testing"
	"time"

	"github.com/shoenig/test/must"
)

func TestBackoff_After(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		backoff backoff
		want    []time.Duration // after the first failure, the second, ...
	}{
		"doubles up to max":   {backoff{50 * ms, 300 * ms}, []time.Duration{50 * ms, 100 * ms, 200 * ms, 300 * ms, 300 * ms}},
		"reaches max exactly": {backoff{50 * ms, 200 * ms}, []time.Duration{50 * ms, 100 * ms, 200 * ms, 200 * ms}},
		"one wait":            {backoff{time.Second, time.Second}, []time.Duration{time.Second, time.Second}},
		"never wraps around":  {backoff{math.MaxInt64 / 3, math.MaxInt64}, []time.Duration{math.MaxInt64 / 3, math.MaxInt64 / 3 * 2, math.MaxInt64, math.MaxInt64}},
		"the defaults":        {backoff{DefaultRetryBase, DefaultRetryMax}, []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 15 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, want := range test.want {
				must.Eq(t, want, test.backoff.after(i+1), must.Sprintf("after %d failures", i+1))
			}
			must.Eq(t, test.backoff.max, test.backoff.after(10_000))
		})
	}
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	var a attempts
	must.True(t, a.wait(epoch).IsZero(), must.Sprint("the first attempt waits for nothing"))
	b := backoff{time.Second, time.Minute}
	a.failed(b, epoch)
	must.Eq(t, epoch.Add(time.Second), a.wait(epoch))
	must.Eq(t, epoch.Add(time.Second), a.wait(epoch.Add(time.Second-1)))
	must.True(t, a.wait(epoch.Add(time.Second)).IsZero())
	a.failed(b, epoch.Add(time.Hour))
	must.Eq(t, 2, a.count)
	must.Eq(t, epoch.Add(time.Hour+2*time.Second), a.wait(epoch.Add(time.Hour)))
	must.True(t, a.wait(epoch.Add(time.Hour-1)).IsZero(), must.Sprint("the clock was set back: the wait would last an hour more"))
}
