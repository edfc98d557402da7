package live_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/live"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// silentClient begins an allocation on each of two nodes, of which one is out of touch
// when its allocation becomes healthy.
const silentClient = `# A client that is out of touch says nothing until it is back.

node n1..n2

job web count=2 min-healthy=5s

at 0s register web
at 2s fault node/disconnect on=n2 delay=8s
`

// A client that falls silent does not say what becomes due while it is: clients look
// only at what they are told of.
func TestPlay_silentClient(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Parse("silent.drain", strings.NewReader(silentClient))
	must.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var said []time.Duration
		_, err := live.Play(s, live.Options{For: time.Minute, OnApply: func(at time.Time, a shims.Applied) {
			m, is := a.Message.(*shims.AllocClientUpdate)
			for i := 0; is && i < len(m.Reports); i++ {
				if m.Reports[i].Node == "n2" {
					said = append(said, at.Sub(began))
				}
			}
		}})
		must.NoError(t, err)
		must.SliceNotEmpty(t, said)
		for _, at := range said {
			must.True(t, at <= 2*time.Second || at >= 10*time.Second, must.Sprint(at))
		}
	})
}
