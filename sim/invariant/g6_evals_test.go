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

// tenants is a stage on which n1 carries the job web of two namespaces, n2 that of
// one of them, and the system job logs may run on every node but n3.
func tenants(t *testing.T) *stage {
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

// down is an entry in which n1 goes down, which has evaluations of these jobs made,
// and says so.
func (s *stage) down(evals ...*cluster.Evaluation) {
	m := &shims.NodeUpdateStatus{At: s.now, Node: "n1", Status: cluster.NodeDown}
	s.lie(m, named(evals), func(txn *statestore.Txn) {
		must.NoError(s.t, txn.UpdateNodeStatus(m.Node, m.Status, m.At))
		must.NoError(s.t, txn.UpsertEvals(evals))
	})
}

// named is the answer that names the evaluations.
func named(evals []*cluster.Evaluation) shims.ChangeApplied {
	var r shims.ChangeApplied
	for _, e := range evals {
		r.Evals = append(r.Evals, e.ID)
	}
	return r
}

// fall are the evaluations that have to be made when n1 changes, in the order of the
// jobs: logs, web, and the web of the other namespace.
func (s *stage) fall() []*cluster.Evaluation {
	logs, ours, theirs := s.eval("logs"), s.eval("web"), s.eval("web")
	logs.Type, theirs.Namespace = cluster.JobSystem, "other"
	for _, e := range []*cluster.Evaluation{logs, ours, theirs} {
		e.TriggeredBy, e.NodeID = cluster.TriggerNodeUpdate, "n1"
	}
	return []*cluster.Evaluation{logs, ours, theirs}
}

func brokenEvals() []broken {
	// fallen has n1 go down with evaluations that are almost as they have to be.
	fallen := func(change func(*stage, []*cluster.Evaluation) []*cluster.Evaluation) func(*testing.T) *stage {
		return func(t *testing.T) *stage {
			s := tenants(t)
			s.down(change(s, s.fall())...)
			return s
		}
	}
	without := func(i int) func(*stage, []*cluster.Evaluation) []*cluster.Evaluation {
		return func(_ *stage, evals []*cluster.Evaluation) []*cluster.Evaluation { return slices.Delete(evals, i, i+1) }
	}
	with := func(change func(*cluster.Evaluation)) func(*stage, []*cluster.Evaluation) []*cluster.Evaluation {
		return func(_ *stage, evals []*cluster.Evaluation) []*cluster.Evaluation {
			change(evals[1])
			return evals
		}
	}
	return []broken{
		{"a node falls and no evaluation is made", invariant.JobForgotten, nil, fallen(func(*stage, []*cluster.Evaluation) []*cluster.Evaluation { return nil })},
		{"a node falls and the system job is forgotten", invariant.JobForgotten, nil, fallen(without(0))},
		{"a node falls and one namespace is forgotten", invariant.JobForgotten, nil, fallen(without(1))},
		{"a node falls and the other namespace is forgotten", invariant.JobForgotten, nil, fallen(without(2))},
		{"an evaluation that the scheduler ignores", invariant.JobForgotten, nil, fallen(with(func(e *cluster.Evaluation) { e.Status = cluster.EvalComplete }))},
		{"an evaluation with another cause", invariant.JobForgotten, nil, fallen(with(func(e *cluster.Evaluation) { e.TriggeredBy = cluster.TriggerNodeDrain }))},
		{"an evaluation of another node", invariant.JobForgotten, nil, fallen(with(func(e *cluster.Evaluation) { e.NodeID = "n2" }))},
		{"an evaluation of another time", invariant.JobForgotten, nil, fallen(with(func(e *cluster.Evaluation) { e.CreateTime = e.CreateTime.Add(time.Second) }))},
		{"an evaluation as of another kind of job", invariant.JobForgotten, nil, fallen(with(func(e *cluster.Evaluation) { e.Type = cluster.JobBatch }))},
		{"an evaluation with another priority", invariant.JobForgotten, nil, fallen(with(func(e *cluster.Evaluation) { e.Priority = 1 }))},
		{"two evaluations of a job", invariant.EvaluatedForNothing, nil, fallen(func(s *stage, evals []*cluster.Evaluation) []*cluster.Evaluation {
			return append(evals, s.fall()[1])
		})},
		{"an evaluation of a job that is elsewhere", invariant.EvaluatedForNothing, nil, func(t *testing.T) *stage {
			s := tenants(t)
			s.job(service("elsewhere", 1, 1))
			s.down(append(s.fall(), s.eval("elsewhere"))...)
			return s
		}},
		{"a system job that cannot run there", invariant.EvaluatedForNothing, nil, func(t *testing.T) *stage {
			s := tenants(t)
			e := s.fall()
			for _, e := range e {
				e.NodeID = "n3"
			}
			m := &shims.NodeUpdateStatus{At: s.now, Node: "n3", Status: cluster.NodeDown}
			s.lie(m, named(e[:2]), func(txn *statestore.Txn) {
				must.NoError(s.t, txn.UpdateNodeStatus(m.Node, m.Status, m.At))
				must.NoError(s.t, txn.UpsertEvals(e[:2]))
			})
			return s
		}},
		{"made of a node that is what it was", invariant.EvaluatedForNothing, nil, func(t *testing.T) *stage {
			s := tenants(t)
			e := s.fall()
			s.lie(&shims.NodeUpdateStatus{At: s.now, Node: "n1", Status: cluster.NodeReady}, named(e), func(txn *statestore.Txn) {
				must.NoError(s.t, txn.UpsertEvals(e))
			})
			return s
		}},
		{"made although the entry carries one", invariant.EvaluatedForNothing, nil, func(t *testing.T) *stage {
			s := tenants(t)
			e := append(s.fall(), s.fall()[1])
			m := &shims.NodeUpdateStatus{At: s.now, Node: "n1", Status: cluster.NodeDown, Evals: e[3:]}
			s.lie(m, named(e), func(txn *statestore.Txn) {
				must.NoError(s.t, txn.UpdateNodeStatus(m.Node, m.Status, m.At))
				must.NoError(s.t, txn.UpsertEvals(e))
			})
			return s
		}},
		{"carried and not made", invariant.JobForgotten, []invariant.Check{invariant.Unanswered}, func(t *testing.T) *stage {
			s := tenants(t)
			s.lie(&shims.EvalUpdate{Evals: s.fall()}, shims.ChangeApplied{}, nothing)
			return s
		}},
		{"a node that is deleted", invariant.JobForgotten, nil, func(t *testing.T) *stage {
			s := tenants(t)
			m := &shims.NodeDeregister{At: s.now, Nodes: []cluster.NodeID{"n3", "n2"}}
			s.lie(m, shims.NodesDeregistered{}, func(txn *statestore.Txn) { txn.DeleteNodes(m.Nodes, m.At) })
			return s
		}},
		{"a node that registers", invariant.JobForgotten, nil, func(t *testing.T) *stage {
			s := tenants(t)
			n := s.state().Node("n1").Copy()
			n.ID = "n4"
			s.lie(&shims.NodeRegister{At: s.now, Node: n}, shims.ChangeApplied{}, func(txn *statestore.Txn) { must.NoError(s.t, txn.UpsertNode(n, s.now)) })
			return s
		}},
		{"a node that becomes eligible", invariant.JobForgotten, nil, func(t *testing.T) *stage {
			s := tenants(t)
			s.apply(&shims.NodeUpdateEligibility{At: s.now, Node: "n2", Eligibility: cluster.NodeIneligible})
			m := &shims.NodeUpdateEligibility{At: s.now, Node: "n2", Eligibility: cluster.NodeEligible}
			s.lie(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { must.NoError(s.t, txn.UpdateNodeEligibility(m.Node, m.Eligibility, m.At)) })
			return s
		}},
		{"a node that returns from its drain", invariant.JobForgotten, nil, func(t *testing.T) *stage {
			s := tenants(t)
			s.drain("n1", 0)
			m := s.request("n1", nil)
			m.MarkEligible = true
			s.lie(m, shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1"}}, func(txn *statestore.Txn) {
				_, err := txn.UpdateNodeDrain(m.DrainUpdate)
				must.NoError(s.t, err)
			})
			return s
		}},
		{"a job that is stopped", invariant.JobForgotten, nil, func(t *testing.T) *stage {
			s := tenants(t)
			m := &shims.JobDeregister{Job: jobKey("web")}
			s.lie(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { must.NoError(s.t, txn.DeleteJob(m.Job, false)) })
			return s
		}},
		{"a job that fails", invariant.JobForgotten, nil, func(t *testing.T) *stage {
			s := tenants(t)
			m := reportOf("a1", "n1")
			m.Reports[0].ClientStatus = cluster.ClientFailed
			s.lie(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { txn.UpdateAllocsFromClient(m.Reports) })
			return s
		}},
		{"the end of what was to end", invariant.EvaluatedForNothing, nil, func(t *testing.T) *stage {
			s := tenants(t)
			s.stop("a1", false)
			e := s.eval("web")
			e.TriggeredBy = cluster.TriggerAllocFailure
			m := reportOf("a1", "n1")
			m.Reports[0].ClientStatus = cluster.ClientFailed
			s.lie(m, named([]*cluster.Evaluation{e}), func(txn *statestore.Txn) {
				txn.UpdateAllocsFromClient(m.Reports)
				must.NoError(s.t, txn.UpsertEvals([]*cluster.Evaluation{e}))
			})
			return s
		}},
		{"an answer without an evaluation", invariant.Unanswered, nil, func(t *testing.T) *stage {
			s := tenants(t)
			m := &shims.EvalUpdate{Evals: s.fall()}
			s.lie(m, named(m.Evals[:2]), func(txn *statestore.Txn) { must.NoError(s.t, txn.UpsertEvals(m.Evals)) })
			return s
		}},
		{"refused and done all the same", invariant.Unanswered, nil, func(t *testing.T) *stage {
			s := tenants(t)
			m := &shims.EvalUpdate{Evals: s.fall()}
			s.lie(m, shims.Refused{Err: statestore.ErrNodeNotFound}, func(txn *statestore.Txn) { must.NoError(s.t, txn.UpsertEvals(m.Evals)) })
			return s
		}},
		{"two evaluations of a job beside its marks", invariant.EvaluatedForNothing, nil, func(t *testing.T) *stage {
			s := tenants(t)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			m.Evals = append(m.Evals, s.eval("web"))
			s.believe(m)
			return s
		}},
		{"a mark with an evaluation of another cause", invariant.NoEvaluation, nil, func(t *testing.T) *stage {
			s := tenants(t)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			m.Evals[0].TriggeredBy = cluster.TriggerNodeUpdate
			s.believe(m)
			return s
		}},
	}
}

func fineEvals() []fine {
	return []fine{
		{"a node falls and all are looked at", func(t *testing.T) *stage {
			s := tenants(t)
			s.down(s.fall()...)
			return s
		}},
		{"a node falls again before it has risen", func(t *testing.T) *stage {
			s := tenants(t)
			s.status("n1", cluster.NodeDown)
			s.status("n1", cluster.NodeDown)
			s.status("n1", cluster.NodeReady)
			return s
		}},
		{"a node with nothing that still runs", func(t *testing.T) *stage {
			s := tenants(t)
			s.failed("a3")
			s.status("n3", cluster.NodeDown)
			return s
		}},
		{"two nodes with one job are deleted", func(t *testing.T) *stage {
			s := tenants(t)
			s.apply(&shims.NodeDeregister{At: s.now, Nodes: []cluster.NodeID{"n1", "n2", "none", "n1"}})
			s.apply(&shims.NodeDeregister{At: s.now, Nodes: []cluster.NodeID{"n1"}}) // its allocations are there still
			return s
		}},
		{"a job is stopped twice and purged", func(t *testing.T) *stage {
			s := tenants(t)
			s.apply(&shims.JobDeregister{Job: jobKey("web")})
			s.apply(&shims.JobDeregister{Job: jobKey("web")})
			s.apply(&shims.JobDeregister{Job: jobKey("web"), Purge: true})
			s.apply(&shims.JobDeregister{Job: jobKey("web")})
			return s
		}},
		{"batch work that is done, and that it failed is said too late", func(t *testing.T) *stage {
			s := tenants(t)
			s.job(newJob(cluster.JobBatch, "once", 1))
			s.place("c1", "once", "n2")
			m := reportOf("c1", "n2")
			m.Reports = append(m.Reports, m.Reports[0])
			m.Reports[0].ClientStatus, m.Reports[1].ClientStatus = cluster.ClientComplete, cluster.ClientFailed
			s.apply(m)
			return s
		}},
		{"an evaluation that an entry carries and nothing calls for", func(t *testing.T) *stage {
			s := tenants(t)
			s.apply(&shims.NodeUpdateStatus{At: s.now, Node: "n3", Status: cluster.NodeDown, Evals: []*cluster.Evaluation{s.eval("logs")}})
			return s
		}},
		{"a complete evaluation that an entry carries", func(t *testing.T) *stage {
			s := tenants(t)
			e := s.fall()
			e[1].Status = cluster.EvalComplete
			s.apply(&shims.NodeUpdateStatus{At: s.now, Node: "n1", Status: cluster.NodeDown, Evals: e})
			return s
		}},
	}
}

// The judge counts the evaluations that the FSM makes, with and without evaluations in the
// entries, and there are some to count.
func TestJudge_agreesOnWhoIsToBeLookedAt(t *testing.T) {
	t.Parallel()
	called, made := 0, 0
	for seed := range uint64(60) {
		c := newChance(t, seed)
		for range 30 {
			c.act()
			c.changeNode()
		}
		c.j.End(c.now, c.state())
		must.SliceEmpty(t, c.j.Violations(), must.Sprintf("seed %d: %v", seed, c.j.Violations()))
		called, made = called+c.j.Counters().Called, made+c.j.Counters().Evaluated
	}
	t.Logf("%d evaluations called for, %d made that none carried", called, made)
	must.Greater(t, 1000, made)
	must.Greater(t, made+500, called)
}

// changeNode changes a node, in an entry that carries some of the evaluations which
// that calls for, and perhaps others.
func (c *chance) changeNode() {
	id := c.someNode()
	evals := scheduler.NodeEvals(c.state(), id, cluster.TriggerNodeUpdate, c.now, func() cluster.EvalID { return c.eval("").ID })
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
		j.NodePool, j.Priority = pick(c.rng, "", "default", "gpu"), pick(c.rng, 0, 50, 80)
		j.Datacenters = pick(c.rng, nil, []string{"east", "west"})
		c.job(j)
	}
}
