package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"
)

const (
	// waitingReaders is how many blocking queries are open at once.
	waitingReaders = 1000
	// drainsPerMinute is the rate of drain requests.
	drainsPerMinute = 1000
)

// A thousand readers wait on one server for news of nodes, while operators request a thousand
// drains a minute. Every request is answered, and the server's memory stays within bounds. The test
// prints the latencies and does not judge them.
func TestLoad(t *testing.T) {
	requests := 100
	if os.Getenv(roundsVariable) != "" {
		requests = drainsPerMinute
	}
	s := startServers(t, time.Minute)
	clients := s.startClients(50)
	server := s.leader()
	before := server.resident(t)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	var waiting, answered atomic.Int64
	for i := range waitingReaders {
		readers.Go(func() { readOn(ctx, server.api, clients.ids[i%len(clients.ids)], &waiting, &answered) })
	}
	s.await("the readers", func() bool { return waiting.Load() == waitingReaders })
	held := server.resident(t)

	took := askSteadily(ctx, s, clients.ids, requests)
	s.await("news for the readers", func() bool { return answered.Load() >= int64(min(requests, waitingReaders)) })
	peak := server.resident(t)
	stop()
	readers.Wait()

	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(time.Microsecond)
	}
	t.Logf("%d drain requests at %d a minute beside %d blocking queries: p50 %s, p99 %s, longest %s; %d answers to readers",
		len(took), drainsPerMinute, waitingReaders, at(0.5), at(0.99), at(1), answered.Load())
	t.Logf("resident memory of the server: %d MiB before, %d MiB with the queries open, %d MiB after the requests", before>>20, held>>20, peak>>20)
	const perQuery = memoryFactor * 256 << 10
	must.Less(t, before+waitingReaders*perQuery, held)
	must.Less(t, held+memoryFactor*256<<20, peak)
}

// readOn waits for news of a node, again and again, until the context ends.
func readOn(ctx context.Context, c *api.Client, node string, waiting, answered *atomic.Int64) {
	query := (&api.QueryOptions{AllowStale: true, WaitTime: time.Minute}).WithContext(ctx)
	for first := true; ctx.Err() == nil; {
		_, meta, err := c.Nodes().Info(node, query)
		if err != nil {
			select { // the server refuses, or is not there
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		if first {
			waiting.Add(1) // its next query waits
			first = false
		} else if meta.LastIndex > query.WaitIndex {
			answered.Add(1)
		}
		query.WaitIndex = meta.LastIndex
	}
}

// askSteadily starts and ends drains at the rate, and returns the latency of each request. The rate
// does not depend on the latency. It retries when the leader is lost, as operators do: that happens
// on a busy machine.
func askSteadily(ctx context.Context, s *servers, nodes []string, requests int) []time.Duration {
	var mu sync.Mutex
	var took []time.Duration
	var asking sync.WaitGroup
	ticks := time.NewTicker(time.Minute / drainsPerMinute)
	defer ticks.Stop()
	for i := range requests {
		<-ticks.C
		asking.Go(func() {
			options := &api.DrainOptions{MarkEligible: true}
			if i/len(nodes)%2 == 0 {
				options.DrainSpec = &api.DrainSpec{Deadline: time.Hour}
			}
			began := time.Now()
			err := s.do(ctx, func(c *api.Client) error {
				_, err := c.Nodes().UpdateDrainOpts(nodes[i%len(nodes)], options, nil)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
			if err != nil {
				s.t.Errorf("request %d: %v", i, err)
			}
		})
	}
	asking.Wait()
	return took
}

var residentLine = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// resident is how much memory a server has, in bytes.
func (p *serverProcess) resident(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		t.Skipf("this system does not say how much memory a process has: %v", err)
	}
	found := residentLine.FindSubmatch(status)
	must.SliceNotEmpty(t, found)
	kilobytes, err := strconv.Atoi(string(found[1]))
	must.NoError(t, err)
	return kilobytes << 10
}
