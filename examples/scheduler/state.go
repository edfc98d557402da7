package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rowview"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// entry is one entry of the log. It has a time and one of the other fields.
type entry struct {
	// At is the proposer's time. The state machine reads no clock.
	At          time.Time
	Node        *cluster.Node             `json:",omitempty"` // registers a node
	Job         *cluster.Job              `json:",omitempty"` // registers a job
	Drain       *cluster.DrainUpdate      `json:",omitempty"` // an operator's request
	Pause       *cluster.DrainPauseUpdate `json:",omitempty"` // an operator's request
	Marks       *rules.Marks              `json:",omitempty"`
	Completions *rules.Completions        `json:",omitempty"`
	Plan        *plan                     `json:",omitempty"`
	Reports     []cluster.AllocReport     `json:",omitempty"`
}

// state is the state machine: all rows after one entry of the log. It never changes: apply returns
// the next state. Rows are shared between states and never written to.
type state struct {
	index  uint64
	nodes  map[cluster.NodeID]*cluster.Node
	jobs   map[cluster.JobKey]*cluster.Job
	allocs map[cluster.AllocID]*cluster.Allocation
	evals  map[cluster.EvalID]*cluster.Evaluation
	drains map[cluster.DrainID]*cluster.Drain // the records of ended drains
	pause  *cluster.DrainPause                // the pause of all drains, or nil
	// view shows the rows to the drainer and its rules.
	view *rowview.View
}

func newState() *state { return (&state{}).next(0).show() }

// apply returns the state after the next entry of the log, and what was refused of the entry. Every
// entry moves the index, also one that is refused.
func (s *state) apply(e *entry) (after *state, refused []rules.Refusal) {
	after = s.next(s.index + 1)
	switch {
	case e.Node != nil && s.nodes[e.Node.ID] != nil: // registered again: it keeps its drain
	case e.Node != nil:
		e.Node.Canonicalize()
		after.nodes[e.Node.ID] = e.Node
	case e.Job != nil:
		after.jobs[e.Job.Key()] = e.Job
		after.evaluate(e.Job.Key(), cluster.TriggerJobRegister, e.At)
	case e.Drain != nil:
		after.drain(*e.Drain)
	case e.Pause != nil:
		after.pauseDrains(*e.Pause)
	case e.Marks != nil:
		refused = after.mark(e.Marks)
	case e.Completions != nil:
		refused = after.complete(e.Completions)
	case e.Plan != nil:
		after.execute(e.Plan, e.At)
	default:
		after.report(e.Reports, e.At)
	}
	return after.show(), refused
}

// next returns a copy with its own maps. The view is that of s until show is called, because the
// rules check an entry in the state before it.
func (s *state) next(index uint64) *state {
	return &state{
		index: index, view: s.view, pause: s.pause,
		nodes: maps.Collect(maps.All(s.nodes)), jobs: maps.Collect(maps.All(s.jobs)), allocs: maps.Collect(maps.All(s.allocs)),
		evals: maps.Collect(maps.All(s.evals)), drains: maps.Collect(maps.All(s.drains)),
	}
}

func (s *state) show() *state {
	s.view = rowview.New(s.index, slices.Collect(maps.Values(s.nodes)), slices.Collect(maps.Values(s.jobs)),
		slices.Collect(maps.Values(s.allocs)), slices.Collect(maps.Values(s.evals))).WithPause(s.pause)
	return s
}

// drain applies an operator's request. It changes nothing if the node does not exist, if the
// request is repeated because its answer was lost, or if it starts a drain without an id.
func (s *state) drain(u cluster.DrainUpdate) {
	n := s.nodes[u.Node]
	switch {
	case n == nil || s.drainWithKey(n, u.Key) != nil:
	case u.Spec == nil:
		c := lifecycle.CancelDrain(s.view, n, u, s.index)
		s.nodes[n.ID] = c.Node
		if c.Record != nil {
			s.drains[c.Record.ID] = c.Record
		}
		for _, a := range c.Withdrawn {
			s.allocs[a.ID] = a
			s.evaluate(a.JobKey(), cluster.TriggerNodeDrain, u.At)
		}
	case n.Draining():
		s.nodes[n.ID] = lifecycle.UpdateDrain(n, u, s.index)
	default:
		if started, err := lifecycle.StartDrain(n, u, s.index); err == nil {
			s.nodes[n.ID] = started
		}
	}
}

// drainWithKey returns the drain of the node, running or ended, that a request with the key started
// or changed, or nil.
func (s *state) drainWithKey(n *cluster.Node, key string) *cluster.Drain {
	for _, d := range append(slices.Collect(maps.Values(s.drains)), n.Drain) {
		if d != nil && d.NodeID == n.ID && d.HasKey(key) {
			return d
		}
	}
	return nil
}

// mark applies the drainer's marks, as far as the rules allow them in this state.
func (s *state) mark(m *rules.Marks) []rules.Refusal {
	accepted, evals, refused := rules.Recheck(s.view, m)
	for _, mark := range accepted {
		n, a := s.nodes[mark.Node].Copy(), s.allocs[mark.Alloc].Copy()
		lifecycle.ApplyMark(n, a, mark, m.At, s.index)
		s.nodes[n.ID], s.allocs[a.ID] = n, a
	}
	for _, e := range evals {
		e.CreateIndex = s.index
		s.evals[e.ID] = e
	}
	return refused
}

// complete ends drains, as far as the rules allow it in this state.
func (s *state) complete(c *rules.Completions) []rules.Refusal {
	ended, refused := rules.RecheckCompletions(s.view, c)
	for _, e := range ended {
		after, record := lifecycle.EndDrain(s.nodes[e.Node], e, c.At, s.index)
		s.nodes[after.ID], s.drains[record.ID] = after, record
	}
	return refused
}

// execute applies a plan of the scheduler. If one of the job's allocations, or a node of the plan,
// has changed since the plan was made, nothing happens and the evaluation stays open: so no
// allocation is placed on a node that drains by now, and none is stopped whose mark was withdrawn.
func (s *state) execute(p *plan, at time.Time) {
	eval := s.evals[p.Eval].Copy()
	if eval == nil || !eval.Open() || s.changedSince(p, eval.JobKey()) {
		return
	}
	for _, id := range p.Stop {
		a := s.allocs[id].Copy()
		a.DesiredStatus, a.StoppedAt, a.ModifyTime = cluster.DesiredStop, at, at
		a.ModifyIndex, a.AllocModifyIndex = s.index, s.index
		s.allocs[id] = a
	}
	for _, a := range p.Place {
		a.CreateTime, a.ModifyTime, a.CreateIndex = at, at, s.index
		a.ModifyIndex, a.AllocModifyIndex = s.index, s.index
		s.allocs[a.ID] = a
	}
	eval.Status, eval.Queued, eval.ModifyTime, eval.ModifyIndex = cluster.EvalComplete, p.Queued, at, s.index
	if len(p.Queued) > 0 {
		eval.Status, eval.StatusDescription = cluster.EvalBlocked, "no node is ready"
	}
	s.evals[eval.ID] = eval
}

// changedSince reports whether something that the plan depends on has changed.
func (s *state) changedSince(p *plan, job cluster.JobKey) bool {
	for _, a := range s.allocs {
		if a.JobKey() == job && a.AllocModifyIndex > p.Index {
			return true
		}
	}
	return slices.ContainsFunc(p.Place, func(a *cluster.Allocation) bool { return !s.nodes[a.NodeID].Ready() })
}

// report applies the reports of clients.
func (s *state) report(reports []cluster.AllocReport, at time.Time) {
	for _, r := range reports {
		a := s.allocs[r.Alloc].Copy()
		if a != nil && !a.ClientTerminal() && a.ClientStatus != r.ClientStatus {
			a.ClientStatus, a.ModifyTime, a.ModifyIndex = r.ClientStatus, r.At, s.index
			if a.DeploymentStatus == nil {
				a.DeploymentStatus = &cluster.DeploymentStatus{}
			}
			a.DeploymentStatus.Judge(*r.Healthy, at)
			a.DeploymentStatus.Timestamp = r.HealthyAt
			s.allocs[a.ID] = a
		}
	}
}

// evaluate adds an evaluation of a job. Its id follows from the entry, so it is the same on every
// server.
func (s *state) evaluate(key cluster.JobKey, trigger cluster.EvalTrigger, at time.Time) {
	id := cluster.EvalID(fmt.Sprintf("eval-%d-%s", s.index, key))
	s.evals[id] = &cluster.Evaluation{
		ID: id, Namespace: key.Namespace, JobID: key.ID, Type: s.jobs[key].Type,
		TriggeredBy: trigger, Status: cluster.EvalPending, CreateTime: at, CreateIndex: s.index, ModifyIndex: s.index,
	}
}
