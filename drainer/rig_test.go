package drainer

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// rig steps a term by hand, as its shell would.
type rig struct {
	t      testingT
	config NodeDrainerConfig
	state  *memory
	raft   *fakeRaft
	wake   chan struct{}
	term   *Term
	now    time.Time
	wakeAt time.Time
	steps  int
}

// testingT is what must and rapid have in common.
type testingT interface {
	Helper()
	Fatalf(string, ...any)
}

// newRig begins a term over a town, at the epoch. Edit may be nil.
func newRig(t testingT, w *town, edit func(*NodeDrainerConfig)) *rig {
	r := &rig{t: t, state: newMemory(w), now: epoch}
	r.raft = &fakeRaft{state: r.state}
	ids := 0
	r.config = NodeDrainerConfig{Raft: r.raft, NewEvalID: func() cluster.EvalID {
		ids++
		return cluster.EvalID("eval-" + string(rune('a'+ids/26%26)) + string(rune('a'+ids%26)) + string(rune('a'+ids/676%26)))
	}}
	if edit != nil {
		edit(&r.config)
	}
	r.restart()
	return r
}

// restart begins a new term over the same state: everything remembered is lost.
func (r *rig) restart() {
	r.t.Helper()
	if r.term != nil {
		r.term.Close()
	}
	r.wake = make(chan struct{}, 1)
	term, err := NewTerm(r.config, r.state, r.wake)
	if err != nil {
		r.t.Fatalf("beginning a term: %v", err)
	}
	r.term = term
	r.step()
}

func (r *rig) step() {
	r.steps++
	r.wakeAt = r.term.Step(r.now)
}

// due: somebody woke the term, or the time it asked for has come.
func (r *rig) due() bool {
	select {
	case <-r.wake:
		return true
	default:
		return !r.wakeAt.IsZero() && !r.now.Before(r.wakeAt)
	}
}

// run steps until there is nothing to do now.
func (r *rig) run() {
	r.t.Helper()
	for range 1000 {
		if !r.due() {
			return
		}
		r.step()
	}
	r.t.Fatalf("the term runs hot at %s: it wants to be stepped at %s", r.now, r.wakeAt)
}

// settle runs and answers until there is nothing to do now.
func (r *rig) settle() {
	r.t.Helper()
	for range 1000 {
		r.run()
		if !r.raft.answer() {
			return
		}
	}
	r.t.Fatalf("the term writes hot at %s", r.now)
}

// advance lets time pass, settling whenever the term asks to be stepped.
func (r *rig) advance(d time.Duration) {
	r.t.Helper()
	until := r.now.Add(d)
	for range 100_000 {
		r.settle()
		if r.wakeAt.IsZero() || r.wakeAt.After(until) {
			r.now = until
			r.settle()
			return
		}
		r.now = r.wakeAt
	}
	r.t.Fatalf("the term is stepped too often before %s", until)
}

// commit changes the state.
func (r *rig) commit(edit func(*town)) { r.state.commit(edit) }

// schedule is a scheduler that knows no bounds: it stops what is marked, at once,
// and puts healthy replacements of services on the first node that takes them.
func (r *rig) schedule() {
	r.commit(func(w *town) {
		for _, e := range w.evals {
			if e.Status != cluster.EvalPending {
				continue
			}
			e.Status = cluster.EvalComplete
			for _, a := range slices.Clone(w.allocs) {
				if a.JobKey() == e.JobKey() && a.Marked() && !a.Terminal() {
					w.migrate(a)
				}
			}
		}
	})
}

// migrate stops an allocation, and replaces it if it is one of a service.
func (t *town) migrate(a *cluster.Allocation) {
	a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientComplete
	i := slices.IndexFunc(t.nodes, func(n *cluster.Node) bool { return n.Ready() })
	job := t.Job(a.JobKey())
	if a.JobType() != cluster.JobService || i < 0 || job.Stopped() {
		return
	}
	next := t.place(a.ID+"'", job, t.nodes[i].ID)
	next.TaskGroup, next.PreviousAllocation, a.NextAllocation = a.TaskGroup, a.ID, next.ID
}

// draining are the nodes that still drain.
func (t *town) draining() (ids []cluster.NodeID) {
	for n := range t.DrainingNodes() {
		ids = append(ids, n.ID)
	}
	return ids
}
