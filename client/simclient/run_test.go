package simclient_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Run steps the fleet at its times and after each change, also after one that is written while a
// step runs. It ends with its context, even while a batch is in flight, whose answer may come later.
// With an ended context it returns at once.
func TestFleet_Run(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		var mu sync.Mutex // guards w.state and w.lines
		latency := 5 * time.Millisecond
		place := func(id cluster.AllocID) {
			mu.Lock()
			defer mu.Unlock()
			w.node("n", cluster.NodeReady)
			w.place(id, "n", service(), simclient.Behaviour{Start: seconds(2)})
		}
		w = newWorld(t, func(o *simclient.Options) {
			o.Snapshot = func() simclient.State {
				mu.Lock()
				state := w.state
				mu.Unlock()
				if state.index == 1 {
					place("a") // after the step has its state
				}
				return state
			}
			o.Applier = applierFunc(func(reports []cluster.AllocReport, reply func(bool)) bool {
				time.AfterFunc(latency, func() {
					mu.Lock()
					defer mu.Unlock()
					w.land(&flight{reports: reports, reply: reply})
				})
				return true
			})
		})
		w.now = time.Now()
		lines := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(w.lines)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.fleet.Run(ctx) })
		time.Sleep(seconds(13))
		must.Len(t, 2, lines(), must.Sprint("running, then healthy"))

		latency = time.Hour
		place("b")
		time.Sleep(seconds(13))
		cancel()
		running.Wait()
		must.Len(t, 2, lines())
		time.Sleep(latency)
		must.Len(t, 3, lines())
		w.fleet.Run(ctx)
	})
}
