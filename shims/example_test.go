package shims_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// localLog is a minimal log: one server, which applies each proposal at once. A real server uses a
// shims.Proposer over hashicorp/raft instead.
type localLog struct {
	mu    sync.Mutex
	fsm   *shims.FSM
	index uint64 // guarded by mu
}

func (l *localLog) Propose(m shims.Message, reply func(shims.Answer)) (queued bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, err := shims.Encode(m)
	if err != nil {
		reply(shims.Answer{Outcome: raftwrite.Rejected, Err: err})
		return true
	}
	l.index++
	response, err := l.fsm.ApplyEntry(l.index, data)
	if err != nil {
		panic(err) // a broken entry stops every server
	}
	reply(shims.Answer{Outcome: raftwrite.Applied, Index: l.index, Response: response})
	return true
}

func (l *localLog) Barrier(reply func(shims.Answer)) (queued bool) {
	reply(shims.Answer{Outcome: raftwrite.Applied, Index: l.fsm.Store().Snapshot().Index()})
	return true
}

// A server enables its drainer when it becomes leader. Then a drain is a normal write to the log:
// the drainer finds it in the state, marks the allocations that must leave, and ends the drain when
// they have left.
func ExampleDrainerApplier() {
	log := &localLog{fsm: shims.NewFSM(shims.FSMConfig{})}
	propose := func(m shims.Message) { log.Propose(m, func(shims.Answer) {}) }
	now := time.Now()

	// A node with one allocation of a service on it, as a scheduler placed it.
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "web", Count: 1, Tasks: []*cluster.Task{{Name: "web"}}}}}
	job.Canonicalize()
	alloc := &cluster.Allocation{
		ID: "web-1", Namespace: job.Namespace, JobID: job.ID, Job: job, TaskGroup: "web", NodeID: "n1",
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, CreateTime: now,
	}
	placed := &cluster.Evaluation{ID: "placed", Namespace: job.Namespace, JobID: job.ID, Status: cluster.EvalPending}
	propose(&shims.NodeRegister{At: now, Node: &cluster.Node{ID: "n1", Status: cluster.NodeReady}})
	propose(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{placed}})
	done := placed.Copy()
	done.Status = cluster.EvalComplete
	propose(&shims.ApplyPlan{Plan: cluster.Plan{At: now, Eval: done, SnapshotIndex: 2, Places: []*cluster.Allocation{alloc}}})
	healthy := true
	report := func(s cluster.ClientStatus) {
		propose(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{
			{Alloc: "web-1", Node: "n1", ClientStatus: s, Healthy: &healthy, HealthyAt: now, At: now},
		}})
	}
	report(cluster.ClientRunning)

	nodeDrainer, err := drainer.NewNodeDrainer(drainer.NodeDrainerConfig{Raft: shims.NewDrainerApplier(log)})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Leadership is gained.
	if err := nodeDrainer.SetEnabled(true, log.fsm.Store().Reader()); err != nil {
		fmt.Println(err)
		return
	}
	defer nodeDrainer.SetEnabled(false, nil) //nolint:errcheck // disabling cannot fail

	// An operator drains the node.
	propose(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{
		Node: "n1", Drain: "drain-1", Spec: &cluster.DrainSpec{Deadline: time.Hour}, At: now,
	}})
	await(log, func(s *statestore.Snapshot) bool { return s.Alloc("web-1").Marked() })
	mark := log.fsm.Store().Snapshot().Alloc("web-1").DesiredTransition
	fmt.Printf("marked %s by %s\n", mark.Class, mark.Drain)

	// A scheduler would now stop it and place another; its client reports the end.
	report(cluster.ClientComplete)
	await(log, func(s *statestore.Snapshot) bool { return s.DrainRecord("drain-1") != nil })
	record := log.fsm.Store().Snapshot().DrainRecord("drain-1")
	fmt.Printf("%s: %s\n", record.NodeID, record.Outcome)

	// Output:
	// marked paced by drain-1
	// n1: complete
}

// await waits with a blocking query until the state is as wanted.
func await(log *localLog, wanted func(*statestore.Snapshot) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := log.fsm.Store().Blocking(ctx, 1, func(s *statestore.Snapshot) (uint64, error) {
		if !wanted(s) {
			for range s.Allocs() {
				continue // the query watches the rows it reads
			}
			return 0, nil
		}
		return s.Index(), nil
	})
	if err != nil {
		fmt.Println(err)
	}
}
