package witness_test

import (
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// checkResumed resumes a second witness before each entry. It must find in the rest of the log
// what the first witness found there, except for hidden writes: a resumed witness reads them
// from its first state. A witness with MarksOnly finds the same.
func (l *log) checkResumed(t *testing.T) {
	t.Helper()
	for _, marksOnly := range []bool{false, true} {
		l.options.MarksOnly = marksOnly
		l.checkLate(t)
	}
}

func (l *log) checkLate(t *testing.T) {
	t.Helper()
	var all []witness.Finding
	for _, f := range l.w.Report().Findings {
		if f.Kind != witness.Unseen {
			all = append(all, f)
		}
	}
	for i, e := range l.entries {
		found := []witness.Finding{}
		options := l.options
		options.OnFinding = func(f witness.Finding) { found = append(found, f) }
		late := witness.Resume(options, e.Before.(witness.World))
		for _, next := range l.entries[i:] {
			late.Observe(next)
		}
		must.Eq(t, len(found), late.Report().Found)
		found = slices.DeleteFunc(found, func(f witness.Finding) bool { return f.Kind == witness.Unseen })
		want := []witness.Finding{}
		for _, f := range all {
			if f.Index >= e.Index {
				want = append(want, f)
			}
		}
		must.Eq(t, want, found, must.Sprintf("resumed before entry %d", e.Index))
	}
}

// A resumed witness holds the running drains, not the ended ones.
func TestResume_size(t *testing.T) {
	t.Parallel()
	l := web(3)
	for range 50 {
		l.apply(drained("n1", cluster.DrainSpec{}))
		l.apply(marked("a1", cluster.MarkPaced), marked("a2", cluster.MarkPaced))
		l.apply(ended("n1", cluster.OutcomeCancelled, 0), changed("a1", unmarked), changed("a2", unmarked))
	}
	l.apply(node("n2", func(n *cluster.Node) { n.Drain = &cluster.Drain{ID: "last", NodeID: "n2"} }))
	l.apply(changed("a3", func(a *cluster.Allocation) {
		a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "last", Class: cluster.MarkFree}
	}))
	// The running drain with its mark and group, and the one kept record.
	must.Eq(t, 4, witness.Resume(l.options, l.now).Size())
}
