//race:skip one goroutine
package applied_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// log is a replica that checks that each entry names the rows it changed.
type log struct {
	*clustertest.Replica
	types   map[shims.MessageType]bool
	entries []witness.Entry
}

func newLog(t *testing.T) *log {
	l := &log{types: make(map[shims.MessageType]bool)}
	l.Replica = clustertest.NewReplica(t, shims.FSMConfig{OnApply: func(a shims.Applied) {
		e := applied.Entry(a)
		must.Eq(t, a.Index, e.Index)
		l.types[a.Type] = true
		l.entries = append(l.entries, e)
		for _, name := range changed(a.Before, a.After) {
			must.SliceContains(t, names(e), name, must.Sprintf("%s does not name %s", a.Type, name))
		}
	}})
	l.Now = func() time.Time { return epoch }
	return l
}

// names returns the rows an entry names, including the predecessors of replacements.
func names(e witness.Entry) (names []string) {
	for _, id := range e.Touched.Nodes {
		names = append(names, fmt.Sprint("node ", id))
	}
	for _, key := range e.Touched.Jobs {
		names = append(names, fmt.Sprint("job ", key))
	}
	for _, id := range e.Touched.Allocs {
		names = append(names, fmt.Sprint("alloc ", id))
		if a := e.After.Alloc(id); a != nil {
			names = append(names, fmt.Sprint("alloc ", a.PreviousAllocation))
		}
	}
	return names
}

// changed returns the rows that differ between two states in fields that the witness reads.
func changed(before, after *statestore.Snapshot) (names []string) {
	rows := func(s *statestore.Snapshot) map[string]string {
		rows := make(map[string]string)
		for n := range s.Nodes() {
			var drain cluster.DrainID
			if n.Drain != nil {
				drain = n.Drain.ID
			}
			rows[fmt.Sprint("node ", n.ID)] = fmt.Sprint(n.Status, drain)
		}
		for j := range s.Jobs() {
			rows[fmt.Sprint("job ", j.Key())] = fmt.Sprint(j.ModifyIndex)
		}
		for a := range s.Allocs() {
			rows[fmt.Sprint("alloc ", a.ID)] = fmt.Sprint(a.ModifyIndex)
		}
		return rows
	}
	was, is := rows(before), rows(after)
	for name, row := range was {
		if is[name] != row {
			names = append(names, name)
		}
	}
	for name := range is {
		if _, old := was[name]; !old {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// detached places an allocation that claims the volume, and detaches the volume by force.
func (l *log) detached(t *testing.T, disk cluster.VolumeKey) {
	t.Helper()
	one := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
	l.Must(&shims.NodeRegister{At: epoch, Node: &cluster.Node{ID: "n4", Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 1000, MemoryMB: 1000}, StoragePlugins: []*cluster.StoragePlugin{
		{ID: "ebs", Type: cluster.PluginNode, Healthy: true, NodeID: "4"},
	}}})
	job := clustertest.Job("db", cluster.JobService, 1)
	job.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: disk.ID, Capability: one}}
	l.Must(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{l.Eval(job)}})
	job = l.State().Job(job.Key())
	must.SliceEmpty(t, l.Plan(job, nil, clustertest.Alloc(job, "d1", "n4", epoch)).Refused)
	l.Must(&shims.VolumeDetach{At: epoch, Volume: disk, Node: "n4", Force: true})
	must.True(t, l.State().Alloc("d1").Marked())
}

// confirmed ends two drains with unconfirmed allocations. Time confirms one of them, and an
// operator the other.
func (l *log) confirmed(t *testing.T) {
	t.Helper()
	l.Nodes("n5", "n6")
	job := clustertest.Job("away", cluster.JobService, 2)
	job.TaskGroups[0].Disconnect.StopOnClientAfter = time.Minute
	l.Must(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{l.Eval(job)}})
	job = l.State().Job(job.Key())
	must.SliceEmpty(t, l.Plan(job, nil, clustertest.Alloc(job, "w1", "n5", epoch), clustertest.Alloc(job, "w2", "n6", epoch)).Refused)
	for _, id := range []cluster.NodeID{"n5", "n6"} {
		l.Must(&shims.NodeUpdateStatus{At: epoch, Node: id, Status: cluster.NodeDown})
	}
	answered := l.Eval(job)
	l.Must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{answered.Copy()}})
	answered.Status = cluster.EvalComplete
	stops := []cluster.PlanStop{{Alloc: "w1", Lost: true}, {Alloc: "w2", Lost: true}}
	l.Must(&shims.ApplyPlan{Plan: cluster.Plan{At: epoch, Eval: answered, SnapshotIndex: l.Index, Stops: stops}})
	for _, id := range []cluster.NodeID{"n5", "n6"} {
		l.Drain(id, &cluster.DrainSpec{})
		must.SliceLen(t, 1, l.Complete(id).Ended)
	}
	l.Must(&shims.ConfirmStops{At: epoch.Add(time.Hour), Nodes: []cluster.NodeID{"n5"}})
	must.False(t, l.State().Alloc("w1").Unconfirmed())
	for d := range l.State().DrainsByNode("n6") {
		l.Must(&shims.ConfirmDrain{At: epoch, Drain: d.ID, By: "ada"})
	}
	must.False(t, l.State().Alloc("w2").Unconfirmed())
}

// Every type of message names all rows it changes.
func TestEntry_namesWhatChanged(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.Nodes("n1", "n2", "n3")
	job := clustertest.Job("web", cluster.JobService, 2)
	l.Must(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{l.Eval(job)}})
	l.Must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{l.Eval(job)}})
	job = l.State().Job(job.Key())
	alloc := func(id, previous cluster.AllocID, on cluster.NodeID, name string) *cluster.Allocation {
		a := clustertest.Alloc(job, id, on, epoch)
		a.PreviousAllocation, a.Name = previous, name
		return a
	}
	must.SliceEmpty(t, l.Plan(job, nil, alloc("a1", "", "n1", "web.web[0]"), alloc("a2", "", "n2", "web.web[1]")).Refused)
	l.Report(cluster.ClientRunning, "a1", "a2")
	mark := func() { must.SliceLen(t, 1, l.Mark(cluster.MarkPaced, "a1").Accepted) }
	l.Drain("n1", &cluster.DrainSpec{})
	mark()
	l.Drain("n1", nil) // withdraws the mark
	must.False(t, l.State().Alloc("a1").Marked())
	l.Must(&shims.NodeUpdateEligibility{At: epoch, Node: "n1", Eligibility: cluster.NodeEligible})
	l.Drain("n1", &cluster.DrainSpec{})
	mark()
	for _, node := range []cluster.NodeID{"n1", ""} {
		l.Must(&shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{Node: node, Pause: true, At: epoch}})
	}
	for _, node := range []cluster.NodeID{"", "n1"} {
		l.Must(&shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{Node: node, At: epoch}})
	}
	must.SliceEmpty(t, l.Plan(job, []cluster.AllocID{"a1"}, alloc("b1", "a1", "n3", "web.web[0]")).Refused)
	l.Report(cluster.ClientComplete, "a1")
	must.SliceLen(t, 1, l.Complete("n1").Ended)
	l.Must(&shims.AllocStop{At: epoch, Alloc: "b1"})
	must.True(t, l.State().Alloc("b1").Marked())
	l.Must(&shims.Collect{Request: collect.Request{
		Before: collect.Before{Allocs: epoch.Add(time.Hour)}, Rows: collect.Rows{Allocs: []cluster.AllocID{"a1", "a2"}},
	}})
	must.Nil(t, l.State().Alloc("a1"))
	l.Must(&shims.NodeUpdateEligibility{At: epoch, Node: "n1", Eligibility: cluster.NodeEligible})
	l.Must(&shims.NodeUpdateStatus{At: epoch, Node: "n2", Status: cluster.NodeDown})
	l.Must(&shims.NodeDeregister{At: epoch, Nodes: []cluster.NodeID{"n3"}})
	l.Must(&shims.JobDeregister{Job: job.Key(), Purge: true})
	l.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	disk := cluster.VolumeKey{Namespace: "default", ID: "disk"}
	l.Must(&shims.VolumeRegister{At: epoch, Volume: &cluster.Volume{Namespace: disk.Namespace, ID: disk.ID, Plugin: "ebs", ExternalID: "vol-1",
		Capabilities: []cluster.VolumeCapability{{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}}}})
	l.detached(t, disk)
	l.confirmed(t)
	l.Must(&shims.NodeAppendEvent{Node: "n1", Event: cluster.NodeEvent{Message: "a message", Timestamp: epoch}})
	l.Must(&shims.ClaimUpdate{})
	l.Must(&shims.VolumeDeregister{Volume: disk})

	for i := range 256 {
		kind := shims.MessageType(i)
		named := kind.String() != fmt.Sprintf("message type %d", i)
		must.Eq(t, named, l.types[kind], must.Sprintf("%s has no entry in this test", kind))
	}

	w := witness.New(witness.Options{})
	for _, e := range l.entries {
		w.Observe(e)
	}
	must.SliceEmpty(t, w.Audit(l.State()))
	found := w.Report()
	must.SliceEmpty(t, found.Findings)
	must.SliceLen(t, 4, found.Drains)
	must.Eq(t, cluster.OutcomeCancelled, found.Drains[0].Outcome)
	must.Eq(t, 1, found.Drains[0].Withdrawn)
	must.Eq(t, cluster.OutcomeComplete, found.Drains[1].Outcome)
	must.Eq(t, 1, found.Drains[1].Moved)
	for _, d := range found.Drains[2:] {
		must.Eq(t, cluster.OutcomeUnconfirmed, d.Outcome)
		must.EqOp(t, 0, d.Unconfirmed)
	}
}

// A client that has lost its records reports no move, and the end of the move of its row ends that of an earlier
// allocation. Bug: the entry did not name the earlier one.
func TestEntry_moveThatEndedBefore(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	l.Nodes("n1", "n2", "n3")
	j := clustertest.Job("db", cluster.JobService, 3)
	j.TaskGroups[0].EphemeralDisk.Migrate = true
	j = l.Job(j)
	previous := cluster.AllocID("")
	for i, id := range []cluster.AllocID{"a1", "a2", "a3"} {
		a := clustertest.Alloc(j, id, cluster.NodeID(fmt.Sprint("n", i+1)), epoch)
		a.PreviousAllocation = previous
		l.Plan(j, nil, a)
		previous = id
	}
	report := func(id cluster.AllocID, s cluster.ClientStatus, in, out *cluster.DataMove) {
		r := clustertest.Report(l.State().Alloc(id), s, epoch)
		r.DataIn, r.DataOut = in, out
		l.Must(&shims.AllocClientUpdate{At: epoch, Reports: []cluster.AllocReport{r}})
	}
	report("a2", cluster.ClientFailed, nil, nil)
	report("a3", cluster.ClientPending, &cluster.DataMove{State: cluster.DataGivenUp, Peer: "a1"}, nil)
	report("a1", cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataKept})
	must.True(t, l.State().Alloc("a1").DataOut.Kept())
	report("a3", cluster.ClientRunning, nil, nil)
	must.EqOp(t, cluster.DataGivenUp, l.State().Alloc("a1").DataOut.StateOf())
}
