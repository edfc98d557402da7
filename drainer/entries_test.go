package drainer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func anyWishes(t *rapid.T) []wish {
	var wishes []wish
	for i := range rapid.IntRange(0, 60).Draw(t, "wishes") {
		key := cluster.GroupKey{
			Job:  cluster.JobKey{Namespace: oneOf[cluster.Namespace](t, "namespace", "a", "b"), ID: oneOf[cluster.JobID](t, "job", "web", "api")},
			Name: oneOf(t, "group", "g", "h"),
		}
		w := wish{mark: Mark{Group: key}}
		if !oneIn(t, 4, "reevaluate") {
			w.mark.Class = cluster.MarkPaced
			w.mark.Alloc = cluster.AllocID(fmt.Sprintf("a%02d%s", i, strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, "long"))))
			w.withNode = rapid.Bool().Draw(t, "with node")
		}
		wishes = append(wishes, w)
	}
	slices.SortStableFunc(wishes, compareWishes)
	return wishes
}

// The parts of a round are what was wished, in order, within the bounds; a part
// that is beyond them holds one wish that is so by itself.
func TestPartition_KeepsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wishes := anyWishes(t)
		maxIDs, maxBytes := rapid.IntRange(2, 20).Draw(t, "max ids"), rapid.IntRange(600, 4000).Draw(t, "max bytes")
		parts := partition(wishes, maxIDs, maxBytes)
		must.Eq(t, len(wishes), len(slices.Concat(parts...)))
		must.True(t, slices.Equal(wishes, slices.Concat(parts...)))
		for i, part := range parts {
			must.Positive(t, len(part))
			ids, bytes := weight(part)
			must.True(t, len(part) == 1 || (ids <= maxIDs && bytes <= maxBytes), must.Sprintf("part %d has %d ids and %d bytes", i, ids, bytes))
			must.LessEq(t, maxIDs, ids)
			if i > 0 { // nothing is cut that had room
				ids, bytes := weight(append(slices.Clone(parts[i-1]), part[0]))
				must.True(t, ids > maxIDs || bytes > maxBytes, must.Sprintf("part %d had room for the first of part %d", i-1, i))
			}
		}
	})
}

// weight counts a part's ids and bytes: its wishes and an evaluation for each job.
func weight(part []wish) (ids, bytes int) {
	jobs := map[cluster.JobKey]bool{}
	for _, w := range part {
		ids++
		bytes += w.bytes()
		if !jobs[w.mark.Group.Job] {
			jobs[w.mark.Group.Job] = true
			ids++
			bytes += evalBytes + groupBytes(w.mark.Group)
		}
	}
	return ids, bytes
}

// Every entry has the evaluation of each of its jobs, and no other, in job order.
func TestMarksOf_EveryJobHasItsEvaluation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := 0
		newID := func() cluster.EvalID { ids++; return cluster.EvalID(fmt.Sprintf("e%d", ids)) }
		for _, part := range partition(anyWishes(t), 7, 1<<20) {
			m := marksOf(&world{}, part, epoch, Policy{StopMargin: 7}, newID)
			jobs := map[cluster.JobKey]int{}
			for _, w := range part {
				jobs[w.mark.Group.Job] = 1
			}
			got := map[cluster.JobKey]int{}
			for _, e := range m.Evals {
				got[e.JobKey()]++
				must.Eq(t, cluster.EvalPending, e.Status)
			}
			must.Eq(t, jobs, got)
			must.True(t, slices.IsSortedFunc(m.Evals, func(a, b *cluster.Evaluation) int { return a.JobKey().Compare(b.JobKey()) }))
			must.True(t, slices.IsSortedFunc(m.Marks, Mark.compare))
			must.Eq(t, len(part), len(m.Marks)+len(m.Reevaluate))
			must.Eq(t, epoch, m.At)
			must.Eq(t, Policy{StopMargin: 7}, m.Policy)
		}
	})
}

func TestPartitionCompletions_KeepsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all []Completion
		for i := range rapid.IntRange(0, 40).Draw(t, "completions") {
			id := fmt.Sprintf("n%02d%s", i, strings.Repeat("x", rapid.IntRange(0, 60).Draw(t, "long")))
			all = append(all, Completion{Node: cluster.NodeID(id), Drain: cluster.DrainID(id)})
		}
		maxIDs, maxBytes := rapid.IntRange(2, 20).Draw(t, "max ids"), rapid.IntRange(300, 1500).Draw(t, "max bytes")
		parts := partitionCompletions(all, maxIDs, maxBytes)
		must.True(t, slices.Equal(all, slices.Concat(parts...)))
		for _, part := range parts {
			bytes := 0
			for _, c := range part {
				bytes += completionBytes + len(c.Node) + len(c.Drain)
			}
			must.LessEq(t, maxIDs, len(part))
			must.LessEq(t, maxBytes, bytes)
			must.Positive(t, len(part))
		}
	})
}

// The evaluation is of the job's current version; if that is gone, of the one the
// allocation was placed for; if that is lost too, of what there is by default.
func TestEvalFor(t *testing.T) {
	t.Parallel()
	w := newTown(1, 1)
	mark := Mark{Alloc: "a1", Group: web}
	w.alloc("a1").Job = w.jobs[0].Copy()
	w.alloc("a1").Job.Priority = 20
	want := cluster.Evaluation{
		ID: "e", Namespace: "default", JobID: "web", Type: cluster.JobService, Priority: 70, TriggeredBy: "node-drain",
		Status: cluster.EvalPending, CreateTime: epoch, ModifyTime: epoch,
	}
	must.Eq(t, want, *evalFor(w, mark, epoch, "e"))

	w.jobs, w.alloc("a1").Job.Type = nil, cluster.JobBatch
	want.Priority, want.Type = 20, cluster.JobBatch
	must.Eq(t, want, *evalFor(w, mark, epoch, "e"))

	w.alloc("a1").Job = nil
	want.Priority, want.Type = cluster.DefaultJobPriority, cluster.JobService
	must.Eq(t, want, *evalFor(w, mark, epoch, "e"))
	must.Eq(t, want, *evalFor(w, Mark{Group: web}, epoch, "e"))
}
