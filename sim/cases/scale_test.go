package cases_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// town is a cluster of equal nodes and equal service jobs.
type town struct {
	nodes, draining int
	// perNode and perJob are the numbers of allocations of a node and of a job.
	perNode, perJob int
}

// sizeAt returns the town for a pace. With everyPoint in the environment it has full size. Otherwise it
// has all drains at the middle pace, with a fifth of the allocations, and a tenth of the nodes at the
// other paces, which show nothing new. Under the race detector it has a tenth of the nodes.
func sizeAt(pace int) town {
	switch full := os.Getenv(everyPoint) != ""; {
	case raceEnabled || pace != middlePace && !full:
		return town{nodes: 100, draining: 10, perNode: 50, perJob: 100}
	case full:
		return town{nodes: 1000, draining: 100, perNode: 50, perJob: 100}
	}
	return town{nodes: 1000, draining: 100, perNode: 10, perJob: 100}
}

const middlePace = 10

// Many drains at the same time can lose completions: one that is refused, one in an entry with a
// refused one, or one that waits for a timer that another drain has changed. All drains must end,
// at any pace.
func TestScale_OneHundredDrains(t *testing.T) {
	for _, pace := range []int{1, middlePace, 100} {
		t.Run(fmt.Sprintf("max_parallel %d", pace), func(t *testing.T) {
			t.Parallel()
			town := sizeAt(pace)
			w, err := world.New(world.Options{MaxSteps: 10_000_000})
			must.NoError(t, err)
			watch := witness.New(witness.Options{StopMargin: rules.DefaultStopMargin})
			w.Observe(world.Observer{Applied: func(a world.Applied) { watch.Observe(applied.Entry(a)) }})
			nodes := make([]cluster.NodeID, town.nodes)
			for i := range nodes {
				nodes[i] = cluster.NodeID(fmt.Sprintf("n%04d", i))
			}
			must.NoError(t, town.build(w, nodes, pace))

			for _, id := range nodes[:town.draining] {
				must.NoError(t, w.Setup.Commit(w.Operator.Requests.Drain(id, &cluster.DrainSpec{}, "")))
			}
			idle, err := w.Run(w.Now().Add(24 * time.Hour))
			must.NoError(t, err)
			must.True(t, idle)

			state := w.State()
			ended := slices.Collect(state.Drains())
			must.Len(t, town.draining, ended)
			for _, d := range ended {
				must.Eq(t, cluster.OutcomeComplete, d.Outcome)
			}
			for j := range state.Jobs() {
				key := cluster.GroupKey{Job: j.Key(), Name: j.TaskGroups[0].Name}
				must.Eq(t, fmt.Sprintf("%s runs %d of %d, %d healthy", scenario.GroupText(key), town.perJob, town.perJob, town.perJob),
					sim.Standing(state, j, j.TaskGroups[0]))
			}
			watch.Audit(state)
			report := watch.Report()
			must.SliceEmpty(t, report.Findings)
			must.SliceEmpty(t, report.UnderLimit())
			t.Logf("%d steps, %s", w.Steps(), w.Now().Sub(world.Epoch))
		})
	}
}

// build registers the town in small transactions. It spreads the allocations of each job over the
// nodes, so that all jobs have equally many on draining nodes.
func (t town) build(w *world.World, nodes []cluster.NodeID, pace int) error {
	at := w.Now()
	for chunk := range slices.Chunk(nodes, 500) {
		err := w.Setup.Write(func(txn *statestore.Txn) error {
			for _, n := range setting.Nodes(scenario.Node{IDs: chunk}) {
				if err := txn.UpsertNode(n, at); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	stride := t.nodes / t.perJob
	for i := range t.nodes * t.perNode / t.perJob {
		name := fmt.Sprintf("job%04d", i)
		j := setting.Job(nil, scenario.Job{
			Key:    cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: cluster.JobID(name)},
			Groups: []scenario.Group{{Name: name, Count: t.perJob, MaxParallel: &pace}},
		})
		declared := scenario.Alloc{Group: cluster.GroupKey{Job: j.Key(), Name: name}}
		for k := range t.perJob {
			declared.On = append(declared.On, nodes[(k*stride+i)%t.nodes])
		}
		allocs := setting.Allocs(declared, j, at, w.Setup.NewAllocID)
		if err := w.Setup.Place(world.Placement{Job: j, Allocs: allocs}); err != nil {
			return err
		}
	}
	return nil
}
