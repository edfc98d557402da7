package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/simclient/remote"
)

// mute are servers of which every other does not answer.
type mute struct {
	ttl   time.Duration
	asked int
	heard []time.Time // when one answered
}

func (m *mute) answer(ctx context.Context) (time.Duration, error) {
	if m.asked++; m.asked%2 == 1 {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	m.heard = append(m.heard, time.Now())
	return m.ttl, nil
}

func (m *mute) RegisterNode(ctx context.Context, _ *cluster.Node) (time.Duration, error) {
	return m.answer(ctx)
}

func (m *mute) Heartbeat(ctx context.Context, _ cluster.NodeID) (time.Duration, error) {
	return m.answer(ctx)
}

// A server that does not answer costs a node less than it has time: another is asked.
func TestKeepAlive_serversThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{200 * time.Millisecond, 20 * time.Second} {
		t.Run(ttl.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				m := &mute{ttl: ttl}
				remote.KeepAlive(ctx, m, nodes(1)[0], hclog.NewNullLogger(), nil)
				must.Greater(t, 10, len(m.heard))
				longest := time.Duration(0)
				for i := range m.heard[1:] {
					longest = max(longest, m.heard[i+1].Sub(m.heard[i]))
				}
				must.LessEq(t, max(ttl, ttl/2+remote.RetryInterval)+remote.RetryInterval, longest)
			})
		})
	}
}
