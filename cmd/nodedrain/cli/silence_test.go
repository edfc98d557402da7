package cli

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"
)

// The lines come at growing distances. After a line that has something new they begin again.
func TestSilence(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	lines := func(s *Silence, from, to time.Duration) (at []time.Duration) {
		for d := from; d < to; d += time.Second {
			if s.Over(began.Add(d)) {
				at = append(at, d/time.Second)
			}
		}
		return at
	}
	var s Silence
	s.Broken(began)
	must.Eq(t, []time.Duration{10, 20, 40, 80, 160, 320, 620, 920}, lines(&s, 0, 20*time.Minute))
	s.Broken(began.Add(20 * time.Minute))
	must.Eq(t, []time.Duration{1210, 1220, 1240}, lines(&s, 20*time.Minute, 1250*time.Second))
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		var what atomic.Value
		what.Store("the first\nthing")
		w := StartWaiting(func(line string) { lines = append(lines, line) }, func() string { return what.Load().(string) })
		time.Sleep(9 * time.Second)
		w.Printed()
		time.Sleep(9 * time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		what.Store("")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		what.Store("the second")
		time.Sleep(20 * time.Second)
		w.End()
		time.Sleep(time.Hour)
		must.Eq(t, []string{"Still waiting for " + SingleLine("the first\nthing") + " (19s)", "Still waiting for the second (49s)"}, lines)
	})
}
