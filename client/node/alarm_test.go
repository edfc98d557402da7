package node

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
)

func TestAlarm(t *testing.T) {
	t.Parallel()
	a, err := newAlarm()
	must.NoError(t, err)
	defer a.close()
	rings := func() bool {
		select {
		case <-a.rings:
			return true
		case <-t.Context().Done():
			return false
		}
	}
	for _, at := range []time.Duration{0, 1, sinceBoot() - time.Hour, sinceBoot(), sinceBoot() + 20*time.Millisecond} {
		must.NoError(t, a.set(at))
		must.True(t, rings())
		must.GreaterEq(t, at, sinceBoot())
	}
	must.NoError(t, a.set(sinceBoot()+time.Hour))
	must.NoError(t, a.set(client.Never))
	must.NoError(t, a.set(sinceBoot()+10*time.Millisecond), must.Sprint("the newest time holds"))
	must.True(t, rings())
}
