package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// noopInterval is the interval of entries that change nothing.
const noopInterval = 10 * time.Millisecond

// perNode is the number of allocations of a node. It is small, because only the first mark is measured
// and the scheduler scans all nodes for each job.
const perNode = 2

// figureFirstMark: the time from a drain to its first mark is little longer than the time of an
// entry that changes nothing.
func figureFirstMark(b *testing.B) {
	samples := 50
	if measure.SizeOf(b) == measure.Full {
		samples = 1000
	}
	const refuges, spare = 2, 100
	t := newCluster(b, clusterPlan{nodes: refuges + samples + spare, perNode: perNode, jobSize: perNode, job: cluster.JobService, maxParallel: perNode})
	// The scheduler prefers the first nodes, which never drain. Otherwise the last node that drains
	// would get all allocations.
	drained, updated := t.nodes[refuges:refuges+samples], t.nodes[refuges+samples:]
	var state bytes.Buffer
	must.NoError(b, statestore.Persist(&state, t.fsm.Store().Snapshot()))
	for _, c := range []struct {
		name    string
		updates int // updates of nodes a second, and the same number of updates of allocations
	}{{"idle", 0}, {"busy", 1000}} {
		b.Run(c.name, func(b *testing.B) {
			f := &firstMarks{servers: newServers(b), marked: make(chan time.Duration, 1), ended: make(chan struct{}, 1)}
			f.servers.restore(state.Bytes(), t.index)
			f.noops = newTimings(f.servers)
			f.clients = newInstantClients(func(m shims.Message) { f.servers.propose(m) })
			f.servers.onApply(f.recordApplied)
			stop := make(chan struct{})
			var running sync.WaitGroup
			running.Go(func() { every(stop, noopInterval, func(int) { f.noops.propose(&shims.EvalUpdate{}) }) })
			if c.updates > 0 {
				u := &updates{servers: f.servers, nodes: updated}
				// One entry updates one node, or the allocations of a batch of reports.
				running.Go(func() { every(stop, time.Second/time.Duration(c.updates), u.node) })
				running.Go(func() { every(stop, updateBatch*time.Second/time.Duration(c.updates), u.allocs) })
			}
			began := time.Now()
			ratios := f.sample(b, drained)
			took := time.Since(began)
			close(stop)
			running.Wait()
			failed := f.noops.close()
			f.servers.onApply(func(shims.Applied) {})
			f.clients.close()
			f.report(b, ratios, took, c.updates)
			measure.Count(b, failed, "no-ops-failed")
		})
	}
}

// every calls do at an interval until stop is closed. It makes late calls immediately.
func every(stop <-chan struct{}, interval time.Duration, do func(i int)) {
	began := time.Now()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Until(began.Add(time.Duration(i) * interval))):
			do(i)
		}
	}
}

// firstMarks measures the time from a drain to its first mark, and the time of no-ops during the
// drains.
type firstMarks struct {
	servers *raftServers
	clients *instantClients
	noops   *timings           // set before the first entry
	marked  chan time.Duration // capacity 1
	ended   chan struct{}      // capacity 1
	// allMarks and allNoops are the times of all parts.
	allMarks, allNoops []time.Duration

	mu sync.Mutex
	// drainedAt is the start of the last drain while the drain has no mark, or zero. It is guarded by
	// mu.
	drainedAt time.Time
	// nodes and allocs count applied updates, moved counts marked allocations. They are guarded by
	// mu.
	nodes, allocs, moved int
}

// recordApplied records an applied entry.
func (f *firstMarks) recordApplied(a shims.Applied) {
	now := time.Now()
	f.clients.onApply(a)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch m := a.Message.(type) {
	case *shims.NodeUpdateDrain:
		f.drainedAt = now
	case *shims.AllocUpdateDesiredTransition:
		accepted := len(a.Response.(shims.MarksApplied).Accepted)
		f.moved += accepted
		if accepted > 0 && !f.drainedAt.IsZero() {
			f.marked <- now.Sub(f.drainedAt)
			f.drainedAt = time.Time{}
		}
	case *shims.NodesDrainComplete:
		if len(a.Response.(shims.CompletionsApplied).Ended) > 0 {
			f.ended <- struct{}{}
		}
	case *shims.EvalUpdate:
		if len(m.Evals) == 0 {
			f.noops.recordApplied(a.Index, now)
		}
	case *shims.NodeUpdateStatus:
		f.nodes++
	case *shims.AllocClientUpdate:
		f.allocs += len(m.Reports)
	}
}

// percentiles are the bounded percentiles.
var percentiles = [...]float64{50, 99}

// sample drains the nodes one after the other in several parts. It returns the ratios of each
// percentile for the parts.
func (f *firstMarks) sample(b *testing.B, nodes []cluster.NodeID) (ratios [len(percentiles)][]float64) {
	parts := measure.PairsOf(b)
	each := len(nodes) / parts
	for part := range parts {
		var marks []time.Duration
		for _, n := range nodes[part*each : (part+1)*each] {
			f.servers.propose(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{
				Node: n, Spec: &cluster.DrainSpec{}, Drain: cluster.DrainID("drain-" + string(n)), At: time.Now(),
			}})
			marks = append(marks, within(b, f.marked))
			within(b, f.ended)
		}
		noops := f.noops.take()
		must.SliceNotEmpty(b, noops)
		f.allMarks, f.allNoops = append(f.allMarks, marks...), append(f.allNoops, noops...)
		for i, p := range percentiles {
			ratios[i] = append(ratios[i], float64(percentile(marks, p))/float64(percentile(noops, p)))
		}
	}
	return ratios
}

// within receives a value, or fails the benchmark after the longest wait.
func within[T any](b *testing.B, c <-chan T) (t T) {
	b.Helper()
	select {
	case t = <-c:
	case <-time.After(patience):
		b.Fatalf("no value was received within %s", patience)
	}
	return t
}

// percentile returns the smallest time that p percent of the times do not exceed.
func percentile(times []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(math.Ceil(float64(len(sorted))*p/100))-1]
}

func (f *firstMarks) report(b *testing.B, ratios [len(percentiles)][]float64, took time.Duration, updates int) {
	for i, p := range percentiles {
		measure.RatioOf(ratios[i]).ReportAs(b, fmt.Sprintf("p%.0f-%s", p, measure.UnitRatio))
	}
	for _, p := range percentiles {
		marks, noops := percentile(f.allMarks, p), percentile(f.allNoops, p)
		measure.Count(b, marks.Seconds()*1000, fmt.Sprintf("marks-p%.0f-ms", p))
		measure.Count(b, noops.Seconds()*1000, fmt.Sprintf("no-ops-p%.0f-ms", p))
		measure.Count(b, marks.Seconds()/noops.Seconds(), fmt.Sprintf("p%.0f-of-all", p))
	}
	measure.Count(b, len(f.allMarks), "samples")
	f.mu.Lock()
	defer f.mu.Unlock()
	must.Eq(b, len(f.allMarks)*perNode, f.moved) // each allocation moved once
	nodes, allocs := float64(f.nodes)/took.Seconds(), float64(f.allocs)/took.Seconds()
	b.ReportMetric(nodes, "nodes/s")
	b.ReportMetric(allocs, "allocs/s")
	if updates == 0 {
		return
	}
	// Updates that were not applied did not load the servers.
	missed := 1 - min(nodes, allocs)/float64(updates)
	measure.Ratio{Median: missed, Low: missed, High: missed}.ReportAs(b, "missed-"+measure.UnitRatio)
}

// updates writes to nodes that do not drain and to their allocations.
type updates struct {
	servers *raftServers
	nodes   []cluster.NodeID
	next    int // the index of the next node whose allocations are updated
}

// updateBatch is the least number of reports of allocations in one entry.
const updateBatch = 50

func (u *updates) node(i int) {
	u.servers.propose(&shims.NodeUpdateStatus{At: time.Now(), Node: u.nodes[i%len(u.nodes)], Status: cluster.NodeReady})
}

func (u *updates) allocs(i int) {
	m := new(shims.AllocClientUpdate)
	state := u.servers.leader.store().Snapshot()
	for len(m.Reports) < updateBatch {
		n := u.nodes[u.next%len(u.nodes)]
		u.next++
		for a := range state.WorkView().LiveAllocsByNode(n) {
			m.Reports = append(m.Reports, cluster.AllocReport{
				Alloc: a.ID, Node: a.NodeID, ClientStatus: a.ClientStatus, ClientDescription: fmt.Sprintf("update %d", i), At: time.Now(),
			})
		}
	}
	u.servers.propose(m)
}
