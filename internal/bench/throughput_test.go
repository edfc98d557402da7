package main

import (
	"bytes"
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// figureThroughput: three servers drain at least half as fast as they apply the same entries.
func figureThroughput(b *testing.B) {
	c := drainCase{20, 100, 20}
	if measure.SizeOf(b) == measure.Full {
		c = drainCase{100, 1000, 50}
	}
	for _, maxParallel := range []int{1, 10} {
		b.Run(fmt.Sprintf("max_parallel=%d/%s", maxParallel, c), func(b *testing.B) { compareThroughput(b, c, maxParallel) })
	}
}

func compareThroughput(b *testing.B, c drainCase, maxParallel int) {
	t := newCluster(b, c.plan(maxParallel))
	var state bytes.Buffer
	must.NoError(b, statestore.Persist(&state, t.fsm.Store().Snapshot()))
	servers, replicas := newServers(b), newReplicas(b)
	times := newTimings(servers)
	clients := newInstantClients(times.propose)
	ratios := make([]float64, measure.PairsOf(b))
	var moved, inFlight, entries, seconds float64
	for i := range ratios {
		index := uint64(i+1) << 32 // equal entries have equal indexes on both sides
		servers.restore(state.Bytes(), index)
		replicas.restore(state.Bytes(), index)
		run := newThroughputRun(servers, clients, times, c.drained)
		took := run.drain(b, t.nodes[:c.drained])
		ratios[i] = took.Seconds() / replicas.replay(b, run).Seconds()
		must.Eq(b, c.drained*c.perNode, run.moved)
		moved, entries, seconds, inFlight = moved+float64(run.moved), entries+float64(len(run.entries)), seconds+took.Seconds(), run.inFlight
	}
	clients.close()
	must.Zero(b, times.close())
	servers.onApply(func(shims.Applied) {})
	r := measure.RatioOf(ratios)
	r.ReportAs(b, measure.UnitRatio)
	b.ReportMetric(moved/seconds, "allocs/s")
	b.ReportMetric(entries/float64(len(ratios)), "entries")
	b.ReportMetric(inFlight, "in-flight")
}

// throughputRun is one run of drains, with its entries.
type throughputRun struct {
	times *timings
	// Raft's goroutine owns the next fields until done is closed.
	entries      []shims.Applied
	moved, ended int
	drains       int
	done         chan struct{}
	// inFlight is the average number of entries in flight, after the run.
	inFlight float64
}

// newThroughputRun starts to record the servers' entries.
func newThroughputRun(servers *raftServers, clients *instantClients, times *timings, drains int) *throughputRun {
	r := &throughputRun{times: times, drains: drains, done: make(chan struct{})}
	servers.onApply(func(a shims.Applied) {
		if r.ended == r.drains {
			return
		}
		clients.onApply(a)
		r.recordApplied(a)
	})
	return r
}

func (r *throughputRun) recordApplied(a shims.Applied) {
	r.entries = append(r.entries, shims.Applied{Index: a.Index, Message: a.Message})
	switch a.Message.(type) {
	case *shims.NodeUpdateDrain, *shims.AllocClientUpdate:
		r.times.recordApplied(a.Index, time.Now())
	}
	switch response := a.Response.(type) {
	case shims.MarksApplied:
		r.moved += len(response.Accepted)
	case shims.CompletionsApplied:
		if r.ended += len(response.Ended); r.ended == r.drains {
			close(r.done)
		}
	}
}

// drain drains the nodes and returns the duration.
func (r *throughputRun) drain(b *testing.B, nodes []cluster.NodeID) time.Duration {
	began := time.Now()
	for _, n := range nodes {
		r.times.propose(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{
			Node: n, Spec: &cluster.DrainSpec{}, Drain: cluster.DrainID("drain-" + string(n)), At: began,
		}})
	}
	within(b, r.done)
	took := time.Since(began)
	// Little's law: the average number of entries in flight is the number of entries a second times
	// the average seconds from the proposal of an entry to its application.
	perSecond := float64(len(r.entries)) / took.Seconds()
	r.inFlight = perSecond * mean(r.times.take()).Seconds()
	return took
}

// replay applies the entries of a run at the same indexes, with the run's average number of entries in
// flight. It returns the duration.
func (r *raftServers) replay(b *testing.B, run *throughputRun) time.Duration {
	var data [][]byte
	for _, e := range run.entries {
		d, err := shims.Encode(e.Message)
		must.NoError(b, err)
		data = append(data, d)
	}
	next := r.leader.raft.LastIndex() + 1
	must.LessEq(b, run.entries[0].Index, next)
	w := newWindow(max(1, int(run.inFlight+0.5)))
	began := time.Now()
	for i, e := range run.entries {
		for ; next < e.Index; next++ { // the run had a barrier at this index
			w.send(func() raft.Future { return r.leader.raft.Barrier(0) })
		}
		w.send(func() raft.Future { return r.leader.raft.Apply(data[i], 0) })
		next++
	}
	must.NoError(b, w.close())
	took := time.Since(began)
	for n := range r.leader.store().Snapshot().DrainingNodes() {
		b.Fatalf("node %s still drains on the servers that replayed the entries", n.ID)
	}
	return took
}

// window holds the entries in flight up to a limit.
type window struct {
	room    chan struct{}
	futures chan raft.Future
	failed  chan error // capacity 1; receives the first error, or nil, when all entries have ended
}

func newWindow(size int) *window {
	w := &window{room: make(chan struct{}, size), futures: make(chan raft.Future, size), failed: make(chan error, 1)}
	go func() {
		var failed error
		for f := range w.futures {
			failed = cmp.Or(failed, f.Error())
			<-w.room
		}
		w.failed <- failed
	}()
	return w
}

// send waits for a free slot and sends an entry.
func (w *window) send(entry func() raft.Future) {
	w.room <- struct{}{}
	w.futures <- entry()
}

// close waits for all entries and returns the first error.
func (w *window) close() error {
	close(w.futures)
	return <-w.failed
}
