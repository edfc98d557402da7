package statestore_test

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// journalCost is what entries write to journals: rows, and their bytes in a snapshot.
type journalCost struct{ rows, bytes int }

// countJournal returns what writes add to journals.
func countJournal(w *world, write func()) (all journalCost) {
	journals, groups := make(map[*journal.Journal]bool), make(map[*journal.Running]bool)
	read := func() (cost journalCost) {
		for j := range statestore.Journals(w.snap()) {
			if !journals[j] {
				journals[j] = true
				cost = journalCost{cost.rows + 1, cost.bytes + size(j)}
			}
		}
		for r := range statestore.JournalGroups(w.snap()) {
			if !groups[r] {
				groups[r] = true
				cost = journalCost{cost.rows + 1, cost.bytes + size(r)}
			}
		}
		return cost
	}
	read()
	w.each = func() {
		cost := read()
		all = journalCost{all.rows + cost.rows, all.bytes + cost.bytes}
	}
	write()
	w.each = nil
	return all
}

// The world of the counts: a large group of which the first allocations are on a node that drains.
const (
	costlyGroup = 1000
	costlyMarks = 50
)

// costlyWorld returns the world with a drain of n1 that has begun, and the ids of the allocations of the group.
func costlyWorld(t must.T) (w *world, ids []cluster.AllocID) {
	w = newWorld(t)
	w.write(func(txn *statestore.Txn) { txn.RaiseClusterVersion(cluster.VersionOfJournals) })
	w.nodes("n1", "n2")
	job := w.job(serviceJob("a-service-with-a-name", costlyGroup))
	var here, there []string
	for i := range costlyGroup {
		id := fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
		ids = append(ids, cluster.AllocID(id))
		if i <= costlyMarks {
			here = append(here, id)
		} else {
			there = append(there, id)
		}
	}
	w.place(job, "n1", nil, here...)
	w.place(job, "n2", nil, there...)
	w.drain("n1", "00000000-0000-0000-0000-000000000001", cluster.DrainSpec{})
	w.mark(cluster.MarkPaced, ids[0])
	return w, ids
}

// figureJournal counts what journals cost: the largest record, and what entries write.
func figureJournal(b *testing.B) {
	report := func(name string, c journalCost) {
		b.Run(name, func(b *testing.B) {
			measure.Count(b, c.rows, "rows")
			measure.Count(b, c.bytes, "bytes")
		})
	}
	b.Run("record", func(b *testing.B) {
		largest := 0
		for _, e := range fullEvents() {
			largest = max(largest, size(fullJournal(e, 1000)))
		}
		measure.Count(b, largest, "bytes")
		measure.Count(b, largest*cluster.MaxDrainRecords, "bytes-of-all")
	})
	w, ids := costlyWorld(b)
	report("marks", countJournal(w, func() { w.mark(cluster.MarkPaced, ids[1:costlyMarks+1]...) }))
	report("stops", countJournal(w, func() {
		for _, id := range ids[1:costlyMarks] {
			w.stop(id)
			w.reportNow(cluster.ClientComplete, false, id)
		}
	}))
	report("health", countJournal(w, func() {
		for i := range 100 {
			verdict(w, ids[costlyGroup-1], i%2 == 1)
		}
	}))
	report("refusals", countJournal(w, func() {
		w.write(func(txn *statestore.Txn) {
			var refused []rules.Refusal
			for range 100 {
				refused = append(refused, rules.Refusal{Node: "n1", Why: "the drain has changed"})
			}
			statestore.NoteRefusals(txn, refused, w.now)
		})
	}))
	report("others", countJournal(w, func() {
		other := w.job(serviceJob("other", 2))
		w.place(other, "n2", nil, "o1", "o2")
		for i := range 100 {
			verdict(w, "o1", i%2 == 1)
			w.status("n2", cluster.NodeReady)
		}
	}))
}

// verdict applies a report of the allocation's health.
func verdict(w *world, id cluster.AllocID, healthy bool) {
	w.write(func(t *statestore.Txn) {
		t.UpdateAllocsFromClient([]cluster.AllocReport{{
			Alloc: id, Node: w.snap().Alloc(id).NodeID, ClientStatus: cluster.ClientRunning, Healthy: &healthy, HealthyAt: w.now, At: w.now,
		}}, w.now)
	})
}
