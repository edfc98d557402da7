package server

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"
)

// A clock that is set forward frees no claim early, and one that is set back delays it: the wait began
// with the time of a clock that was right or ahead.
func TestSlower(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const passed = 10 * time.Minute
	for step, want := range map[time.Duration]time.Duration{
		0: passed, time.Hour: passed, time.Nanosecond: passed, -time.Hour: passed - time.Hour, -time.Nanosecond: passed - time.Nanosecond,
	} {
		must.Eq(t, began.Add(want), slower(began, began.Add(passed+step), passed), must.Sprint(step))
	}
	now := time.Now() // with a monotonic reading, by which all times would be equal
	must.Eq(t, now.Round(0).Add(time.Minute), slower(now, now.Add(time.Hour), time.Minute))
}
