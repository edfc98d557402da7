package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// figureClaims: a cluster with many claims of volumes. Each allocation has a volume of its own, which a
// controller must attach.
func figureClaims(b *testing.B) {
	nodes := 100
	if measure.SizeOf(b) == measure.Full {
		nodes = 500
	}
	claims := nodes * claimsOfNode
	b.Run("wake-ups", func(b *testing.B) { countClaimWakes(b, nodes) })
	b.Run("place", func(b *testing.B) { comparePlaces(b, nodes) })
	t := claimCluster(b, nodes, claimsOfNode)
	b.Run("due", func(b *testing.B) {
		var times []time.Duration
		for range measure.PairsOf(b) {
			var calls []*volumes.Call
			times = append(times, measure.Measure(func(*measure.Meter) { calls, _ = volumes.Due(t.fsm.Store().Snapshot().WorkView()) }).CPU)
			must.SliceLen(b, claims, calls)
		}
		reportTimes(b, "cpu", times, 50*time.Millisecond)
		measure.Count(b, claims, "claims")
	})
	b.Run("list", func(b *testing.B) {
		var times []time.Duration
		for range measure.PairsOf(b) {
			times = append(times, t.listVolumes(b, claims))
		}
		reportTimes(b, "cpu", times, 200*time.Millisecond)
		measure.Count(b, claims, "claims")
	})
}

const claimJobSize, claimsOfNode = 100, 20

func claimPlan(nodes, perNode int) clusterPlan {
	return clusterPlan{nodes: nodes, perNode: perNode, jobSize: claimJobSize, layout: packed, job: cluster.JobService, maxParallel: 1, volumes: true}
}

func claimCluster(b *testing.B, nodes, perNode int) *testCluster {
	t := newCluster(b, claimPlan(nodes, perNode))
	must.Len(b, nodes*perNode, slices.Collect(t.fsm.Store().Snapshot().WorkView().Claims()))
	return t
}

// countClaimWakes counts the drainer's wake-ups while claims on other nodes change.
func countClaimWakes(b *testing.B, nodes int) {
	t := claimCluster(b, nodes, claimsOfNode)
	const draining = 2
	t.drain(draining, cluster.DrainSpec{})
	state := &rowCounter{StateReader: t.fsm.Store().Reader()}
	l := leadFrom(t, state)
	l.runUntilIdle(epoch)
	var others []*cluster.VolumeClaim
	for c := range t.fsm.Store().Snapshot().WorkView().Claims() {
		if !slices.Contains(t.nodes[:claimJobSize/claimsOfNode], c.Node) { // the first job is on the nodes that drain
			others = append(others, c)
		}
	}
	must.GreaterEq(b, unconcernedWrites, len(others))
	countUnconcerned(b, l, state, func(txn *statestore.Txn, i int) {
		c := others[i]
		must.SliceEmpty(b, txn.UpdateClaims(&cluster.ClaimUpdate{At: epoch, Changes: []cluster.ClaimChange{{
			Claim: c.Key(), Node: c.Node, Cause: cluster.CauseAttached, PublishContext: map[string]string{"device": "sdb"},
		}}}))
	})
	l.term.Close()
}

// comparePlaces compares entries that place allocations with volumes in a cluster with many claims, to the
// same in a cluster with as many nodes, and one claim on each.
func comparePlaces(b *testing.B, nodes int) {
	const entries = 500
	side := func(perNode int) measure.Side {
		return func() func(*measure.Meter) {
			t, p, next := claimCluster(b, nodes, perNode), claimPlan(nodes, perNode), nodes*perNode/claimJobSize
			var plans []*shims.ApplyPlan
			for range entries / claimJobSize {
				job := p.newJob(next)
				t.edit(func(txn *statestore.Txn) {
					for _, v := range p.volumesOf(job) {
						must.NoError(b, txn.UpsertVolume(v, epoch))
					}
					must.NoError(b, txn.UpsertJob(job))
				})
				job = t.fsm.Store().Snapshot().Job(job.Key())
				for k := range claimJobSize {
					a := p.newAlloc(job, next, k)
					a.NodeID = t.nodes[k%len(t.nodes)]
					eval := &cluster.Evaluation{ID: cluster.EvalID(a.ID), Namespace: job.Namespace, JobID: job.ID, Type: job.Type, Status: cluster.EvalPending}
					t.edit(func(txn *statestore.Txn) { must.NoError(b, txn.UpsertEvals([]*cluster.Evaluation{eval})) })
					plans = append(plans, &shims.ApplyPlan{Plan: cluster.Plan{At: epoch, Eval: eval, SnapshotIndex: t.index, Places: []*cluster.Allocation{a}}})
				}
				next++
			}
			return func(*measure.Meter) {
				for _, m := range plans {
					refused := t.apply(m).(shims.PlanApplied).Refused
					must.SliceEmpty(b, refused, must.Sprintf("%+v", refused))
				}
			}
		}
	}
	measure.Figure(b, side(1), side(claimsOfNode)).Report(b)
	measure.Count(b, nodes*claimsOfNode, "claims")
}

// listVolumes answers GET /v1/volumes, and returns the processor time.
func (t *testCluster) listVolumes(b *testing.B, want int) time.Duration {
	h, err := httpapi.NewHandler(httpapi.Backend{
		Reader: newestState{t.fsm.Store()}, Writer: struct{ httpapi.Writer }{}, Peers: leading{}, Drains: struct{ httpapi.Explainer }{},
	}, httpapi.Options{})
	must.NoError(b, err)
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "http://localhost/v1/volumes", nil)
	took := measure.Measure(func(*measure.Meter) { h.ServeHTTP(answer, request) }).CPU
	must.EqOp(b, http.StatusOK, answer.Code, must.Sprint(answer.Body))
	must.Greater(b, 100*want, answer.Body.Len())
	return took
}

// leading is the only server.
type leading struct{ httpapi.Peers }

func (leading) Leads() bool                { return true }
func (leading) Leader() string             { return "" }
func (leading) LastContact() time.Duration { return 0 }

// newestState reads a store that does not change.
type newestState struct{ store *statestore.Store }

func (s newestState) Read(_ context.Context, _ uint64, query func(httpapi.State) (uint64, error)) error {
	_, err := query(s.store.Snapshot())
	return err
}

func (newestState) CaughtUp(context.Context) error   { return nil }
func (newestState) Consistent(context.Context) error { return nil }
