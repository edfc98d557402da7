package shims_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/drainertest"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// This state machine passes the conformance test of the drainer's state machines.
func TestFSM_conformance(t *testing.T) {
	t.Parallel()
	must.NoError(t, drainertest.TestFSM(func() drainertest.FSM {
		return conformingFSM{shims.NewFSM(shims.FSMConfig{})}
	}))
}

// conformingFSM applies the entries of the conformance test.
type conformingFSM struct{ fsm *shims.FSM }

func (c conformingFSM) View() rules.View { return c.fsm.Store().Snapshot().DrainView() }

func (c conformingFSM) Record(id cluster.DrainID) *cluster.Drain {
	return c.fsm.Store().Snapshot().DrainRecord(id)
}

// Commit writes rows through the messages that produce them.
func (c conformingFSM) Commit(index uint64, rows drainertest.Rows) error {
	txn := c.fsm.Store().Begin(index)
	defer txn.Abort()
	for _, n := range rows.Nodes {
		if err := txn.UpsertNode(n, time.Time{}); err != nil {
			return err
		}
	}
	for _, j := range rows.Jobs {
		if err := txn.UpsertJob(j); err != nil {
			return err
		}
	}
	for _, a := range rows.Allocs {
		plan := &cluster.Plan{At: a.ModifyTime}
		switch {
		case txn.State().Alloc(a.ID) == nil:
			plan.Places = []*cluster.Allocation{a}
		case a.ServerTerminal():
			plan.Stops = []cluster.PlanStop{{Alloc: a.ID}}
		}
		if dropped, err := txn.ApplyPlan(plan); err != nil || len(dropped) > 0 {
			return fmt.Errorf("placing %v: %w", dropped, err)
		}
		report := cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: a.ClientStatus, At: a.ModifyTime}
		if a.HasVerdict() {
			report.Healthy, report.HealthyAt = a.DeploymentStatus.Healthy, a.ModifyTime
		}
		txn.UpdateAllocsFromClient([]cluster.AllocReport{report}, a.ModifyTime)
	}
	if err := txn.UpsertEvals(rows.Evals); err != nil {
		return err
	}
	txn.Commit()
	return nil
}

func (c conformingFSM) UpdateDrain(index uint64, u cluster.DrainUpdate) error {
	_, err := c.apply(index, &shims.NodeUpdateDrain{DrainUpdate: u})
	return err
}

func (c conformingFSM) Marks(index uint64, m *rules.Marks) ([]rules.Refusal, error) {
	response, err := c.apply(index, &shims.AllocUpdateDesiredTransition{Marks: *m})
	marked, _ := response.(shims.MarksApplied)
	return marked.Refused, err
}

func (c conformingFSM) Completions(index uint64, completions *rules.Completions) ([]rules.Refusal, error) {
	response, err := c.apply(index, &shims.NodesDrainComplete{Completions: *completions})
	completed, _ := response.(shims.CompletionsApplied)
	return completed.Refused, err
}

// apply applies a message as raft does.
func (c conformingFSM) apply(index uint64, m shims.Message) (shims.Response, error) {
	entry, err := shims.Encode(m)
	if err != nil {
		return nil, err
	}
	response, err := c.fsm.ApplyEntry(index, entry)
	if refused, is := response.(shims.Refused); is {
		return nil, refused.Err
	}
	return response, err
}

// The reference scheduler over this state machine passes the conformance test of replacements that stand by.
func TestFSM_conformanceOfSurge(t *testing.T) {
	t.Parallel()
	must.NoError(t, drainertest.TestSurge(func() drainertest.SurgeCluster {
		c := &conformingScheduler{conformingFSM: conformingFSM{shims.NewFSM(shims.FSMConfig{})}}
		txn := c.fsm.Store().Begin(1)
		txn.RaiseClusterVersion(cluster.VersionOfSurge)
		txn.Commit()
		return c
	}))
}

// conformingScheduler is the reference scheduler, whose plans the state machine checks.
type conformingScheduler struct {
	conformingFSM
	ids int
}

func (c *conformingScheduler) Schedule(at time.Time) error {
	id := func() string {
		c.ids++
		return fmt.Sprintf("id-%d", c.ids)
	}
	ids := scheduler.IDs{
		Alloc: func() cluster.AllocID { return cluster.AllocID(id()) }, Eval: func() cluster.EvalID { return cluster.EvalID(id()) },
	}
	for range 100 {
		view := c.fsm.Store().Snapshot().WorkView()
		pending := slices.Collect(view.PendingEvals())
		if len(pending) == 0 {
			return nil
		}
		plan := scheduler.Schedule(view, pending[0], at, ids)
		response, err := c.apply(view.Index()+1, &shims.ApplyPlan{Plan: *plan})
		if err != nil {
			return err
		}
		if applied, _ := response.(shims.PlanApplied); len(applied.Refused) > 0 {
			return fmt.Errorf("the plan of evaluation %s has refused items: %v", pending[0].ID, applied.Refused)
		}
	}
	return errors.New("the evaluations do not end")
}

// This applier passes the conformance test of the drainer's appliers.
func TestRaftApplier_conformance(t *testing.T) {
	t.Parallel()
	must.NoError(t, drainertest.TestApplier(func(log *drainertest.Log) drainer.RaftApplier {
		r := &logRaft{log: log, fsm: shims.NewFSM(shims.FSMConfig{})}
		p, err := shims.NewProposer(r, r.fsm, shims.Options{Timeout: 500 * time.Millisecond, EnqueueTimeout: 100 * time.Millisecond})
		must.NoError(t, err)
		t.Cleanup(p.Close)
		return shims.NewDrainerApplier(p)
	}))
}

// logRaft is a raft over the log of the conformance test.
type logRaft struct {
	log *drainertest.Log
	fsm *shims.FSM
	mu  sync.Mutex // held while the state takes an index
}

func (r *logRaft) Apply(entry []byte, _ time.Duration) raft.ApplyFuture {
	m, err := shims.Decode(entry)
	if err != nil {
		panic(err) // it was encoded by this package
	}
	switch m := m.(type) {
	case *shims.AllocUpdateDesiredTransition:
		return r.begin(func() (drainertest.Result, any) {
			result := r.log.Marks(&m.Marks)
			return result, shims.MarksApplied{Refused: result.Refused}
		})
	case *shims.NodesDrainComplete:
		return r.begin(func() (drainertest.Result, any) {
			result := r.log.Completions(&m.Completions)
			return result, shims.CompletionsApplied{Refused: result.Refused}
		})
	}
	panic(fmt.Sprintf("the drainer does not write a %T", m))
}

func (r *logRaft) Barrier(time.Duration) raft.Future {
	return r.begin(func() (drainertest.Result, any) {
		result := r.log.Barrier()
		r.reach(result.Index)
		return result, nil
	})
}

// reach moves the state to an index.
func (r *logRaft) reach(index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if store := r.fsm.Store(); index > store.Snapshot().Index() {
		store.Begin(index).Commit()
	}
}

// begin returns a future that ends when the log answers.
func (r *logRaft) begin(propose func() (drainertest.Result, any)) *fakeFuture {
	f := &fakeFuture{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		result, response := propose()
		f.index, f.response = result.Index, response
		switch result.Outcome {
		case raftwrite.Rejected:
			f.err = raft.ErrNotLeader
		case raftwrite.Unknown:
			f.err = raft.ErrLeadershipLost
		}
	}()
	return f
}
