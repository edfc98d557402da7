package plan

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Source has the rows of one state of a cluster, for a scheduler with a store of its own: see [Load]. A View of
// package rowview is one. A Source that implements [rules.PauseView] has the pause of all drains too. The rows are not
// written to.
type Source interface {
	// Index is the index of the newest entry in the state, above zero.
	Index() uint64
	Nodes() iter.Seq[*cluster.Node]
	// Jobs yields the current versions of all jobs.
	Jobs() iter.Seq[*cluster.Job]
	Allocs() iter.Seq[*cluster.Allocation]
	// Evals yields the open evaluations. It may yield others too.
	Evals() iter.Seq[*cluster.Evaluation]
}

// VolumeSource is a [Source] with volumes.
type VolumeSource interface {
	Source
	Volumes() iter.Seq[*cluster.Volume]
	Claims() iter.Seq[*cluster.VolumeClaim]
}

// Scheduler places replacements in a play, in place of package scheduler. It answers evaluations with plans, which
// the FSM checks again.
type Scheduler interface {
	// Step does all work that is possible now. It returns the time of the next call if the state does not change
	// before; zero is never. It neither blocks nor reads a clock.
	Step(now time.Time) (wakeAt time.Time)
}

// NewScheduler returns a scheduler that reads the views and writes through the applier. It takes ids from ids.
type NewScheduler func(view func() scheduler.View, applier scheduler.Applier, ids scheduler.IDs) (Scheduler, error)

// Load copies the rows of a source to a store, for [Play] and [Answer].
func Load(src Source) (*statestore.Store, error) {
	return load(rowsOf(src))
}

// elsewhere is the node on which [LoadElsewhere] places all replacements.
const elsewhere cluster.NodeID = "elsewhere"

// LoadElsewhere copies the rows of a source whose scheduler is not available to plays. All replacements find a
// place, outside of the cluster: placement is not judged. Set [Settings].Elsewhere for the plays, so that an
// answer states this.
func LoadElsewhere(src Source) (*statestore.Store, error) {
	rows := rowsOf(src)
	jobs := make(map[*cluster.Job]*cluster.Job, len(rows.Jobs))
	unbound := func(j *cluster.Job) *cluster.Job {
		if jobs[j] == nil {
			jobs[j] = withoutPlace(j)
		}
		return jobs[j]
	}
	for i, j := range rows.Jobs {
		rows.Jobs[i] = unbound(j)
	}
	for i, a := range rows.Allocs {
		if a.Job != nil {
			a = a.Copy()
			a.Job, rows.Allocs[i] = unbound(a.Job), a
		}
	}
	for i, n := range rows.Nodes {
		n = n.Copy()
		n.SchedulingEligibility, rows.Nodes[i] = cluster.NodeIneligible, n
	}
	rows.Nodes = append(rows.Nodes, &cluster.Node{
		ID: elsewhere, Name: string(elsewhere), Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible,
	})
	rows.Volumes, rows.Claims = nil, nil
	return load(rows)
}

// withoutPlace returns the job without everything that a node has to have for it.
func withoutPlace(j *cluster.Job) *cluster.Job {
	c := j.Copy()
	c.Datacenters, c.NodePool, c.Constraints, c.DistinctHosts = nil, cluster.AllNodePools, nil, false
	for _, g := range c.TaskGroups {
		g.NodeClasses, g.Constraints, g.DistinctHosts, g.Volumes, g.Ports, g.Services = nil, nil, false, nil, nil, nil
		g.EphemeralDisk.SizeMB = 0
		for _, t := range g.Tasks {
			t.Resources, t.MemoryMaxMB, t.Cores, t.Driver = cluster.Resources{}, 0, 0, ""
			t.Constraints, t.Devices, t.Ports, t.Services, t.VolumeMounts, t.CSIPlugin = nil, nil, nil, nil, nil, nil
		}
	}
	return c
}

func rowsOf(src Source) statestore.Rows {
	rows := statestore.Rows{
		Index: src.Index(), Nodes: slices.Collect(src.Nodes()), Jobs: slices.Collect(src.Jobs()), Allocs: slices.Collect(src.Allocs()),
		Evals: slices.Collect(src.Evals()),
	}
	if v, is := src.(VolumeSource); is {
		rows.Volumes, rows.Claims = slices.Collect(v.Volumes()), slices.Collect(v.Claims())
	}
	if v, is := src.(rules.PauseView); is {
		rows.Pause = v.DrainPause()
	}
	return rows
}

func load(rows statestore.Rows) (*statestore.Store, error) {
	store, err := statestore.Load(rows)
	if err != nil {
		return nil, fmt.Errorf("copying the rows of a state: %w", err)
	}
	return store, nil
}
