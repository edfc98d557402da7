package bootclock

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"
)

func TestAlarm(t *testing.T) {
	t.Parallel()
	a, err := NewAlarm()
	must.NoError(t, err)
	defer a.Close()
	rings := func() bool {
		select {
		case <-a.Rings():
			return true
		case <-t.Context().Done():
			return false
		}
	}
	for _, at := range []time.Duration{0, 1, Now() - time.Hour, Now(), Now() + 20*time.Millisecond} {
		must.NoError(t, a.Set(at))
		must.True(t, rings())
		must.GreaterEq(t, at, Now())
	}
	must.NoError(t, a.Set(Now()+time.Hour))
	must.NoError(t, a.Set(Never))
	must.NoError(t, a.Set(Now()+10*time.Millisecond), must.Sprint("the newest time holds"))
	must.True(t, rings())
}
