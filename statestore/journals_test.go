package statestore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// storyOf writes a journal as text. Times are seconds since the first event.
func storyOf(j *journal.Journal) string {
	var b strings.Builder
	since := func(at time.Time) int { return int(at.Sub(j.Events[0].At) / time.Second) }
	for _, e := range j.Events {
		fmt.Fprintf(&b, "%d %s\n", since(e.At), e.Text())
	}
	for _, g := range j.Groups {
		fmt.Fprintf(&b, "%s: %d marked, lowest %d of %d at %d for %s", g.Key, g.Marked, g.Lowest, g.Needed, since(g.LowestAt), g.LowestFor)
		if !g.Since.IsZero() {
			fmt.Fprintf(&b, " and since %d", since(g.Since))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// journaled is a world in which n1 has two allocations of web and one of the system job logs, and n2 has one
// of web.
func journaled(t *testing.T) *world {
	w := newWorld(t)
	w.write(func(txn *statestore.Txn) { txn.RaiseClusterVersion(cluster.VersionOfJournals) })
	w.nodes("n1", "n2")
	w.place(w.job(serviceJob("web", 3)), "n1", nil, "a1", "a2")
	w.place(w.snap().Job(cluster.JobKey{Namespace: "default", ID: "web"}), "n2", nil, "a3")
	logs := serviceJob("logs", 1)
	logs.Type = cluster.JobSystem
	logs.Canonicalize()
	w.place(w.job(logs), "n1", nil, "s1")
	return w
}

func journalOf(w *world, id cluster.DrainID) *journal.Journal {
	_, j := w.snap().Story(id)
	return j
}

// reportNow applies reports at the time of the entry.
func (w *world) reportNow(s cluster.ClientStatus, healthy bool, ids ...cluster.AllocID) {
	w.write(func(t *statestore.Txn) {
		var reports []cluster.AllocReport
		for _, id := range ids {
			r := cluster.AllocReport{Alloc: id, Node: w.snap().Alloc(id).NodeID, ClientStatus: s, At: w.now}
			if healthy {
				r.Healthy, r.HealthyAt = new(true), w.now
			}
			reports = append(reports, r)
		}
		t.UpdateAllocsFromClient(reports, w.now)
	})
}

// A drain from its request to its end. The group web falls to one healthy allocation for as long as its
// replacement is not healthy.
func TestJournal(t *testing.T) {
	t.Parallel()
	w := journaled(t)
	w.request(cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{Deadline: time.Hour}, UpdatedBy: "ann"})
	w.request(cluster.DrainUpdate{Node: "n1", Spec: &cluster.DrainSpec{}, UpdatedBy: "bob"})
	w.mark(cluster.MarkPaced, "a1")
	w.write(func(txn *statestore.Txn) {
		for range 3 {
			statestore.NoteRefusals(txn, []rules.Refusal{{Alloc: "a2", Node: "n1", Why: "below budget"}}, w.now)
		}
	})
	w.stop("a1")
	w.reportNow(cluster.ClientComplete, false, "a1")
	w.mark(cluster.MarkFree, "a2")
	must.Eq(t, `0 ann started the drain: deadline 1h0m0s
1 bob changed the drain: no deadline
2 stage consumers began to leave
3 the servers refused 3 writes: below budget
default/web.g: 2 marked, lowest 1 of 2 at 6 for 0s and since 6
`, storyOf(journalOf(w, "d1")))
	w.place(w.snap().Job(cluster.JobKey{Namespace: "default", ID: "web"}), "n2", nil, "a4")
	w.stop("a2")
	w.reportNow(cluster.ClientComplete, false, "a2")
	w.mark(cluster.MarkStage, "s1")
	w.stop("s1")
	w.reportNow(cluster.ClientComplete, false, "s1")
	w.complete("n1", cluster.OutcomeComplete, 0)
	must.Eq(t, `0 ann started the drain: deadline 1h0m0s
1 bob changed the drain: no deadline
2 stage consumers began to leave
3 the servers refused 3 writes: below budget
9 stage consumers has left
10 stage system began to leave
12 stage system has left
13 ended: complete
default/logs.g: 1 marked, lowest 0 of 0 at 10 for 3s
default/web.g: 2 marked, lowest 1 of 2 at 6 for 1s
`, storyOf(journalOf(w, "d1")))
	must.Eq(t, dump(t, w.snap()), dump(t, restored(t, w.snap()).Snapshot()))
}

// An operator cancels a drain. The journal stays with the record, and is deleted with it.
func TestJournal_cancelled(t *testing.T) {
	t.Parallel()
	w := journaled(t)
	w.drain("n1", "d0", cluster.DrainSpec{Deadline: -1})
	w.mark(cluster.MarkForced, "a1", "a2")
	w.request(cluster.DrainUpdate{Node: "n1", UpdatedBy: "ann"})
	must.Eq(t, `0 an operator started the drain: forced
1 stage consumers began to leave
1 2 allocations had to leave by force
2 ended: cancelled by ann
default/web.g: 2 marked, lowest 1 of 2 at 1 for 1s
`, storyOf(journalOf(w, "d0")))
	for i := range cluster.MaxDrainRecordsPerNode {
		must.NotNil(t, journalOf(w, "d0"))
		w.drain("n1", cluster.DrainID(fmt.Sprint("e", i)), cluster.DrainSpec{})
		w.request(cluster.DrainUpdate{Node: "n1"})
	}
	must.Nil(t, journalOf(w, "d0"))
	must.NotNil(t, journalOf(w, "e0"))
}

// A cluster of an older version has no journals. A drain that runs when the version is raised gets a journal of
// what follows.
func TestJournal_belowItsVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.place(w.job(serviceJob("web", 2)), "n1", nil, "a1", "a2")
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.mark(cluster.MarkPaced, "a1")
	must.Nil(t, journalOf(w, "d1"))
	w.write(func(txn *statestore.Txn) { txn.RaiseClusterVersion(cluster.VersionOfJournals) })
	w.mark(cluster.MarkDeadline, "a2")
	must.Eq(t, `0 stage consumers began to leave
0 1 allocation had to leave because of the deadline
default/web.g: 1 marked, lowest 0 of 1 at 0 for 0s and since 0
`, storyOf(journalOf(w, "d1")))
}

// A journal wakes no reader of other tables, and moves no index. It wakes the readers of its drain.
func TestJournal_wakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := journaled(t)
		w.drain("n1", "d1", cluster.DrainSpec{})
		indexes := func(s *statestore.Snapshot) (all []uint64) {
			for _, table := range []string{statestore.TableNodes, statestore.TableDrains, statestore.TableJobs, statestore.TableAllocs, statestore.TableEvals} {
				all = append(all, s.TableIndex(table))
			}
			return all
		}
		before := indexes(w.snap())
		queries := map[string]func(s *statestore.Snapshot){
			"nodes":           func(s *statestore.Snapshot) { nodeIDs(s.Nodes()) },
			"draining nodes":  func(s *statestore.Snapshot) { nodeIDs(s.DrainView().DrainingNodes()) },
			"records":         func(s *statestore.Snapshot) { recordIDs(s.Drains()) },
			"a job":           func(s *statestore.Snapshot) { s.Job(cluster.JobKey{Namespace: "default", ID: "web"}) },
			"allocations":     func(s *statestore.Snapshot) { allocIDs(s.Allocs()) },
			"those of a node": func(s *statestore.Snapshot) { allocIDs(s.AllocsByNode("n1")) },
			"indexes":         func(s *statestore.Snapshot) { indexes(s) },
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		blocked := make(map[string]*blocked)
		for name, query := range queries {
			blocked[name] = block(ctx, w, w.index, func(s *statestore.Snapshot) uint64 { query(s); return 0 })
		}
		story := block(ctx, w, w.index, func(s *statestore.Snapshot) uint64 {
			_, j := s.Story("d1")
			return j.Events[len(j.Events)-1].Index
		})
		w.write(func(txn *statestore.Txn) {
			statestore.NoteRefusals(txn, []rules.Refusal{{Node: "n1", Why: "the drain has changed"}}, w.now)
		})
		must.False(t, story.waits())
		must.Eq(t, before, indexes(w.snap()))
		for name, b := range blocked {
			must.True(t, b.waits(), must.Sprint(name))
			must.Eq(t, 1, b.runs.Load(), must.Sprint(name))
		}
	})
}

// The journal keeps what a plan foretold of the newest request. A request without a plan removes that of an
// earlier one.
func TestJournal_plan(t *testing.T) {
	t.Parallel()
	w := journaled(t)
	request := func(p *cluster.DrainPlan) *cluster.DrainPlan {
		w.write(func(txn *statestore.Txn) {
			_, err := txn.UpdateNodeDrain(cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}, At: w.now, Plan: p})
			must.NoError(t, err)
		})
		return journalOf(w, "d1").Plan
	}
	foretold := &cluster.DrainPlan{Sentence: "3 allocations leave in 1m", Index: 7, Took: time.Minute}
	must.Eq(t, foretold, request(foretold))
	must.Nil(t, request(nil))
	must.Eq(t, foretold, request(foretold))
}
