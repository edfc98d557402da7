package outlook_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/outlook"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// The leader makes estimates while a drain runs, and drops them when it does not lead any more. Without a drain
// it waits. A reader gets the last ones.
func TestOutlook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := clustertest.NewReplica(t, shims.FSMConfig{})
		r.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
		r.Nodes("n1", "n2")
		o := outlook.New(r.FSM.Store, drainer.NodeDrainerConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			o.Lead(ctx)
		}()
		ends := func() time.Time {
			synctest.Wait()
			all := []rules.Status{{Drain: &cluster.Drain{ID: "gone"}}}
			if n := r.State().Node("n1"); n.Draining() {
				all = append(all, rules.Status{Drain: n.Drain, PausedSince: n.Drain.PausedSince(r.State().DrainView().DrainPause())})
			}
			o.Add(all)
			must.True(t, all[0].EndsAbout.IsZero())
			return all[len(all)-1].EndsAbout
		}
		must.True(t, ends().IsZero())
		r.Drain("n1", &cluster.DrainSpec{})
		must.Eq(t, time.Now().UTC(), ends()) // an empty node
		began := time.Now().UTC()
		time.Sleep(1500 * time.Millisecond)
		must.Eq(t, began, ends()) // a request makes no estimate
		time.Sleep(time.Second)
		must.Eq(t, began.Add(2*time.Second), ends())

		pause := func(node cluster.NodeID, pause bool) {
			r.Must(&shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{Node: node, Pause: pause, At: time.Now()}})
		}
		for _, node := range []cluster.NodeID{"n1", ""} {
			pause(node, true)
			must.True(t, ends().IsZero())
			time.Sleep(time.Hour)
			must.True(t, ends().IsZero())
			pause(node, false)
			must.Eq(t, time.Now().UTC(), ends()) // the resume wakes it
		}

		cancel()
		<-ended
		must.True(t, ends().IsZero())
	})
}
