package live_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/live"
)

// silentClient is a scenario with an allocation on each of two nodes. One node is disconnected
// while its allocation becomes healthy.
const silentClient = `# A disconnected client reports nothing until it is back.

node n1..n2

job web count=2 min-healthy=5s

at 0s register web
at 2s fault node/disconnect on=n2 delay=8s
`

// A silent client sends no report, even if one becomes due during its outage.
func TestPlay_silentClient(t *testing.T) {
	t.Parallel()
	s := parse(t, silentClient)
	synctest.Test(t, func(t *testing.T) {
		var registered time.Time
		var reported []time.Duration
		_, err := live.Play(s, live.Options{For: time.Minute, OnApply: func(at time.Time, a shims.Applied) {
			switch m := a.Message.(type) {
			case *shims.JobRegister:
				registered = at
			case *shims.AllocClientUpdate:
				for _, r := range m.Reports {
					if r.Node == "n2" {
						reported = append(reported, at.Sub(registered))
					}
				}
			}
		}})
		must.NoError(t, err)
		must.SliceNotEmpty(t, reported)
		for _, at := range reported {
			must.True(t, at <= 2*time.Second || at >= 9*time.Second, must.Sprint(at))
		}
	})
}
