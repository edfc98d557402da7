package disks

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// lateServers answer after a time with a stream that ends with its request.
type lateServers struct {
	after   time.Duration
	request context.Context
}

func (s *lateServers) Data(ctx context.Context, _ cluster.AllocID, _ []string, _ datacopy.Position) (io.ReadCloser, client.DataAnswer) {
	select {
	case <-ctx.Done():
		return nil, client.DataAnswer{Result: client.DataUnreached, Why: context.Cause(ctx).Error()}
	case <-time.After(s.after):
	}
	s.request = ctx
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(context.Cause(ctx)) })
	return out, client.DataAnswer{}
}

// A request ends if no answer begins. A stream that has begun lasts as long as it needs. Bug: no test had a stream that
// lasts longer than the limit of the answer, which would cut it.
func TestDisks_onlyTheAnswerHasALimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after  time.Duration
		begins bool
	}{
		"at once":  {0, true},
		"its turn": {5 * time.Minute, true},
		"in time":  {dataAnswerTimeout - time.Second, true},
		"too late": {dataAnswerTimeout + time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				servers := &lateServers{after: c.after}
				began := time.Now()
				stream, answer := New(Options{Servers: servers}).request(t.Context(), "a", nil, datacopy.Position{})
				must.EqOp(t, min(c.after, dataAnswerTimeout), time.Since(began))
				must.EqOp(t, c.begins, stream != nil)
				if !c.begins {
					must.EqOp(t, errDataSilent.Error(), answer.Why)
					return
				}
				time.Sleep(24 * time.Hour)
				must.NoError(t, context.Cause(servers.request))
				must.NoError(t, stream.Close())
				must.ErrorIs(t, servers.request.Err(), context.Canceled)
			})
		})
	}
}
