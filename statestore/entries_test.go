package statestore_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// The worlds are small, so that entries touch the same rows.
var (
	someNodes  = rapid.SampledFrom([]cluster.NodeID{"n1", "n2", "n3", "n4"})
	someJobs   = rapid.SampledFrom([]cluster.JobID{"web", "etl", "sys", "disk"})
	someAllocs = rapid.Map(rapid.IntRange(0, 19), func(i int) cluster.AllocID { return cluster.AllocID(fmt.Sprint("a", i)) })
	someEvals  = rapid.Map(rapid.IntRange(0, 5), func(i int) cluster.EvalID { return cluster.EvalID(fmt.Sprint("e", i)) })
	someDrains = rapid.Map(rapid.IntRange(0, 30), func(i int) cluster.DrainID { return cluster.DrainID(fmt.Sprint("d", i)) })
	someKeys   = rapid.SampledFrom([]string{"", "", "k1", "k2"})
)

// begin makes a world in which most entries have an effect.
func begin(x *statestore.Txn, at time.Time) (string, any) {
	p := &cluster.Plan{At: at}
	var errs []error
	for i, id := range []cluster.JobID{"web", "etl", "sys", "disk"} {
		n := cluster.NodeID(fmt.Sprint("n", i+1))
		errs = append(errs, x.UpsertNode(&cluster.Node{ID: n, Status: cluster.NodeReady}, at), x.UpsertJob(someJob(id, 3)))
		for k := range 3 {
			a := place(someJob(id, 3), fmt.Sprint("a", 4*i+k), n)
			a.ClientStatus = cluster.ClientRunning
			p.Places = append(p.Places, a)
		}
	}
	dropped, err := x.ApplyPlan(p)
	return fmt.Sprint(errs, dropped, err), p
}

func someJob(id cluster.JobID, count int) *cluster.Job {
	types := map[cluster.JobID]cluster.JobType{"web": cluster.JobService, "etl": cluster.JobBatch, "sys": cluster.JobSystem, "disk": cluster.JobService}
	j := job(string(id), types[id], count)
	j.TaskGroups[0].Tasks[0].StoragePlugin = id == "disk"
	return j
}

func entries() *rapid.Generator[entry] {
	return rapid.OneOf(
		rapid.Custom(registerEntry), rapid.Custom(statusEntry), rapid.Custom(drainEntry), rapid.Custom(drainEntry),
		rapid.Custom(completeEntry), rapid.Custom(deleteEntry), rapid.Custom(jobEntry), rapid.Custom(planEntry),
		rapid.Custom(planEntry), rapid.Custom(markEntry), rapid.Custom(reportEntry), rapid.Custom(evalEntry), rapid.Custom(collectEntry),
	)
}

func registerEntry(t *rapid.T) entry {
	n := cluster.Node{
		ID: someNodes.Draw(t, "node"), Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"),
		Status:    rapid.SampledFrom([]cluster.NodeStatus{"", cluster.NodeReady, cluster.NodeDown, "odd"}).Draw(t, "status"),
		Resources: cluster.Resources{CPU: int64(rapid.IntRange(0, 3).Draw(t, "cpu"))},
	}
	return entry{"register " + string(n.ID), func(x *statestore.Txn, at time.Time) (string, any) {
		node := n.Copy()
		node.Meta = map[string]string{"k": "v"}
		err := x.UpsertNode(node, at)
		return fmt.Sprint(err), node
	}}
}

func statusEntry(t *rapid.T) entry {
	n := someNodes.Draw(t, "node")
	if rapid.Bool().Draw(t, "eligibility") {
		e := rapid.SampledFrom([]cluster.Eligibility{cluster.NodeEligible, cluster.NodeIneligible, "odd"}).Draw(t, "to")
		return entry{fmt.Sprint("make ", n, " ", e), func(x *statestore.Txn, at time.Time) (string, any) {
			return fmt.Sprint(x.UpdateNodeEligibility(n, e, at)), new(int)
		}}
	}
	s := rapid.SampledFrom([]cluster.NodeStatus{cluster.NodeReady, cluster.NodeDown, cluster.NodeDisconnected, "odd"}).Draw(t, "to")
	return entry{fmt.Sprint("status of ", n, " ", s), func(x *statestore.Txn, at time.Time) (string, any) {
		return fmt.Sprint(x.UpdateNodeStatus(n, s, at)), new(int)
	}}
}

func drainEntry(t *rapid.T) entry {
	u := cluster.DrainUpdate{
		Node: someNodes.Draw(t, "node"), Drain: someDrains.Draw(t, "drain"), Key: someKeys.Draw(t, "key"),
		MarkEligible: rapid.Bool().Draw(t, "eligible"), UpdatedBy: rapid.SampledFrom([]string{"", "ann"}).Draw(t, "by"),
	}
	if rapid.IntRange(0, 2).Draw(t, "start") > 0 {
		u.Spec = &cluster.DrainSpec{
			Deadline:         rapid.SampledFrom([]time.Duration{0, -1, time.Hour, 1<<63 - 1}).Draw(t, "deadline"),
			IgnoreSystemJobs: rapid.Bool().Draw(t, "ignore"),
		}
	}
	return entry{fmt.Sprintf("drain %s %+v", u.Node, u.Spec), func(x *statestore.Txn, at time.Time) (string, any) {
		update := u
		update.At, update.Meta = at, map[string]string{"k": "v"}
		done, err := x.UpdateNodeDrain(update)
		return fmt.Sprint(done, err), &update.Meta
	}}
}

func completeEntry(t *rapid.T) entry {
	nodes := rapid.SliceOfN(someNodes, 1, 3).Draw(t, "nodes")
	outcome := rapid.SampledFrom([]cluster.Outcome{cluster.OutcomeComplete, cluster.OutcomeForced}).Draw(t, "outcome")
	return entry{fmt.Sprint("complete ", nodes), func(x *statestore.Txn, at time.Time) (string, any) {
		var endings []rules.Ending
		for _, id := range nodes {
			e := rules.Ending{Completion: rules.Completion{Node: id, Drain: "d0"}, Outcome: outcome, StillStopping: 1}
			if n := x.State().Node(id); n.Draining() {
				e.Drain = n.Drain.ID
			}
			endings = append(endings, e)
		}
		x.CompleteDrains(at, endings)
		return "", &endings
	}}
}

func deleteEntry(t *rapid.T) entry {
	nodes := rapid.SliceOfN(someNodes, 1, 2).Draw(t, "nodes")
	return entry{fmt.Sprint("delete ", nodes), func(x *statestore.Txn, at time.Time) (string, any) {
		return fmt.Sprint(x.DeleteNodes(nodes, at)), new(int)
	}}
}

func jobEntry(t *rapid.T) entry {
	id := someJobs.Draw(t, "job")
	j := someJob(id, rapid.IntRange(0, 3).Draw(t, "count"))
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		return entry{"stop " + string(id), func(x *statestore.Txn, _ time.Time) (string, any) {
			return fmt.Sprint(x.DeleteJob(j.Key(), false)), new(int)
		}}
	case 1:
		return entry{"purge " + string(id), func(x *statestore.Txn, _ time.Time) (string, any) {
			return fmt.Sprint(x.DeleteJob(j.Key(), true)), new(int)
		}}
	}
	return entry{"register " + string(id), func(x *statestore.Txn, _ time.Time) (string, any) {
		job := j.Copy()
		err := x.UpsertJob(job)
		return fmt.Sprint(err), job
	}}
}

func planEntry(t *rapid.T) entry {
	job := cluster.JobKey{Namespace: "default", ID: someJobs.Draw(t, "job")}
	stops := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cluster.PlanStop {
		return cluster.PlanStop{
			Alloc: someAllocs.Draw(t, "stop"), Description: "stopped",
			Lost: rapid.IntRange(0, 4).Draw(t, "lost") == 0, Unknown: rapid.IntRange(0, 4).Draw(t, "unknown") == 0,
		}
	}), 0, 3).Draw(t, "stops")
	places := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cluster.Allocation {
		a := cluster.Allocation{
			ID: someAllocs.Draw(t, "place"), Namespace: job.Namespace, JobID: job.ID, NodeID: someNodes.Draw(t, "on"),
			TaskGroup: rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group"), PreviousAllocation: someAllocs.Draw(t, "previous"),
			Resources: cluster.Resources{CPU: int64(rapid.IntRange(0, 3).Draw(t, "cpu"))},
		}
		if rapid.Bool().Draw(t, "canary") {
			a.DeploymentStatus = &cluster.DeploymentStatus{Canary: true}
		}
		return a
	}), 0, 4).Draw(t, "places")
	oldVersion, blocked := rapid.Bool().Draw(t, "old version"), rapid.Bool().Draw(t, "blocked")
	eval := someEvals.Draw(t, "eval")
	return entry{fmt.Sprint("plan of ", job), func(x *statestore.Txn, at time.Time) (string, any) {
		p := &cluster.Plan{At: at, Stops: slices.Clone(stops)}
		p.Eval = &cluster.Evaluation{ID: eval, Namespace: job.Namespace, JobID: job.ID, Status: cluster.EvalComplete, ModifyTime: at}
		if blocked {
			p.Blocked = &cluster.Evaluation{ID: eval + "b", Namespace: job.Namespace, JobID: job.ID, Status: cluster.EvalBlocked, Queued: map[string]int{"g": 1}}
		}
		for _, a := range places {
			c := a.Copy()
			if oldVersion {
				c.Job = x.State().Job(job).Copy()
				if old := x.State().Alloc(a.PreviousAllocation); old != nil {
					c.Job = old.Job.Copy()
				} else if c.Job != nil {
					c.Job.Version += 50 // a version that no other row has
				}
			}
			p.Places = append(p.Places, c)
		}
		dropped, err := x.ApplyPlan(p)
		return fmt.Sprint(dropped, err), p
	}}
}

func markEntry(t *rapid.T) entry {
	ids := rapid.SliceOfN(someAllocs, 1, 4).Draw(t, "allocations")
	class := cluster.MarkClass(rapid.IntRange(0, int(cluster.MarkClassCount)).Draw(t, "class"))
	eval := someEvals.Draw(t, "eval")
	return entry{fmt.Sprint("mark ", ids), func(x *statestore.Txn, at time.Time) (string, any) {
		var marks []rules.Mark
		var evals []*cluster.Evaluation
		for _, id := range ids {
			m := rules.Mark{Alloc: id, Class: class, Drain: "d0"}
			if a := x.State().Alloc(id); a != nil && x.State().Node(a.NodeID).Draining() {
				m.Drain = x.State().Node(a.NodeID).Drain.ID
				evals = append(evals, &cluster.Evaluation{ID: eval, Namespace: a.Namespace, JobID: a.JobID, Status: cluster.EvalPending})
			}
			marks = append(marks, m)
		}
		err := x.ApplyMarks(at, marks, evals)
		return fmt.Sprint(err), &evals
	}}
}

func reportEntry(t *rapid.T) entry {
	ids := rapid.SliceOfN(someAllocs, 1, 4).Draw(t, "allocations")
	status := rapid.SampledFrom([]cluster.ClientStatus{
		cluster.ClientPending, cluster.ClientRunning, cluster.ClientComplete, cluster.ClientFailed, cluster.ClientLost, "",
	}).Draw(t, "status")
	var healthy *bool
	if rapid.Bool().Draw(t, "verdict") {
		healthy = pointer(rapid.Bool().Draw(t, "healthy"))
	}
	return entry{fmt.Sprint("report ", status, " of ", ids), func(x *statestore.Txn, at time.Time) (string, any) {
		var reports []cluster.AllocReport
		for _, id := range ids {
			r := cluster.AllocReport{Alloc: id, ClientStatus: status, HealthyAt: at, At: at}
			if healthy != nil {
				r.Healthy = pointer(*healthy)
			}
			if a := x.State().Alloc(id); a != nil {
				r.Node = a.NodeID
			}
			reports = append(reports, r)
		}
		x.UpdateAllocsFromClient(reports, at)
		return "", &reports
	}}
}

func evalEntry(t *rapid.T) entry {
	e := cluster.Evaluation{
		ID: someEvals.Draw(t, "eval"), Namespace: "default", JobID: someJobs.Draw(t, "job"), Priority: rapid.IntRange(-1, 2).Draw(t, "priority"),
		Status: rapid.SampledFrom([]cluster.EvalStatus{cluster.EvalPending, cluster.EvalBlocked, cluster.EvalComplete}).Draw(t, "status"),
	}
	return entry{fmt.Sprint("evaluation ", e.ID, " ", e.Status), func(x *statestore.Txn, at time.Time) (string, any) {
		eval := e.Copy()
		eval.CreateTime, eval.Queued = at, map[string]int{"g": 1}
		err := x.UpsertEvals([]*cluster.Evaluation{eval})
		return fmt.Sprint(err), eval
	}}
}

// collectEntry deletes ended rows, but no allocation that a running drain may have marked.
func collectEntry(t *rapid.T) entry {
	type rows struct {
		Allocs []cluster.AllocID
		Evals  []cluster.EvalID
	}
	old := &rows{rapid.SliceOfN(someAllocs, 0, 6).Draw(t, "allocations"), rapid.SliceOfN(someEvals, 0, 3).Draw(t, "evaluations")}
	return entry{fmt.Sprint("collect ", old), func(x *statestore.Txn, _ time.Time) (string, any) {
		copied := &rows{slices.Clone(old.Allocs), slices.Clone(old.Evals)}
		copied.Allocs = slices.DeleteFunc(copied.Allocs, func(id cluster.AllocID) bool {
			a := x.State().Alloc(id)
			return a != nil && x.State().Node(a.NodeID).Draining()
		})
		x.DeleteAllocs(copied.Allocs)
		x.DeleteEvals(copied.Evals)
		return "", copied
	}}
}
