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

// Setup commits entries directly, without a step. Use it for nodes, jobs and allocations that
// exist before the run starts.
type Setup struct{ world *World }

// Commit commits a message.
func (s Setup) Commit(m shims.Message) error {
	answer, err := s.world.Log.commit(m)
	if err != nil {
		return err
	}
	if refused, is := answer.Response.(shims.Refused); is {
		return fmt.Errorf("%s refused: %w", m.Type(), refused.Err)
	}
	return answer.Err
}

// Write changes the state directly. It skips the checks of the scheduler and the clients, and
// wakes only the readers of the state. Each replica calls do once when it applies the entry,
// which may be much later. So do must make the same change each time.
func (s Setup) Write(do func(*statestore.Txn) error) error {
	_, err := s.world.Log.commitEntry(logEntry{write: do, Entry: Entry{Term: s.world.Term()}})
	return err
}

// Placement is a job with its allocations.
type Placement struct {
	Job    *cluster.Job
	Allocs []*cluster.Allocation
}

// jobsPerWrite is the number of jobs in one transaction. In a transaction of several thousand
// rows, each row takes many times longer.
const jobsPerWrite = 10

// Place writes jobs and their allocations.
func (s Setup) Place(placements ...Placement) error {
	at := s.world.now
	var err error
	for chunk := range slices.Chunk(placements, jobsPerWrite) {
		err = errors.Join(err, s.Write(func(txn *statestore.Txn) error {
			for _, p := range chunk {
				err := txn.UpsertJob(p.Job)
				if err == nil {
					err = place(txn, at, p.Allocs)
				}
				if err != nil {
					return fmt.Errorf("placing %s: %w", p.Job.Key(), err)
				}
			}
			return nil
		}))
	}
	for _, p := range placements {
		for _, a := range p.Allocs {
			s.world.clients.changed(a.NodeID)
		}
	}
	return err
}

// PlaceOrphans writes allocations whose job does not exist.
func (s Setup) PlaceOrphans(allocs ...*cluster.Allocation) error {
	at := s.world.now
	return s.Write(func(txn *statestore.Txn) error {
		if err := place(txn, at, allocs); err != nil {
			return fmt.Errorf("placing orphans: %w", err)
		}
		return nil
	})
}

func place(txn *statestore.Txn, at time.Time, allocs []*cluster.Allocation) error {
	dropped, err := txn.ApplyPlan(&cluster.Plan{At: at, Places: allocs})
	if err == nil && len(dropped) > 0 {
		err = fmt.Errorf("%v were refused", dropped)
	}
	return err
}

// NewNode returns a ready node with capacity for any allocation. The caller may change it before
// registering it.
func NewNode(id cluster.NodeID) *cluster.Node {
	plenty := cluster.Resources{CPU: math.MaxInt32, MemoryMB: math.MaxInt32, DiskMB: math.MaxInt32}
	return &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, Resources: plenty}
}

// NewJob returns a job with one group of one task. All three have the same name, and the task
// needs no resources. The caller may change the job before registering it.
func NewJob(t cluster.JobType, id cluster.JobID, count int) *cluster.Job {
	name := string(id)
	group := &cluster.TaskGroup{Name: name, Count: count, Tasks: []*cluster.Task{{Name: name}}}
	j := &cluster.Job{ID: id, Type: t, TaskGroups: []*cluster.TaskGroup{group}}
	j.Canonicalize()
	return j
}

// NewAllocID returns a new allocation id.
func (s Setup) NewAllocID() cluster.AllocID { return s.world.ids.alloc() }

// NewAlloc returns a healthy allocation that has run on the node for an hour. index is its
// index in the group.
func (s Setup) NewAlloc(j *cluster.Job, group string, index int, node cluster.NodeID) *cluster.Allocation {
	a := &cluster.Allocation{
		ID: s.NewAllocID(), Namespace: j.Namespace, JobID: j.ID, TaskGroup: group, Job: j,
		Name:   fmt.Sprintf("%s.%s[%d]", j.ID, group, index),
		NodeID: node, NodeName: string(node), Resources: j.Group(group).Resources(),
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
		CreateTime: s.world.now.Add(-time.Hour),
	}
	if j.Type == cluster.JobService || j.Type == cluster.JobSystem {
		healthy := true
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: &healthy, Timestamp: a.CreateTime}
	}
	return a
}
