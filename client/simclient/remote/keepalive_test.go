package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/client/simclient/remote"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// unreliable are servers that leave every second request without an answer.
type unreliable struct {
	ttl      time.Duration
	requests int
	answers  []time.Time
}

func (s *unreliable) answer(ctx context.Context) (time.Duration, error) {
	if s.requests++; s.requests%2 == 1 {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	s.answers = append(s.answers, time.Now())
	return s.ttl, nil
}

func (s *unreliable) RegisterNode(ctx context.Context, _ *cluster.Node) (time.Duration, error) {
	return s.answer(ctx)
}

func (s *unreliable) Heartbeat(ctx context.Context, _ cluster.NodeID) (time.Duration, error) {
	return s.answer(ctx)
}

// A server that does not answer costs a node less than its TTL: the node turns to another server.
func TestKeepAlive_serversThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{200 * time.Millisecond, 20 * time.Second} {
		t.Run(ttl.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				s := &unreliable{ttl: ttl}
				remote.KeepAlive(ctx, s, nodes(1)[0], remote.NewFailures(hclog.NewNullLogger()), nil)
				must.Greater(t, 10, len(s.answers))
				longest := time.Duration(0)
				for i := range s.answers[1:] {
					longest = max(longest, s.answers[i+1].Sub(s.answers[i]))
				}
				must.LessEq(t, max(ttl, ttl/2+presence.FirstRetry)+presence.FirstRetry, longest)
			})
		})
	}
}
