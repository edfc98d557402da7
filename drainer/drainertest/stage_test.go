package drainertest_test

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// What a case begins with.

// nodes registers ready nodes with room for anything.
func (s *Stage) nodes(ids ...cluster.NodeID) {
	for _, id := range ids {
		s.node(id)
	}
}

func (s *Stage) node(id cluster.NodeID, edits ...func(*cluster.Node)) {
	n := edited(world.NewNode(id), edits)
	s.check(s.Commit(&shims.NodeRegister{At: s.Now(), Node: n}))
}

// room bounds the allocations on a node.
func room(n int) func(*cluster.Node) { return func(node *cluster.Node) { node.MaxAllocs = n } }

func edited[T any](what *T, edits []func(*T)) *T {
	for _, edit := range edits {
		edit(what)
	}
	return what
}

// service is a service job of one group with the default migrate block; batch,
// system and sysbatch are jobs of one group of those types.
func service(id cluster.JobID, count int, edits ...func(*cluster.Job)) *cluster.Job {
	return edited(world.NewJob(cluster.JobService, id, count), edits)
}

func batch(id cluster.JobID, count int, edits ...func(*cluster.Job)) *cluster.Job {
	return edited(world.NewJob(cluster.JobBatch, id, count), edits)
}

func system(id cluster.JobID, edits ...func(*cluster.Job)) *cluster.Job {
	return edited(world.NewJob(cluster.JobSystem, id, 1), edits)
}

func sysbatch(id cluster.JobID, edits ...func(*cluster.Job)) *cluster.Job {
	return edited(world.NewJob(cluster.JobSysBatch, id, 1), edits)
}

// parallel sets the max_parallel of every group.
func parallel(n int) func(*cluster.Job) {
	return func(j *cluster.Job) {
		for _, g := range j.TaskGroups {
			g.Migrate = cluster.DefaultMigrateStrategy()
			g.Migrate.MaxParallel = n
		}
	}
}

// counts sets the count of the first group.
func counts(n int) func(*cluster.Job) {
	return func(j *cluster.Job) { j.TaskGroups[0].Count = n }
}

// plugin makes the job a storage plugin.
func plugin(j *cluster.Job) { j.TaskGroups[0].Tasks[0].StoragePlugin = true }

// lostAfter is how long the first group waits for a node that is out of touch.
func lostAfter(d time.Duration) func(*cluster.Job) {
	return func(j *cluster.Job) { j.TaskGroups[0].Disconnect.LostAfter = d }
}

// group adds a group to a service job.
func group(name string, count int) func(*cluster.Job) {
	return func(j *cluster.Job) {
		j.TaskGroups = append(j.TaskGroups, world.NewGroup(name, count))
		j.Canonicalize()
	}
}

// spot is a node for an allocation, and what is special about that.
type spot struct {
	node  cluster.NodeID
	group string // empty is the job's first
	edits []func(*cluster.Allocation)
}

func on(node cluster.NodeID, edits ...func(*cluster.Allocation)) spot {
	return spot{node: node, edits: edits}
}

// of is the spot for another group than the first.
func (s spot) of(group string) spot {
	s.group = group
	return s
}

// unhealthy has the verdict that the allocation is not well.
func unhealthy(a *cluster.Allocation) {
	bad := false
	a.DeploymentStatus.Healthy = &bad
}

// unjudged has no verdict, and began some time ago.
func unjudged(ago time.Duration) func(*cluster.Allocation) {
	return func(a *cluster.Allocation) {
		a.DeploymentStatus = nil
		a.CreateTime = world.Epoch.Add(-ago)
	}
}

// canary is one of a deployment.
func canary(a *cluster.Allocation) { a.DeploymentStatus.Canary = true }

// stoppedByHand has been asked to leave by somebody who is no drain.
func stoppedByHand(a *cluster.Allocation) { a.DesiredTransition.Migrate = true }

// put registers a job and places allocations of it, in the order of their
// indexes.
func (s *Stage) put(j *cluster.Job, spots ...spot) {
	indexes := map[string]int{}
	allocs := make([]*cluster.Allocation, len(spots))
	for i, spot := range spots {
		group := spot.group
		if group == "" {
			group = j.TaskGroups[0].Name
		}
		allocs[i] = edited(s.NewAlloc(j, group, indexes[group], spot.node), spot.edits)
		indexes[group]++
	}
	s.check(s.Place(j, allocs...))
}

// place is put for allocations with which nothing is special.
func (s *Stage) place(j *cluster.Job, nodes ...cluster.NodeID) {
	spots := make([]spot, len(nodes))
	for i, id := range nodes {
		spots[i] = on(id)
	}
	s.put(j, spots...)
}

// fleet registers nodes, each with a job of its own that has one allocation on it.
func (s *Stage) fleet(ids []cluster.NodeID, job func(cluster.NodeID) *cluster.Job) {
	at := s.Now()
	s.check(s.Begin(func(txn *statestore.Txn) error {
		for _, id := range ids {
			if err := txn.UpsertNode(world.NewNode(id), at); err != nil {
				return err
			}
		}
		return nil
	}))
	placements := make([]world.Placement, len(ids))
	for i, id := range ids {
		j := job(id)
		placements[i] = world.Placement{Job: j, Allocs: []*cluster.Allocation{s.NewAlloc(j, j.TaskGroups[0].Name, 0, id)}}
	}
	s.check(s.PlaceAll(placements))
}

// What happens.

// drain asks for a drain with a deadline: zero is none, below zero is force.
func drain(id cluster.NodeID, deadline time.Duration) func(*Stage) {
	return func(s *Stage) { s.Drain(id, cluster.DrainSpec{Deadline: deadline}, "") }
}

const force = -time.Second

// cancel ends a drain and leaves the node ineligible; cancelEligible gives it back.
func cancel(id cluster.NodeID) func(*Stage) {
	return func(s *Stage) { s.CancelDrain(id, false, "") }
}

func cancelEligible(id cluster.NodeID) func(*Stage) {
	return func(s *Stage) { s.CancelDrain(id, true, "") }
}

// edit registers another version of a job.
func edit(id cluster.JobID, edits ...func(*cluster.Job)) func(*Stage) {
	return func(s *Stage) {
		s.check(s.EditJob(key(id), func(j *cluster.Job) { edited(j, edits) }))
	}
}

// stop stops a job, purge has it forgotten.
func stop(id cluster.JobID) func(*Stage) {
	return func(s *Stage) { s.check(s.StopJob(key(id), false)) }
}

func purge(id cluster.JobID) func(*Stage) {
	return func(s *Stage) { s.check(s.StopJob(key(id), true)) }
}

func key(id cluster.JobID) cluster.JobKey {
	return cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: id}
}

// status tells the servers what has become of a node.
func status(id cluster.NodeID, to cluster.NodeStatus) func(*Stage) {
	return func(s *Stage) { s.SetNodeStatus(id, to) }
}

// join registers a node.
func join(id cluster.NodeID, edits ...func(*cluster.Node)) func(*Stage) {
	return func(s *Stage) { s.RegisterNode(edited(world.NewNode(id), edits)) }
}

// set sets the clocks of all servers.
func set(ahead time.Duration) func(*Stage) {
	return func(s *Stage) {
		for server := range s.Servers() {
			s.SetClock(server, ahead)
		}
	}
}

// remove deletes a node.
func remove(id cluster.NodeID) func(*Stage) {
	return func(s *Stage) { s.DeleteNode(id) }
}

// eligible gives a node back to the scheduler.
func eligible(id cluster.NodeID) func(*Stage) {
	return func(s *Stage) { s.SetEligibility(id, cluster.NodeEligible) }
}

// numbers are many nodes.
func numbers(n int) []cluster.NodeID {
	ids := make([]cluster.NodeID, n)
	for i := range ids {
		ids[i] = cluster.NodeID(fmt.Sprintf("n%04d", i))
	}
	return ids
}

// fail ends an allocation, of those that have not ended, by itself.
func fail(name string) func(*Stage) {
	return func(s *Stage) {
		for a := range s.Truth().Allocs() {
			if a.Name == name && !a.Terminal() {
				s.FailAlloc(a)
				return
			}
		}
		s.check(fmt.Errorf("there is no %s", name))
	}
}

// Between plan and apply.

// beforeNext has something done just before the next entry of type M is applied.
// What it does is committed at once.
func beforeNext[M shims.Message](do func(*Stage)) func(*Stage) {
	return func(s *Stage) {
		s.Before(func(m shims.Message) bool { _, is := m.(M); return is }, func() error {
			do(s)
			return s.err
		})
	}
}

// The entries that something can come before.
type (
	marks       = *shims.AllocUpdateDesiredTransition
	completions = *shims.NodesDrainComplete
	plans       = *shims.ApplyPlan
)

// commitDrain, commitCancel, commitEdit and commitPurge are drain, cancel, edit and
// purge, committed.
func commitDrain(id cluster.NodeID, deadline time.Duration) func(*Stage) {
	return func(s *Stage) {
		s.check(s.Commit(s.DrainRequest(id, &cluster.DrainSpec{Deadline: deadline}, "")))
	}
}

// commitDrains drains nodes at once, before anybody takes a step.
func commitDrains(deadline time.Duration, ids ...cluster.NodeID) func(*Stage) {
	return func(s *Stage) {
		for _, id := range ids {
			commitDrain(id, deadline)(s)
		}
	}
}

func commitCancel(id cluster.NodeID) func(*Stage) {
	return func(s *Stage) { s.check(s.Commit(s.DrainRequest(id, nil, ""))) }
}

func commitEdit(id cluster.JobID, edits ...func(*cluster.Job)) func(*Stage) {
	return func(s *Stage) {
		j := edited(s.Truth().Job(key(id)).Copy(), edits)
		s.check(s.Commit(&shims.JobRegister{Job: j}))
	}
}

func commitPurge(id cluster.JobID) func(*Stage) {
	return func(s *Stage) { s.check(s.Commit(&shims.JobDeregister{Job: key(id), Purge: true})) }
}

func (s *Stage) commitRemove(id cluster.NodeID) {
	s.check(s.Commit(&shims.NodeDeregister{At: s.Now(), Nodes: []cluster.NodeID{id}}))
}

// both does one thing after another.
func both(first, second func(*Stage)) func(*Stage) {
	return func(s *Stage) {
		first(s)
		second(s)
	}
}

// behaving changes how allocations behave, from what is usual.
func behaving(edit func(*cluster.Allocation, *world.Behaviour)) func(*cluster.Allocation) world.Behaviour {
	return func(a *cluster.Allocation) world.Behaviour {
		b := world.DefaultBehaviour(a)
		edit(a, &b)
		return b
	}
}
