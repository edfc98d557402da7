package clustertest

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Replica is the only server of a cluster, without raft: it encodes each message and
// applies it to the FSM as the next entry.
type Replica struct {
	testing.TB
	FSM *shims.FSM
	// Index is the raft index of the last entry.
	Index uint64
	// Now is the time in messages.
	Now func() time.Time
	// Propose applies a message. It is [Replica.Apply], unless the test wraps that.
	Propose func(shims.Message) shims.Response
	// ids counts the ids that the replica made.
	ids int
}

// NewReplica returns a replica with an empty state, whose messages have the clock's time.
func NewReplica(t testing.TB, c shims.FSMConfig) *Replica {
	r := &Replica{TB: t, FSM: shims.NewFSM(c), Now: time.Now}
	r.Propose = r.Apply
	return r
}

// State is the newest state.
func (r *Replica) State() *statestore.Snapshot { return r.FSM.Store().Snapshot() }

// Apply applies a message as the next entry. The FSM may refuse it.
func (r *Replica) Apply(m shims.Message) shims.Response {
	r.Helper()
	data, err := shims.Encode(m)
	must.NoError(r, err)
	r.Index++
	response, err := r.FSM.ApplyEntry(r.Index, data)
	must.NoError(r, err)
	return response
}

// Must proposes a message that the FSM must not refuse.
func (r *Replica) Must(m shims.Message) shims.Response {
	r.Helper()
	response := r.Propose(m)
	if refused, is := response.(shims.Refused); is {
		must.NoError(r, refused.Err)
	}
	return response
}

// Restore replaces the state by a snapshot of another.
func (r *Replica) Restore(s *statestore.Snapshot) {
	r.Helper()
	var b bytes.Buffer
	must.NoError(r, statestore.Persist(&b, s))
	must.NoError(r, r.FSM.Restore(io.NopCloser(&b)))
	r.Index = s.Index()
}

// Nodes registers ready nodes.
func (r *Replica) Nodes(ids ...cluster.NodeID) {
	r.Helper()
	for _, id := range ids {
		r.Must(&shims.NodeRegister{At: r.Now(), Node: Node(id)})
	}
}

// Job registers a job without an evaluation, and returns it as it is stored.
func (r *Replica) Job(j *cluster.Job) *cluster.Job {
	r.Helper()
	r.Must(&shims.JobRegister{Job: j})
	return r.State().Job(j.Key())
}

// Eval makes a pending evaluation of a job that no entry holds yet.
func (r *Replica) Eval(j *cluster.Job) *cluster.Evaluation {
	return Eval(j, cluster.EvalID(r.id("e")), r.Now())
}

func (r *Replica) id(kind string) string {
	r.ids++
	return fmt.Sprint(kind, r.ids)
}

// Plan answers an evaluation of the job that is open, or else a new one.
func (r *Replica) Plan(j *cluster.Job, stops []cluster.AllocID, places ...*cluster.Allocation) shims.PlanApplied {
	r.Helper()
	var answered *cluster.Evaluation
	for e := range r.State().WorkView().OpenEvals(j.Key()) {
		answered = e.Copy()
		break
	}
	if answered == nil {
		answered = r.Eval(j)
		r.Must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{answered.Copy()}})
	}
	answered.Status = cluster.EvalComplete
	p := cluster.Plan{At: r.Now(), Eval: answered, SnapshotIndex: r.Index, Places: places}
	for _, id := range stops {
		p.Stops = append(p.Stops, cluster.PlanStop{Alloc: id, Description: cluster.DescMigrating, Migrate: true})
	}
	return r.Must(&shims.ApplyPlan{Plan: p}).(shims.PlanApplied)
}

// Report applies a report of each allocation that exists.
func (r *Replica) Report(status cluster.ClientStatus, ids ...cluster.AllocID) {
	r.Helper()
	m := new(shims.AllocClientUpdate)
	for _, id := range ids {
		if a := r.State().Alloc(id); a != nil {
			m.Reports = append(m.Reports, Report(a, status, r.Now()))
		}
	}
	r.Must(m)
}

// Drain starts or updates the drain of a node, or cancels it if the spec is nil.
func (r *Replica) Drain(id cluster.NodeID, spec *cluster.DrainSpec) cluster.DrainResult {
	r.Helper()
	return r.Must(r.DrainRequest(id, spec)).(shims.DrainRequestApplied).DrainResult
}

// DrainRequest is the message of Drain.
func (r *Replica) DrainRequest(id cluster.NodeID, spec *cluster.DrainSpec) *shims.NodeUpdateDrain {
	return &shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{
		Node: id, Drain: cluster.DrainID(r.id("d")), Spec: spec, At: r.Now(),
	}}
}

// Mark marks allocations of one job for the drains of their nodes. It leaves out those on
// nodes that do not drain.
func (r *Replica) Mark(class cluster.MarkClass, ids ...cluster.AllocID) shims.MarksApplied {
	r.Helper()
	m := rules.Marks{At: r.Now()}
	for _, id := range ids {
		a := r.State().Alloc(id)
		if m.Evals == nil {
			m.Evals = []*cluster.Evaluation{r.Eval(a.Job)}
		}
		if n := r.State().Node(a.NodeID); n.Draining() {
			m.Marks = append(m.Marks, Mark(n, a, class))
		}
	}
	return r.Must(&shims.AllocUpdateDesiredTransition{Marks: m}).(shims.MarksApplied)
}

// Mark is the mark of the drain that runs on the node.
func Mark(n *cluster.Node, a *cluster.Allocation, class cluster.MarkClass) rules.Mark {
	return rules.Mark{Alloc: a.ID, Group: a.GroupKey(), Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: class}
}

// Complete ends the drain of a node.
func (r *Replica) Complete(id cluster.NodeID) shims.CompletionsApplied {
	r.Helper()
	d := r.State().Node(id).Drain
	return r.Must(&shims.NodesDrainComplete{Completions: rules.Completions{
		At: r.Now(), Completions: []rules.Completion{{Node: id, Drain: d.ID, Revision: d.Revision}},
	}}).(shims.CompletionsApplied)
}
