package main

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// figureUnconcerned: a write that does not affect drains costs the drainer nothing.
func figureUnconcerned(b *testing.B) {
	share := 100
	if measure.SizeOf(b) == measure.Full {
		share = 1
	}
	const perNode, jobSize = 10, 100
	t := newCluster(b, clusterPlan{nodes: 100_000 / share, perNode: perNode, jobSize: jobSize, layout: packed, job: cluster.JobService, maxParallel: 1})
	draining := len(t.nodes) / 100
	t.drain(draining, cluster.DrainSpec{})
	state := &rowCounter{StateReader: t.fsm.Store().Reader()}
	l := leadFrom(t, state)
	l.runUntilIdle(epoch)
	must.Len(b, draining, l.status())
	others := t.nodes[2*draining:]
	for _, w := range []struct {
		name  string
		write func(txn *statestore.Txn, i int)
	}{
		{"node-status", func(txn *statestore.Txn, i int) { toggleNode(b, txn, others[i/2*7%len(others)], i) }},
		{"node", func(txn *statestore.Txn, i int) { updateNode(b, txn, others[i*7%len(others)], i) }},
		{"allocation", func(txn *statestore.Txn, i int) {
			a := 2*draining*perNode + i*7%(len(others)*perNode)
			updateAlloc(txn, allocOf(a/jobSize, a%jobSize), i)
		}},
	} {
		b.Run(w.name, func(b *testing.B) {
			countUnconcerned(b, l, state, w.write)
			measure.Count(b, l.feedBytes(measure.PairsOf(b), w.write), "feed-bytes")
		})
	}
	l.term.Close()
}

// updateNode writes a heartbeat or the registration of a node.
func updateNode(b *testing.B, txn *statestore.Txn, id cluster.NodeID, i int) {
	at := epoch.Add(time.Duration(i) * time.Second)
	if i%2 == 0 {
		must.NoError(b, txn.UpdateNodeStatus(id, cluster.NodeReady, at))
		return
	}
	must.NoError(b, txn.UpsertNode(txn.State().Node(id), at))
}

// toggleNode changes a node's status between ready and down.
func toggleNode(b *testing.B, txn *statestore.Txn, id cluster.NodeID, i int) {
	status := [2]cluster.NodeStatus{cluster.NodeDown, cluster.NodeReady}[i%2]
	must.NoError(b, txn.UpdateNodeStatus(id, status, epoch.Add(time.Duration(i)*time.Second)))
}

// updateAlloc writes a report that does not change an allocation's health.
func updateAlloc(txn *statestore.Txn, id cluster.AllocID, i int) {
	a := txn.State().Alloc(id)
	descriptions := [2]string{"tasks are running", "a task has restarted"}
	description := descriptions[0]
	if a.ClientDescription == description {
		description = descriptions[1]
	}
	txn.UpdateAllocsFromClient([]cluster.AllocReport{{
		Alloc: id, Node: a.NodeID, ClientStatus: a.ClientStatus, ClientDescription: description, At: epoch.Add(time.Duration(i) * time.Second),
	}}, time.Time{})
}

const unconcernedWrites = 1000

// countUnconcerned counts the drainer's wake-ups and the rows that it reads during such writes.
func countUnconcerned(b *testing.B, l *leader, state *rowCounter, write func(*statestore.Txn, int)) {
	count := func(writes int, write func(*statestore.Txn, int)) (wakes, rows int) {
		l.steps, state.rows = 0, 0
		for i := range writes {
			before := l.fsm.Store().Snapshot()
			l.edit(func(txn *statestore.Txn) { write(txn, i) })
			must.NotEq(b, before.Index(), l.fsm.Store().Snapshot().Index())
			l.step(epoch.Add(time.Second))
		}
		return l.steps, state.rows
	}
	wakes, rows := count(unconcernedWrites, write)
	measure.Count(b, wakes, "wake-ups")
	measure.Count(b, rows, "rows")
	// A check of the counters: they count a write that affects a drain.
	wakes, rows = count(1, func(txn *statestore.Txn, i int) { updateAlloc(txn, allocOf(0, 0), i) })
	must.Eq(b, 1, wakes)
	must.Positive(b, rows)
}

// feedBytes returns the bytes that a write allocates because a term is subscribed to the state. It is
// the median over the writes of all pairs, because allocations vary slightly between runs. The figure
// "hook" counts all bytes that the hook allocates.
func (l *leader) feedBytes(pairs int, write func(*statestore.Txn, int)) float64 {
	writes := func() (bytes [unconcernedWrites]float64) {
		for i := range bytes {
			bytes[i] = float64(measure.Bytes(func() {
				l.edit(func(txn *statestore.Txn) { write(txn, i) })
			}))
		}
		return bytes
	}
	var extra []float64
	written := l.writes
	for range pairs {
		l.term.Close()
		writes() // a second time, so that both sides write the same values
		without := writes()
		l.begin()
		l.runUntilIdle(epoch)
		writes()
		for i, with := range writes() {
			extra = append(extra, with-without[i])
		}
	}
	must.Eq(l.tb, written, l.writes) // the terms made no writes of their own
	slices.Sort(extra)
	return extra[len(extra)/2]
}
