package invariant_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// twoNamespaces is a fixture in which n1 runs the job web of two namespaces, and n2 that of the
// default one. The system job logs may run on n1 and n2.
func twoNamespaces(t *testing.T) *fixture {
	s := web(t, invariant.Options{}, 1, 1)
	other := service("web", 1, 1)
	other.Namespace = "other"
	s.job(other)
	s.place("b1", "web", "n1", func(a *cluster.Allocation) {
		a.Namespace, a.Job = "other", s.state().Job(other.Key())
	})
	logs := newJob(cluster.JobSystem, "logs", 1)
	logs.Datacenters = []string{"east"}
	s.job(logs)
	for _, id := range []cluster.NodeID{"n1", "n2"} {
		n := s.state().Node(id).Copy()
		n.Datacenter = "east"
		s.apply(&shims.NodeRegister{At: s.now, Node: n})
	}
	return s
}

// nodeDown applies an entry in which n1 goes down. The FSM creates these evaluations and names
// them in its answer.
func (s *fixture) nodeDown(evals ...*cluster.Evaluation) {
	m := &shims.NodeUpdateStatus{At: s.now, Node: "n1", Status: cluster.NodeDown}
	s.fake(m, named(evals), func(txn *statestore.Txn) {
		must.NoError(s.t, txn.UpdateNodeStatus(m.Node, m.Status, m.At))
		must.NoError(s.t, txn.UpsertEvals(evals))
	})
}

// named returns an answer that names the evaluations.
func named(evals []*cluster.Evaluation) shims.ChangeApplied {
	var r shims.ChangeApplied
	for _, e := range evals {
		r.Evals = append(r.Evals, e.ID)
	}
	return r
}

// nodeEvals returns the required evaluations for a change of n1: of logs, of web, and of web in
// the other namespace.
func (s *fixture) nodeEvals() []*cluster.Evaluation {
	logs, ours, theirs := s.eval("logs"), s.eval("web"), s.eval("web")
	logs.Type, theirs.Namespace = cluster.JobSystem, "other"
	for _, e := range []*cluster.Evaluation{logs, ours, theirs} {
		e.TriggeredBy, e.NodeID = cluster.TriggerNodeUpdate, "n1"
	}
	return []*cluster.Evaluation{logs, ours, theirs}
}

func brokenEvals() []broken {
	// nodeDownWith takes n1 down with changed evaluations.
	nodeDownWith := func(change func(*fixture, []*cluster.Evaluation) []*cluster.Evaluation) func(*testing.T) *fixture {
		return func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.nodeDown(change(s, s.nodeEvals())...)
			return s
		}
	}
	without := func(i int) func(*fixture, []*cluster.Evaluation) []*cluster.Evaluation {
		return func(_ *fixture, evals []*cluster.Evaluation) []*cluster.Evaluation {
			return slices.Delete(evals, i, i+1)
		}
	}
	with := func(change func(*cluster.Evaluation)) func(*fixture, []*cluster.Evaluation) []*cluster.Evaluation {
		return func(_ *fixture, evals []*cluster.Evaluation) []*cluster.Evaluation {
			change(evals[1])
			return evals
		}
	}
	return []broken{
		{"a node goes down without an evaluation", invariant.JobForgotten, nil, nodeDownWith(func(*fixture, []*cluster.Evaluation) []*cluster.Evaluation { return nil })},
		{"a node goes down without an evaluation of the system job", invariant.JobForgotten, nil, nodeDownWith(without(0))},
		{"a node goes down without an evaluation in the default namespace", invariant.JobForgotten, nil, nodeDownWith(without(1))},
		{"a node goes down without an evaluation in the other namespace", invariant.JobForgotten, nil, nodeDownWith(without(2))},
		{"a required evaluation that is complete", invariant.JobForgotten, nil, nodeDownWith(with(func(e *cluster.Evaluation) { e.Status = cluster.EvalComplete }))},
		{"an evaluation with another trigger", invariant.JobForgotten, nil, nodeDownWith(with(func(e *cluster.Evaluation) { e.TriggeredBy = cluster.TriggerNodeDrain }))},
		{"an evaluation of another node", invariant.JobForgotten, nil, nodeDownWith(with(func(e *cluster.Evaluation) { e.NodeID = "n2" }))},
		{"an evaluation with another time", invariant.JobForgotten, nil, nodeDownWith(with(func(e *cluster.Evaluation) { e.CreateTime = e.CreateTime.Add(time.Second) }))},
		{"an evaluation with another job type", invariant.JobForgotten, nil, nodeDownWith(with(func(e *cluster.Evaluation) { e.Type = cluster.JobBatch }))},
		{"an evaluation with another priority", invariant.JobForgotten, nil, nodeDownWith(with(func(e *cluster.Evaluation) { e.Priority = 1 }))},
		{"two evaluations of a job", invariant.NeedlessEvaluation, nil, nodeDownWith(func(s *fixture, evals []*cluster.Evaluation) []*cluster.Evaluation {
			return append(evals, s.nodeEvals()[1])
		})},
		{"an evaluation of a job on another node", invariant.NeedlessEvaluation, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.job(service("elsewhere", 1, 1))
			s.nodeDown(append(s.nodeEvals(), s.eval("elsewhere"))...)
			return s
		}},
		{"an evaluation of a system job that cannot run on the node", invariant.NeedlessEvaluation, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			e := s.nodeEvals()
			for _, e := range e {
				e.NodeID = "n3"
			}
			m := &shims.NodeUpdateStatus{At: s.now, Node: "n3", Status: cluster.NodeDown}
			s.fake(m, named(e[:2]), func(txn *statestore.Txn) {
				must.NoError(s.t, txn.UpdateNodeStatus(m.Node, m.Status, m.At))
				must.NoError(s.t, txn.UpsertEvals(e[:2]))
			})
			return s
		}},
		{"evaluations for a node with an unchanged status", invariant.NeedlessEvaluation, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			e := s.nodeEvals()
			s.fake(&shims.NodeUpdateStatus{At: s.now, Node: "n1", Status: cluster.NodeReady}, named(e), func(txn *statestore.Txn) {
				must.NoError(s.t, txn.UpsertEvals(e))
			})
			return s
		}},
		{"an evaluation of a job beside a carried one", invariant.NeedlessEvaluation, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			e := append(s.nodeEvals(), s.nodeEvals()[1])
			m := &shims.NodeUpdateStatus{At: s.now, Node: "n1", Status: cluster.NodeDown, Evals: e[3:]}
			s.fake(m, named(e), func(txn *statestore.Txn) {
				must.NoError(s.t, txn.UpdateNodeStatus(m.Node, m.Status, m.At))
				must.NoError(s.t, txn.UpsertEvals(e))
			})
			return s
		}},
		{"a carried evaluation that is not written", invariant.JobForgotten, []invariant.Check{invariant.WrongAnswer}, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.fake(&shims.EvalUpdate{Evals: s.nodeEvals()}, shims.ChangeApplied{}, nothing)
			return s
		}},
		{"a deleted node without an evaluation", invariant.JobForgotten, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			m := &shims.NodeDeregister{At: s.now, Nodes: []cluster.NodeID{"n3", "n2"}}
			s.fake(m, shims.NodesDeregistered{}, func(txn *statestore.Txn) { txn.DeleteNodes(m.Nodes, m.At) })
			return s
		}},
		{"a registered node without an evaluation", invariant.JobForgotten, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			n := s.state().Node("n1").Copy()
			n.ID = "n4"
			s.fake(&shims.NodeRegister{At: s.now, Node: n}, shims.ChangeApplied{}, func(txn *statestore.Txn) { must.NoError(s.t, txn.UpsertNode(n, s.now)) })
			return s
		}},
		{"an eligible node without an evaluation", invariant.JobForgotten, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.apply(&shims.NodeUpdateEligibility{At: s.now, Node: "n2", Eligibility: cluster.NodeIneligible})
			m := &shims.NodeUpdateEligibility{At: s.now, Node: "n2", Eligibility: cluster.NodeEligible}
			s.fake(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { must.NoError(s.t, txn.UpdateNodeEligibility(m.Node, m.Eligibility, m.At)) })
			return s
		}},
		{"a node made eligible by a cancel, without an evaluation", invariant.JobForgotten, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.drain("n1", 0)
			m := s.request("n1", nil)
			m.MarkEligible = true
			s.fake(m, shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1"}}, func(txn *statestore.Txn) {
				_, err := txn.UpdateNodeDrain(m.DrainUpdate)
				must.NoError(s.t, err)
			})
			return s
		}},
		{"a stopped job without an evaluation", invariant.JobForgotten, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			m := &shims.JobDeregister{Job: jobKey("web")}
			s.fake(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { must.NoError(s.t, txn.DeleteJob(m.Job, false)) })
			return s
		}},
		{"a failed allocation without an evaluation", invariant.JobForgotten, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			m := reportOf("a1", "n1")
			m.Reports[0].ClientStatus = cluster.ClientFailed
			s.fake(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { txn.UpdateAllocsFromClient(m.Reports, m.At) })
			return s
		}},
		{"an evaluation for the failure of a stopped allocation", invariant.NeedlessEvaluation, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.stop("a1", false)
			e := s.eval("web")
			e.TriggeredBy = cluster.TriggerAllocFailure
			m := reportOf("a1", "n1")
			m.Reports[0].ClientStatus = cluster.ClientFailed
			s.fake(m, named([]*cluster.Evaluation{e}), func(txn *statestore.Txn) {
				txn.UpdateAllocsFromClient(m.Reports, m.At)
				must.NoError(s.t, txn.UpsertEvals([]*cluster.Evaluation{e}))
			})
			return s
		}},
		{"an answer that misses an evaluation", invariant.WrongAnswer, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			m := &shims.EvalUpdate{Evals: s.nodeEvals()}
			s.fake(m, named(m.Evals[:2]), func(txn *statestore.Txn) { must.NoError(s.t, txn.UpsertEvals(m.Evals)) })
			return s
		}},
		{"a refused entry that changes rows", invariant.WrongAnswer, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			m := &shims.EvalUpdate{Evals: s.nodeEvals()}
			s.fake(m, shims.Refused{Err: statestore.ErrNodeNotFound}, func(txn *statestore.Txn) { must.NoError(s.t, txn.UpsertEvals(m.Evals)) })
			return s
		}},
		{"a mark whose evaluation has another trigger", invariant.NoEvaluation, nil, func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			m.Evals[0].TriggeredBy = cluster.TriggerNodeUpdate
			s.applyUnchecked(m)
			return s
		}},
	}
}

func fineEvals() []fine {
	return []fine{
		{"a node goes down with all evaluations", func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.nodeDown(s.nodeEvals()...)
			return s
		}},
		{"two deleted nodes with the same job", func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.apply(&shims.NodeDeregister{At: s.now, Nodes: []cluster.NodeID{"n1", "n2", "none", "n1"}})
			s.apply(&shims.NodeDeregister{At: s.now, Nodes: []cluster.NodeID{"n1"}}) // its allocations still exist
			return s
		}},
		{"batch work that completes, with a late report of a failure", func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.job(newJob(cluster.JobBatch, "once", 1))
			s.place("c1", "once", "n2")
			m := reportOf("c1", "n2")
			m.Reports = append(m.Reports, m.Reports[0])
			m.Reports[0].ClientStatus, m.Reports[1].ClientStatus = cluster.ClientComplete, cluster.ClientFailed
			s.apply(m)
			return s
		}},
		{"a carried evaluation that is not required", func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			s.apply(&shims.NodeUpdateStatus{At: s.now, Node: "n3", Status: cluster.NodeDown, Evals: []*cluster.Evaluation{s.eval("logs")}})
			return s
		}},
		{"a carried evaluation that is complete", func(t *testing.T) *fixture {
			s := twoNamespaces(t)
			e := s.nodeEvals()
			e[1].Status = cluster.EvalComplete
			s.apply(&shims.NodeUpdateStatus{At: s.now, Node: "n1", Status: cluster.NodeDown, Evals: e})
			return s
		}},
	}
}

// The judge and the FSM require the same evaluations in random histories. Entries carry some of
// these evaluations.
func TestJudge_agreesOnRequiredEvaluations(t *testing.T) {
	t.Parallel()
	count := 0
	for seed := range uint64(60) {
		c := newRandomFixture(t, seed)
		for range 30 {
			c.randomEntry()
			c.changeNode()
		}
		c.j.End(c.now, c.state())
		must.SliceEmpty(t, c.j.Violations(), must.Sprintf("seed %d: %v", seed, c.j.Violations()))
		for range c.state().Evals() {
			count++
		}
	}
	must.Greater(t, 1000, count)
}

// changeNode changes a node. The entry carries some of the required evaluations, and perhaps
// others.
func (c *randomFixture) changeNode() {
	id := c.someNode()
	evals := scheduler.NodeEvals(c.state().WorkView(), id, cluster.TriggerNodeUpdate, c.now, func() cluster.EvalID { return c.eval("").ID })
	evals = slices.DeleteFunc(evals, func(*cluster.Evaluation) bool { return c.rng.IntN(2) == 0 })
	if a := c.someAlloc(); a != nil && c.rng.IntN(4) == 0 {
		evals = append(evals, c.eval(a.JobID))
	}
	switch c.rng.IntN(5) {
	case 0:
		c.apply(&shims.NodeUpdateStatus{At: c.now, Node: id, Status: pick(c.rng, cluster.NodeReady, cluster.NodeDown, cluster.NodeDisconnected), Evals: evals})
	case 1:
		c.apply(&shims.NodeUpdateEligibility{At: c.now, Node: id, Eligibility: pick(c.rng, cluster.NodeEligible, cluster.NodeIneligible), Evals: evals})
	case 2:
		m := c.request(id, nil)
		m.MarkEligible, m.Evals = c.rng.IntN(2) == 0, evals
		c.apply(m)
	case 3:
		n := c.state().Node(id).Copy()
		n.Drain, n.NodePool, n.Datacenter = nil, pick(c.rng, "", "default", "gpu"), pick(c.rng, "", "east")
		c.apply(&shims.NodeRegister{At: c.now, Node: n, Evals: evals})
	default:
		j := c.randomJob(c.rng.IntN(6))
		j.NodePool, j.Priority = pick(c.rng, "", "default", "gpu", "all"), pick(c.rng, 0, 50, 80)
		j.Datacenters = pick(c.rng, nil, []string{"east", "west"})
		c.job(j)
	}
}
