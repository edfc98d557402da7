package shims_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// kept is a log that stores the proposed entries and answers only barriers.
type kept struct {
	index   uint64
	entries []shims.Message
}

func (k *kept) AllocUpdateDesiredTransition(m *rules.Marks, _ drainer.Reply) bool {
	k.entries = append(k.entries, &shims.AllocUpdateDesiredTransition{Marks: *m})
	return true
}

func (k *kept) NodesDrainComplete(c *rules.Completions, _ drainer.Reply) bool {
	k.entries = append(k.entries, &shims.NodesDrainComplete{Completions: *c})
	return true
}

func (k *kept) Barrier(reply drainer.Reply) bool {
	reply(drainer.Answer{Outcome: raftwrite.Applied, Index: k.index})
	return true
}

// longID returns an id of at least n bytes.
func longID(kind string, i, length int) string {
	id := fmt.Sprintf("%s%d", kind, i)
	return id + strings.Repeat("x", max(0, length-len(id)))
}

// The drainer cuts its entries to MaxBytesPerEntry by an estimate, because it is independent of the
// codec. The estimate must be above the encoded size for any ids and any mix of marks, but not far
// above it.
func TestBounds_EntriesAreNoLargerThanTheDrainerAssumes(t *testing.T) {
	t.Parallel()
	const bound = 4 << 10
	for name, test := range map[string]struct {
		length            int // of every id
		nodes, jobs, each int
		marked            bool // no marks, only jobs to evaluate again
	}{
		"short ids, nothing in common":       {length: 1, nodes: 60, jobs: 60, each: 1},
		"short ids, one job":                 {length: 1, nodes: 60, jobs: 1, each: 60},
		"uuids, one node and job":            {length: 36, nodes: 1, jobs: 1, each: 200},
		"uuids, a job on each node":          {length: 36, nodes: 60, jobs: 60, each: 1},
		"ids just too long for a short head": {length: 32, nodes: 60, jobs: 60, each: 1},
		"ids just too long for a byte":       {length: 256, nodes: 20, jobs: 20, each: 1},
		"jobs to evaluate again":             {length: 1, nodes: 1, jobs: 60, each: 1, marked: true},
		"empty nodes, short ids":             {length: 1, nodes: 400},
		"empty nodes, uuids":                 {length: 36, nodes: 400},
		"empty nodes, long ids":              {length: 256, nodes: 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := statestore.New()
			txn := store.Begin(1 << 62) // an index that needs all its bytes
			for n := range test.nodes {
				id := cluster.NodeID(longID("n", n, test.length))
				must.NoError(t, txn.UpsertNode(&cluster.Node{ID: id, Status: cluster.NodeReady}, noon))
				_, err := txn.UpdateNodeDrain(cluster.DrainUpdate{
					Node: id, Drain: cluster.DrainID(longID("d", n, test.length)), Spec: &cluster.DrainSpec{Deadline: -time.Second}, At: noon,
				})
				must.NoError(t, err)
			}
			for j := range test.jobs {
				job := &cluster.Job{Namespace: cluster.Namespace(longID("s", 0, test.length)), ID: cluster.JobID(longID("j", j, test.length)), Type: cluster.JobSysBatch,
					Priority: 100, TaskGroups: []*cluster.TaskGroup{{Name: longID("g", 0, test.length), Tasks: []*cluster.Task{{Name: "t"}}}}}
				must.NoError(t, txn.UpsertJob(job))
				plan := &cluster.Plan{At: noon, Eval: &cluster.Evaluation{ID: cluster.EvalID(fmt.Sprintf("e%d", j)), Namespace: job.Namespace, JobID: job.ID, Status: cluster.EvalComplete}}
				for i := range test.each {
					a := &cluster.Allocation{ID: cluster.AllocID(longID("a", j*test.each+i, test.length)), Namespace: job.Namespace, JobID: job.ID, Job: job,
						TaskGroup: job.TaskGroups[0].Name, NodeID: cluster.NodeID(longID("n", (j+i)%test.nodes, test.length)),
						DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning}
					a.DesiredTransition.Migrate = test.marked
					plan.Places = append(plan.Places, a)
				}
				_, err := txn.ApplyPlan(plan)
				must.NoError(t, err)
			}
			txn.Commit()

			log := &kept{index: 1 << 62}
			term, err := drainer.NewTerm(drainer.NodeDrainerConfig{
				Raft: log, MaxBytesPerEntry: bound, MaxIDsPerEntry: 1 << 20, MaxInFlight: 1 << 20,
				Policy:    rules.Policy{HealthGrace: 1 << 40, StopMargin: 1 << 40},
				NewEvalID: func() cluster.EvalID { return "00000000-0000-0000-0000-000000000000" },
			}, store.Reader(), make(chan struct{}, 1))
			must.NoError(t, err)
			defer term.Close()
			for range 5 {
				term.Step(noon.Add(123456789))
			}
			largest := 0
			for _, entry := range log.entries {
				largest = max(largest, len(encode(t, entry)))
			}
			must.Greater(t, 1, len(log.entries))
			must.LessEq(t, bound, largest)
			must.Greater(t, bound/5, largest, must.Sprint("the bound is far above the encoded size"))
		})
	}
}
