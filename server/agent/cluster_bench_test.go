package agent_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// BenchmarkCluster measures the writes a second that three servers on one disk acknowledge, to one
// client and to [shims.DefaultMaxInFlight] clients, and the consistent reads a second.
func BenchmarkCluster(b *testing.B) {
	for _, inFlight := range []int{1, shims.DefaultMaxInFlight} {
		b.Run(fmt.Sprintf("writes/%d", inFlight), func(b *testing.B) {
			leader := benchCluster(b)
			w := leader.Backend().Writer
			parallel(b, inFlight, func(i int) error {
				e := cluster.NodeIneligible
				if i/benchNodes%2 == 1 {
					e = cluster.NodeEligible
				}
				_, err := w.UpdateEligibility(b.Context(), benchNode(i%benchNodes), e)
				return err
			})
		})
	}
	b.Run("consistent reads/64", func(b *testing.B) {
		r := benchCluster(b).Backend().Reader
		parallel(b, 64, func(int) error { return r.Consistent(b.Context()) })
	})
}

const benchNodes = 100

func benchNode(i int) cluster.NodeID { return cluster.NodeID(fmt.Sprintf("n%d", i)) }

// benchCluster starts three servers with nodes and returns the leader.
func benchCluster(b *testing.B) *agent.Agent {
	b.Helper()
	var agents []*agent.Agent
	var join []string
	for i := range 3 {
		a, err := agent.New(agent.Config{
			Name: fmt.Sprintf("s%d", i+1), DataDir: b.TempDir(), HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0", BootstrapExpect: 3, Join: join, PeerSecret: agent.NewTestSecret(),
		})
		must.NoError(b, err)
		b.Cleanup(func() { _ = a.Stop() })
		agents, join = append(agents, a), []string{a.ServerAddr()}
	}
	for _, a := range agents {
		must.NoError(b, a.Ready(b.Context()))
	}
	leads := slices.IndexFunc(agents, func(a *agent.Agent) bool { return a.Backend().Reader.Consistent(b.Context()) == nil })
	for i := range benchNodes {
		_, err := agents[leads].Backend().Writer.RegisterNode(b.Context(), &cluster.Node{ID: benchNode(i), Status: cluster.NodeReady})
		must.NoError(b, err)
	}
	return agents[leads]
}

// parallel calls do b.N times with so many goroutines, and reports the calls a second.
func parallel(b *testing.B, workers int, do func(i int) error) {
	b.Helper()
	todo := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range todo {
				if err := do(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ResetTimer()
	for i := range b.N { // b.Loop would not count the calls in progress at the end
		todo <- i
	}
	close(todo)
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s")
}
