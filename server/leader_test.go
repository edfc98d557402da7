package server

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"
)

// Raft leaves out the loss of leadership if the server leads again before it is read. The server still
// ends the old term and begins a new one.
func TestServer_aLossThatRaftLeavesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, ended := 0, 0
		_, transport := raft.NewInmemTransport("s1")
		s, err := open(Config{ID: "s1", Transport: transport, WhileLeading: func(ctx context.Context) {
			began++
			<-ctx.Done()
			ended++
		}})
		must.NoError(t, err)
		changes := make(chan bool)
		go s.lead(changes)
		for term := range 3 {
			changes <- true
			synctest.Wait()
			must.Eq(t, []int{term + 1, term}, []int{began, ended})
		}
		changes <- false
		synctest.Wait()
		must.Eq(t, []int{3, 3}, []int{began, ended})
		must.NoError(t, s.Shutdown())
	})
}
