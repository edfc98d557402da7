package agent

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
)

// A node is alive while one request of it waits for its write, also longer than TTL and grace. The time of the node
// begins again with the end of the write, also of a failed one. Bug: no test noticed that a node was marked down
// while its only request waited: in the other tests a request fails and is repeated within the TTL.
func TestHeartbeats_oneRequestThatWaitsLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		beats := newHeartbeats(heartbeat.Options{}, hclog.NewNullLogger())
		beats.timers = heartbeat.New(heartbeat.Options{}, rand.New(rand.NewPCG(1, 2)))
		for _, id := range []cluster.NodeID{"silent", "waits"} {
			beats.timers.Heartbeat(id, time.Now())
		}
		written, failed := make(chan struct{}), errors.New("no leader")
		end, ended := sync.OnceFunc(func() { close(written) }), make(chan error, 1)
		defer end()
		go func() {
			ended <- beats.during("waits", func() error {
				<-written
				return failed
			})
		}()
		synctest.Wait()
		// pass steps the timers as the loop of a term does.
		pass := func(d time.Duration) (down []cluster.NodeID) {
			for until := time.Now().Add(d); time.Now().Before(until); {
				changes, wakeAt := beats.step()
				for _, c := range changes {
					must.EqOp(t, cluster.NodeDown, c.Status)
					down = append(down, c.Node)
				}
				time.Sleep(time.Until(wakeAt))
			}
			return down
		}
		must.Eq(t, []cluster.NodeID{"silent"}, pass(10*time.Minute))
		end()
		must.ErrorIs(t, <-ended, failed)
		must.SliceEmpty(t, pass(heartbeat.DefaultMinTTL+heartbeat.DefaultGrace-time.Second))
		must.Eq(t, []cluster.NodeID{"waits"}, pass(heartbeat.DefaultMinTTL+2*time.Second), must.Sprint("it sends nothing any more"))
	})
}
