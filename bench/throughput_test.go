package main

import (
	"bytes"
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

// figureThroughput: three servers drain half as fast as they can take the entries that
// it comes to, or faster.
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
	t := newTown(b, c.plan(maxParallel))
	var state bytes.Buffer
	must.NoError(b, t.fsm.Store().Snapshot().Persist(&state))
	servers, replicas := newServers(b), newReplicas(b)
	clients := newInstantClients(servers)
	ratios := make([]float64, measure.PairsOf(b))
	var moved, inFlight, entries, seconds float64
	for i := range ratios {
		index := uint64(i+1) << 32 // equal entries have equal indexes on both sides
		servers.restore(state.Bytes(), index)
		replicas.restore(state.Bytes(), index)
		run := newThroughputRun(servers, clients, c.drained)
		took := run.drain(b, t.nodes[:c.drained])
		ratios[i] = took.Seconds() / replicas.replay(b, run).Seconds()
		must.Eq(b, c.drained*c.perNode, run.moved)
		moved, entries, seconds, inFlight = moved+float64(run.moved), entries+float64(len(run.entries)), seconds+took.Seconds(), run.meanInFlight()
	}
	servers.onApply(func(shims.Applied) {})
	clients.close()
	r := measure.RatioOf(ratios)
	r.ReportAs(b, measure.UnitRatio)
	b.ReportMetric(moved/seconds, "allocs/s")
	b.ReportMetric(entries/float64(len(ratios)), "entries")
	b.ReportMetric(inFlight, "in-flight")
}

// throughputRun is one run of drains, with its entries.
type throughputRun struct {
	servers *raftServers
	// What follows belongs to raft's goroutine until done is closed.
	entries []shims.Applied
	// proposed sums how many entries were in the log and not applied, at each entry.
	proposed     uint64
	moved, ended int
	drains       int
	done         chan struct{}
}

// newThroughputRun has the servers' entries recorded from now on.
func newThroughputRun(servers *raftServers, clients *instantClients, drains int) *throughputRun {
	r := &throughputRun{servers: servers, drains: drains, done: make(chan struct{})}
	servers.onApply(func(a shims.Applied) {
		if r.ended == r.drains {
			return
		}
		clients.tell(a)
		r.note(a)
	})
	return r
}

func (r *throughputRun) note(a shims.Applied) {
	r.entries = append(r.entries, shims.Applied{Index: a.Index, Message: a.Message})
	r.proposed += r.servers.leads.raft.LastIndex() - a.Index + 1
	switch response := a.Response.(type) {
	case shims.Marked:
		r.moved += len(response.Accepted)
	case shims.Completed:
		if r.ended += len(response.Ended); r.ended == r.drains {
			close(r.done)
		}
	}
}

func (r *throughputRun) meanInFlight() float64 { return float64(r.proposed) / float64(len(r.entries)) }

// drain drains the nodes, and returns how long it took.
func (r *throughputRun) drain(b *testing.B, nodes []cluster.NodeID) time.Duration {
	began := time.Now()
	for _, n := range nodes {
		r.servers.propose(&shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{
			Node: n, Spec: &cluster.DrainSpec{}, Drain: cluster.DrainID("drain-" + string(n)), At: began,
		}})
	}
	within(b, r.done)
	return time.Since(began)
}

// replay has the servers take the entries of a run at the same indexes, with as many in
// flight as there were on average, and returns how long it took.
func (r *raftServers) replay(b *testing.B, run *throughputRun) time.Duration {
	var data [][]byte
	for _, e := range run.entries {
		d, err := shims.Encode(e.Message)
		must.NoError(b, err)
		data = append(data, d)
	}
	window := make(chan raft.Future, max(1, int(run.meanInFlight()+0.5)))
	settled := make(chan struct{})
	next := r.leads.raft.LastIndex() + 1
	must.LessEq(b, run.entries[0].Index, next)
	began := time.Now()
	go func() {
		defer close(settled)
		for f := range window {
			must.NoError(b, f.Error())
		}
	}()
	for i, e := range run.entries {
		for ; next < e.Index; next++ { // a barrier was there
			window <- r.leads.raft.Barrier(0)
		}
		window <- r.leads.raft.Apply(data[i], 0)
		next++
	}
	close(window)
	<-settled
	took := time.Since(began)
	for n := range r.leads.store().Snapshot().DrainingNodes() {
		b.Fatalf("node %s still drains where the entries were replayed", n.ID)
	}
	return took
}
