package agent_test

import (
	"sync/atomic"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/agent"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A read that has reached the leader when that is lost can be asked again, and the
// answer says so.
func TestForward_theLeaderIsLostReading(t *testing.T) {
	t.Parallel()
	w := newTown(t, 3, nil)
	leader := w.leader()
	follower := api(t, w.others(leader)[0])
	_, err := follower.Register(t.Context(), testNode(1))
	must.NoError(t, err)
	failed := make(chan error, 1)
	go func() {
		_, _, err := follower.Nodes(t.Context(), apiclient.NodesQuery{Query: apiclient.Query{Index: 1 << 40}})
		failed <- err
	}()
	for answered := false; !answered; { // the reader may not have come to the leader yet
		w.network.isolate(leader, true)
		select {
		case err = <-failed:
			answered = true
		default:
			w.network.isolate(leader, false)
		}
	}
	must.ErrorContains(t, err, "500")
	must.StrNotContains(t, err.Error(), "may have been made")
}

// A write that has reached the leader when that is lost may have been made, and
// the answer says so. One that has not reached it goes to the next leader.
func TestForward_theLeaderIsLostWriting(t *testing.T) {
	t.Parallel()
	var slow atomic.Value // the name of the server that does not get done with a write
	slow.Store("")
	reached, release := make(chan struct{}, 3), make(chan struct{})
	w := newTown(t, 3, func(c *agent.Config) {
		name := c.Name
		c.OnApply = func(a shims.Applied) {
			if _, registers := a.Message.(*shims.NodeRegister); registers && slow.Load() == name {
				reached <- struct{}{}
				<-release
			}
		}
	})
	t.Cleanup(func() { close(release) })
	leader := w.leader()
	slow.Store(leader.Name())
	follower := api(t, w.others(leader)[0])
	failed := make(chan error, 1)
	go func() {
		_, err := follower.Register(t.Context(), testNode(1))
		failed <- err
	}()
	<-reached
	w.network.isolate(leader, true)
	err := <-failed
	must.ErrorContains(t, err, "500")
	must.ErrorContains(t, err, "it may have been made")

	_, err = follower.Register(t.Context(), testNode(2)) // while nobody leads, or somebody new
	must.NoError(t, err)
	second := w.leader(w.others(leader)...)
	must.NotNil(t, second.Server().Store().Snapshot().Node(testNode(1).ID)) // it was made
}
