package sim_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// A run ends when it is told to, between two times, and says so.
func TestPlay_stop(t *testing.T) {
	t.Parallel()
	s := swarm.Generate(7, swarm.Small)
	asked := 0
	result, err := sim.Play(s, sim.Options{Stop: func() error {
		if asked++; asked == 5 {
			return context.Canceled
		}
		return nil
	}})
	must.Nil(t, result)
	must.True(t, errors.Is(err, context.Canceled), must.Sprint(err))
	must.Eq(t, 5, asked)
}
