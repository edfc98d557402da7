package sim_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// A run ends with the error of Stop.
func TestPlay_stop(t *testing.T) {
	t.Parallel()
	s := swarm.Generate(7, swarm.Small)
	calls := 0
	result, err := sim.Play(s, sim.Options{Stop: func() error {
		if calls++; calls == 5 {
			return context.Canceled
		}
		return nil
	}})
	must.Nil(t, result)
	must.True(t, errors.Is(err, context.Canceled), must.Sprint(err))
	must.Eq(t, 5, calls)
}

// restless is a store whose feeds wake the drainer at every Take.
type restless struct{ drainer.StateReader }

func (n restless) Subscribe(wake chan<- struct{}) drainer.Feed {
	return restlessFeed{n.StateReader.Subscribe(wake), wake}
}

type restlessFeed struct {
	drainer.Feed
	wake chan<- struct{}
}

func (n restlessFeed) Take() drainer.Changes {
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return n.Feed.Take()
}

// A run that reaches the limit of steps fails. If the steps are the drainer's own, that is a
// violation of a guarantee.
func TestPlay_tooManySteps(t *testing.T) {
	t.Parallel()
	s := swarm.Generate(7, swarm.Small)
	result, err := sim.Play(s, sim.Options{MaxSteps: 100})
	must.Nil(t, result)
	must.True(t, errors.Is(err, world.ErrTooManySteps), must.Sprint(err))
	must.StrContains(t, err.Error(), "too many steps, more than 100: scripted ")

	result, err = sim.Play(s, sim.Options{MaxSteps: 3000, Reader: func(store *statestore.Store) drainer.StateReader {
		return restless{store.Reader()}
	}})
	must.NoError(t, err)
	must.SliceNotEmpty(t, result.Violations)
	last := result.Violations[len(result.Violations)-1]
	must.Eq(t, "G10 too many steps", last.Guarantee+" "+last.Check)
	must.StrContains(t, last.Text, "drainer ")
}
