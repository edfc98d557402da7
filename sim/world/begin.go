package world

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Commit puts a message into the log at once, as if a step had. It is for what a
// world begins with; what happens later is asked for, and takes a step.
func (w *World) Commit(m shims.Message) error {
	answer, err := w.log.commit(m)
	if err != nil {
		return err
	}
	if refused, is := answer.Response.(shims.Refused); is {
		return fmt.Errorf("%s refused: %w", m.Type(), refused.Err)
	}
	return answer.Err
}

// Begin writes what a world begins with, past all that a scheduler or a client
// would ask first. Nobody is told but those who read the state. do is called for
// each server, some much later, and does the same each time.
func (w *World) Begin(do func(*statestore.Txn) error) error {
	_, err := w.log.commitEntry(logEntry{begin: do, Entry: Entry{Term: w.terms}})
	return err
}

// Placement is a job with allocations, on nodes of the caller's choice.
type Placement struct {
	Job    *cluster.Job
	Allocs []*cluster.Allocation
}

// Place begins with a job and allocations of it.
func (w *World) Place(j *cluster.Job, allocs ...*cluster.Allocation) error {
	return w.PlaceAll([]Placement{{j, allocs}})
}

// placementsAtOnce is how many jobs are written in one transaction: beyond some
// thousand rows each costs many times more.
const placementsAtOnce = 10

// PlaceAll begins with many jobs at once.
func (w *World) PlaceAll(placements []Placement) error {
	at := w.now
	var err error
	for chunk := range slices.Chunk(placements, placementsAtOnce) {
		err = errors.Join(err, w.Begin(func(txn *statestore.Txn) error {
			for _, p := range chunk {
				if err := p.write(txn, at); err != nil {
					return fmt.Errorf("placing %s: %w", p.Job.Key(), err)
				}
			}
			return nil
		}))
	}
	for _, p := range placements {
		for _, a := range p.Allocs {
			w.clients.clients.Changed(a.NodeID)
		}
	}
	return err
}

// PlaceOrphans begins with allocations whose job is not there.
func (w *World) PlaceOrphans(allocs ...*cluster.Allocation) error {
	at := w.now
	return w.Begin(func(txn *statestore.Txn) error {
		dropped, err := txn.ApplyPlan(&cluster.Plan{At: at, Places: allocs})
		if err == nil && len(dropped) > 0 {
			err = fmt.Errorf("placing orphans: %v were refused", dropped)
		}
		return err
	})
}

func (p Placement) write(txn *statestore.Txn, at time.Time) error {
	if err := txn.UpsertJob(p.Job); err != nil {
		return err
	}
	dropped, err := txn.ApplyPlan(&cluster.Plan{At: at, Places: p.Allocs})
	if err == nil && len(dropped) > 0 {
		err = fmt.Errorf("%v were refused", dropped)
	}
	return err
}

// NewNode returns a ready node with room for anything. Change it before it is
// registered.
func NewNode(id cluster.NodeID) *cluster.Node {
	plenty := cluster.Resources{CPU: math.MaxInt32, MemoryMB: math.MaxInt32, DiskMB: math.MaxInt32}
	return &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, Resources: plenty}
}

// NewJob returns a job with one group, named as the job, that asks for nothing.
// Change it before it is registered.
func NewJob(t cluster.JobType, id cluster.JobID, count int) *cluster.Job {
	j := &cluster.Job{ID: id, Type: t, TaskGroups: []*cluster.TaskGroup{NewGroup(string(id), count)}}
	j.Canonicalize()
	return j
}

// NewGroup returns a group of one task that asks for nothing.
func NewGroup(name string, count int) *cluster.TaskGroup {
	return &cluster.TaskGroup{Name: name, Count: count, Tasks: []*cluster.Task{{Name: name}}}
}

// NewAlloc returns an allocation of the job's group that runs well on the node,
// and has for long. index is its place in the group.
func (w *World) NewAlloc(j *cluster.Job, group string, index int, node cluster.NodeID) *cluster.Allocation {
	a := &cluster.Allocation{
		ID: w.ids.alloc(), Namespace: j.Namespace, JobID: j.ID, TaskGroup: group, Job: j,
		Name:   fmt.Sprintf("%s.%s[%d]", j.ID, group, index),
		NodeID: node, NodeName: string(node), Resources: j.Group(group).Resources(),
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
		CreateTime: w.now.Add(-time.Hour),
	}
	if j.Type == cluster.JobService || j.Type == cluster.JobSystem {
		healthy := true
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: &healthy, Timestamp: a.CreateTime}
	}
	return a
}
