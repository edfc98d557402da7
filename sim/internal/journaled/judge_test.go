//race:skip one goroutine
package journaled_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/journaled"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func isMark(m shims.Message) bool {
	_, is := m.(*shims.AllocUpdateDesiredTransition)
	return is
}

func isStart(m shims.Message) bool {
	u, is := m.(*shims.NodeUpdateDrain)
	return is && u.Spec != nil
}

// A judge compares the journal of a drain with the entries that it has seen. The journal of the product is right, so
// the judge misses an entry, or its witness does, in the cases with findings.
func TestJudge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		misses func(m shims.Message) bool
		// unnamed means that the witness misses the entries: their messages name no rows.
		unnamed bool
		want    []invariant.Check
	}{
		"all entries":                  {func(shims.Message) bool { return false }, false, nil},
		"without the mark":             {isMark, false, []invariant.Check{journaled.NoStage, journaled.WrongGroup, journaled.WrongGroup}},
		"without the start":            {isStart, false, nil},
		"a witness of the start alone": {func(m shims.Message) bool { return !isStart(m) }, true, []invariant.Check{journaled.NotWitnessed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge := journaled.New()
			r := clustertest.NewReplica(t, shims.FSMConfig{OnApply: func(a shims.Applied) {
				if test.misses(a.Message) {
					if !test.unnamed {
						return
					}
					a.Message = &shims.NodeAppendEvent{}
				}
				judge.Applied(start, a)
			}})
			r.Now = func() time.Time { return start }
			r.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
			r.Nodes("n1", "n2")
			job := r.Job(clustertest.Job("web", cluster.JobService, 2))
			r.Plan(job, nil, clustertest.Alloc(job, "a1", "n1", start))
			r.Report(cluster.ClientRunning, "a1")
			r.Drain("n1", &cluster.DrainSpec{Deadline: -1})
			must.SliceEmpty(t, r.Mark(cluster.MarkForced, "a1").Refused)
			r.Plan(job, []cluster.AllocID{"a1"})
			r.Report(cluster.ClientComplete, "a1")
			must.Len(t, 1, r.Complete("n1").Ended)
			var found []invariant.Check
			for _, v := range judge.Violations() {
				found = append(found, invariant.Check(v.Guarantee+" "+v.Check))
			}
			must.Eq(t, test.want, found)
		})
	}
}
