package witness_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// fullCount counts every group of the whole world again after every entry.
type fullCount struct {
	followed map[cluster.GroupKey]bool
	lowest   map[cluster.GroupKey]witness.Level
}

func (t *fullCount) count(w *world, index uint64, at time.Time) {
	for _, a := range w.allocs {
		n := w.nodes[a.NodeID]
		if n.Draining() && !a.ClientTerminal() || a.DesiredTransition.Drain != "" {
			t.followed[a.GroupKey()] = true
		}
	}
	for k := range t.followed {
		pace, ok := cluster.PaceOf(w.jobs[k.Job], k.Name)
		if !ok {
			continue
		}
		level := witness.Level{Count: pace.Count, Limit: pace.Count - pace.MaxParallel, Index: index, At: at}
		for _, a := range w.allocs {
			if a.GroupKey() == k && a.Healthy(w.nodes[a.NodeID]) {
				level.Healthy++
			}
		}
		if low, found := t.lowest[k]; !found || level.Healthy-level.Limit < low.Healthy-low.Limit {
			t.lowest[k] = level
		}
	}
}

// Counting only the touched groups gives the same results as counting all groups each time.
func TestWitness_agreesWithFullCounts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 0))
			l := newLog(witness.Options{MaxFindings: 1})
			all := &fullCount{followed: make(map[cluster.GroupKey]bool), lowest: make(map[cluster.GroupKey]witness.Level)}
			for i := range 30 {
				l.apply(job(jobName(i), cluster.JobService, 8, 1), node(nodeName(i), ready), alloc(allocName(i), jobName(i), nodeName(i)))
			}
			for range 100 {
				l.at = l.at.Add(time.Second)
				edits := make([]edit, 1+rng.IntN(2))
				for i := range edits {
					edits[i] = randomEdit(rng)
				}
				l.apply(edits...)
				all.count(l.now, l.index, l.at)
				got := make(map[cluster.GroupKey]witness.Level)
				for _, g := range l.w.Report().Groups {
					if g.Lowest.Index != 0 {
						got[g.Group] = g.Lowest
					}
				}
				must.MapEq(t, all.lowest, got)
			}
		})
	}
}

func nodeName(i int) cluster.NodeID   { return cluster.NodeID(fmt.Sprintf("n%d", i%5)) }
func jobName(i int) cluster.JobID     { return cluster.JobID(fmt.Sprintf("j%d", i%3)) }
func allocName(i int) cluster.AllocID { return cluster.AllocID(fmt.Sprintf("a%02d", i%30)) }

// randomEdit makes a random edit of a world of five nodes and three jobs. The edit keeps the
// rows consistent but need not make sense. Most edits leave allocations healthy.
func randomEdit(rng *rand.Rand) edit {
	on, of, id := nodeName(rng.IntN(5)), jobName(rng.IntN(3)), allocName(rng.IntN(30))
	changes := []func(*cluster.Allocation){
		running, running, running, unmarked, unmarked, pending, stopped, unknown,
		func(a *cluster.Allocation) { a.DesiredStatus = cluster.DesiredStop },
		func(a *cluster.Allocation) { a.DeploymentStatus = &cluster.DeploymentStatus{Canary: true} },
		func(a *cluster.Allocation) {
			a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d", Class: cluster.MarkPaced}
		},
	}
	statuses := []cluster.NodeStatus{cluster.NodeReady, cluster.NodeReady, cluster.NodeDown, cluster.NodeDisconnected}
	change, status := changes[rng.IntN(len(changes))], statuses[rng.IntN(len(statuses))]
	switch rng.IntN(12) {
	case 0:
		return job(of, cluster.JobService, rng.IntN(8), rng.IntN(3))
	case 1:
		return node(on, func(n *cluster.Node) { n.Status = status })
	case 2:
		return drained(on, cluster.DrainSpec{})
	case 3:
		return noNode(on)
	case 4:
		return purged(id)
	}
	return func(w *world, now time.Time, touched *witness.Touched) {
		if w.allocs[id] == nil {
			alloc(id, of, on)(w, now, touched)
		}
		changed(id, change)(w, now, touched)
	}
}
