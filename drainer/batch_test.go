package drainer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// anyID draws an id that may be long.
func anyID(t *rapid.T, prefix string, i int) string {
	return fmt.Sprintf("%s%02d%s", prefix, i, strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, "long")))
}

func anyGroup(t *rapid.T) cluster.GroupKey {
	return cluster.GroupKey{
		Job:  cluster.JobKey{Namespace: fixture.OneOf[cluster.Namespace](t, "namespace", "a", "b"), ID: fixture.OneOf[cluster.JobID](t, "job", "web", "api")},
		Name: fixture.OneOf(t, "group", "g", "h", strings.Repeat("long", 20)),
	}
}

// load is what a part adds to an entry.
type load struct{ ids, bytes int }

func loadOf(w writes) (l load) {
	jobs := map[cluster.JobKey]bool{}
	for _, m := range w.marks {
		l.ids, l.bytes = l.ids+1, l.bytes+markBytes+len(m.Alloc)+len(m.Node)+len(m.Drain)+groupBytes(m.Group)
		if !jobs[m.Group.Job] {
			jobs[m.Group.Job] = true
			l.ids, l.bytes = l.ids+1, l.bytes+evalBytes+groupBytes(m.Group)
		}
	}
	for _, g := range w.reevaluate { // each with an evaluation
		l.ids, l.bytes = l.ids+2, l.bytes+evalBytes+2*groupBytes(g)
	}
	for _, c := range w.completions {
		l.ids, l.bytes = l.ids+1, l.bytes+completionBytes+len(c.Node)+len(c.Drain)
	}
	return l
}

// The entries hold the items in order: completions, then marks, then groups to
// re-evaluate. No entry has two kinds. Each is within the bounds and has no room for the next
// item of its kind.
func TestWrites_CutKeepsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all writes
		for i := range rapid.IntRange(0, 40).Draw(t, "items") {
			node, drain := cluster.NodeID(anyID(t, "n", i)), cluster.DrainID(anyID(t, "d", i))
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				all.marks = append(all.marks, rules.Mark{Alloc: cluster.AllocID(anyID(t, "a", i)), Node: node, Drain: drain, Group: anyGroup(t)})
			case 1:
				all.reevaluate = append(all.reevaluate, anyGroup(t))
			case 2:
				all.completions = append(all.completions, rules.Completion{Node: node, Drain: drain})
			}
		}
		slices.SortFunc(all.marks, rules.Mark.Compare)
		slices.SortFunc(all.reevaluate, cluster.GroupKey.Compare)
		limit := load{rapid.IntRange(minIDsPerEntry, 20).Draw(t, "max ids"), rapid.IntRange(minBytesPerEntry, 4*minBytesPerEntry).Draw(t, "max bytes")}

		var joined writes
		parts := all.cut(limit.ids, limit.bytes)
		for i, part := range parts {
			got := loadOf(part)
			must.True(t, got.ids <= limit.ids && got.bytes <= limit.bytes, must.Sprintf("entry %d is %v of %v", i, got, limit))
			kinds := [...]bool{len(part.completions) > 0, len(part.marks) > 0, len(part.reevaluate) > 0}
			must.True(t, kinds == [...]bool{true, false, false} || kinds == [...]bool{false, true, false} || kinds == [...]bool{false, false, true})
			joined.marks = append(joined.marks, part.marks...)
			joined.reevaluate = append(joined.reevaluate, part.reevaluate...)
			joined.completions = append(joined.completions, part.completions...)
			if i+1 < len(parts) {
				next := parts[i+1]
				more := writes{slices.Concat(part.marks, next.marks[:min(1, len(next.marks))]),
					slices.Concat(part.reevaluate, next.reevaluate[:min(1, len(next.reevaluate))]),
					slices.Concat(part.completions, next.completions[:min(1, len(next.completions))])}
				sameKind := kinds == [...]bool{len(next.completions) > 0, len(next.marks) > 0, len(next.reevaluate) > 0}
				got = loadOf(more)
				must.True(t, !sameKind || got.ids > limit.ids || got.bytes > limit.bytes, must.Sprintf("entry %d had room for the first of entry %d", i, i+1))
			}
		}
		must.True(t, slices.Equal(all.marks, joined.marks) && slices.Equal(all.reevaluate, joined.reevaluate) && slices.Equal(all.completions, joined.completions))
		if len(parts) > 0 {
			must.True(t, len(all.completions) == 0 || len(parts[0].completions) > 0)
			must.True(t, len(all.reevaluate) == 0 || len(parts[len(parts)-1].reevaluate) > 0)
		}
	})
}

// Every job of the groups has one evaluation, in job order.
func TestEvalsFor_OneForEachJob(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var groups []cluster.GroupKey
		jobs := map[cluster.JobKey]int{}
		for range rapid.IntRange(0, 20).Draw(t, "groups") {
			groups = append(groups, anyGroup(t))
			jobs[groups[len(groups)-1].Job] = 1
		}
		slices.SortFunc(groups, cluster.GroupKey.Compare)
		var marks []rules.Mark
		for _, g := range groups {
			marks = append(marks, rules.Mark{Group: g})
		}
		got := map[cluster.JobKey]int{}
		evals := evalsFor(&fixture.World{}, fixture.OneOf(t, "kind", writes{reevaluate: groups}, writes{marks: marks}), fixture.Epoch, func() cluster.EvalID { return "e" })
		for _, e := range evals {
			got[e.JobKey()]++
		}
		must.Eq(t, jobs, got)
		must.True(t, slices.IsSortedFunc(evals, func(a, b *cluster.Evaluation) int { return a.JobKey().Compare(b.JobKey()) }))
	})
}

// The evaluation has the type and priority of the job's current version. If the job is gone, it has
// those of an allocation's job version, and without one the defaults.
func TestEvalsFor_JobVersion(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 1)
	w.Alloc("a1").Job = w.Jobs[0].Copy()
	w.Alloc("a1").Job.Priority = 20
	eval := func() cluster.Evaluation {
		return *evalsFor(w, writes{reevaluate: []cluster.GroupKey{fixture.Group}}, fixture.Epoch, func() cluster.EvalID { return "e" })[0]
	}
	want := cluster.Evaluation{
		ID: "e", Namespace: "default", JobID: "web", Type: cluster.JobService, Priority: 70, TriggeredBy: "node-drain",
		Status: cluster.EvalPending, CreateTime: fixture.Epoch, ModifyTime: fixture.Epoch,
	}
	must.Eq(t, want, eval())

	w.Jobs, w.Alloc("a1").Job.Type = nil, cluster.JobBatch
	want.Priority, want.Type = 20, cluster.JobBatch
	must.Eq(t, want, eval())

	w.Alloc("a1").Job = nil
	want.Priority, want.Type = cluster.DefaultJobPriority, cluster.JobService
	must.Eq(t, want, eval())
}
