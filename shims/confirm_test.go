package shims_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// The end of a drain with lost allocations. Below its version every server writes the record of an
// older server, so that a mixed cluster has one state.
func TestFSM_UnconfirmedDrain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version cluster.Version
		want    cluster.Outcome
	}{
		{cluster.VersionOfConfirmation - 1, cluster.OutcomeComplete},
		{cluster.VersionOfConfirmation, cluster.OutcomeUnconfirmed},
	} {
		version, want := test.version, test.want
		h := twoOnOneNode(t)
		h.apply(
			&shims.RaiseClusterVersion{Version: version},
			&shims.NodeUpdateStatus{At: noon, Node: "n1", Status: cluster.NodeDown},
			&shims.EvalUpdate{Evals: []*cluster.Evaluation{jobEval("e2")}},
		)
		lost := h.apply(&shims.ApplyPlan{Plan: cluster.Plan{At: noon, Eval: jobEval("e2"), SnapshotIndex: h.state().Index(), Stops: []cluster.PlanStop{
			{Alloc: "a0", Lost: true, Description: cluster.DescLost}, {Alloc: "a1", Lost: true, Description: cluster.DescLost},
		}}}).(shims.PlanApplied)
		must.SliceEmpty(t, lost.Refused)
		h.apply(
			&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}, At: noon}},
		)
		revision := h.state().Node("n1").Drain.Revision
		must.Eq(t, cluster.ClientLost, h.state().Alloc("a0").ClientStatus, must.Sprint(version))
		ended := h.apply(&shims.NodesDrainComplete{Completions: rules.Completions{At: noon, Completions: []rules.Completion{
			{Node: "n1", Drain: "d1", Revision: revision},
		}}}).(shims.CompletionsApplied).Ended
		must.SliceLen(t, 1, ended)
		record := h.state().DrainRecord("d1")
		must.Eq(t, want, record.Outcome, must.Sprint(version))
		must.Eq(t, want, ended[0].Outcome, must.Sprint(version))
		must.Eq(t, ended[0].Unconfirmed, record.Unconfirmed, must.Sprint(version))
		must.Eq(t, want == cluster.OutcomeUnconfirmed, record.CountUnconfirmed() == 2, must.Sprint(version))
	}
}

// The record of a drain counts the data that was not copied from the version of moves on.
func TestFSM_DataNotCopied(t *testing.T) {
	t.Parallel()
	for version, want := range map[cluster.Version]*cluster.DataNotCopied{
		cluster.VersionOfData - 1: nil,
		cluster.VersionOfData:     {Count: 1, Allocs: []cluster.AllocID{"a0"}},
	} {
		h := twoOnOneNode(t)
		j := h.state().Job(cluster.JobKey{Namespace: "default", ID: "web"}).Copy()
		j.TaskGroups[0].EphemeralDisk.Migrate = true
		h.apply(
			&shims.RaiseClusterVersion{Version: version},
			&shims.JobRegister{Job: j},
			&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{Deadline: -1}, At: noon}},
		)
		revision := h.state().Node("n1").Drain.Revision
		h.apply(&shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: noon, Evals: []*cluster.Evaluation{jobEval("e2")}, Marks: []rules.Mark{{
			Alloc: "a0", Group: h.state().Alloc("a0").GroupKey(), Node: "n1", Drain: "d1", Revision: revision, Class: cluster.MarkForced,
		}}}})
		must.True(t, h.state().Alloc("a0").Marked())
		kept, gone := cluster.AllocReport{Alloc: "a0", Node: "n1", ClientStatus: cluster.ClientComplete, At: noon}, cluster.AllocReport{Alloc: "a1", Node: "n1", ClientStatus: cluster.ClientComplete, At: noon}
		if version == cluster.VersionOfData {
			kept.DataOut = &cluster.DataMove{State: cluster.DataKept}
		}
		h.apply(&shims.AllocClientUpdate{At: noon, Reports: []cluster.AllocReport{kept, gone}})
		ended := h.apply(&shims.NodesDrainComplete{Completions: rules.Completions{At: noon, Completions: []rules.Completion{
			{Node: "n1", Drain: "d1", Revision: revision},
		}}}).(shims.CompletionsApplied).Ended
		must.SliceLen(t, 1, ended)
		must.Eq(t, want, h.state().DrainRecord("d1").DataNotCopied, must.Sprint(version))
		must.Eq(t, want, ended[0].DataNotCopied, must.Sprint(version))
		events := h.state().Node("n1").Events
		must.Eq(t, want != nil, events[len(events)-1].Details[cluster.EventDetailDataNotCopied] == "1", must.Sprint(version))
	}
}

// The same purge keeps the rows of what runs only from the version of confirmation on. A cluster with
// servers of an older build deletes them, as these servers do, and counts them in the drain.
func TestFSM_APurgeInAMixedCluster(t *testing.T) {
	t.Parallel()
	web := cluster.JobKey{Namespace: "default", ID: "web"}
	purge := &shims.JobDeregister{Job: web, Purge: true}
	must.Eq(t, byte(1), encode(t, purge)[1], must.Sprint("an older server understands it"))
	must.Eq(t, byte(cluster.VersionOfConfirmation), encode(t, &shims.JobDeregister{Job: web, Purge: true, At: noon})[1])
	for _, test := range []struct {
		version      cluster.Version
		rows, counts int
	}{{cluster.VersionOfConfirmation - 1, 0, 2}, {cluster.VersionOfConfirmation, 2, 0}} {
		h := twoOnOneNode(t)
		h.apply(
			&shims.RaiseClusterVersion{Version: test.version},
			&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}, At: noon}},
		)
		made := h.apply(purge).(shims.ChangeApplied).Evals
		must.Nil(t, h.state().Job(web))
		rows := slices.Collect(h.state().AllocsByJob(web))
		must.SliceLen(t, test.rows, rows, must.Sprint(test.version))
		must.Eq(t, test.rows > 0, len(made) == 1, must.Sprint(test.version))
		must.Eq(t, test.counts, h.state().Node("n1").Drain.PurgedRunning, must.Sprint(test.version))
		for _, a := range rows {
			must.Eq(t, cluster.DesiredStop, a.DesiredStatus)
		}
	}
}

// An operator confirms an ended drain once.
func TestFSM_ConfirmDrain(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	h.apply(
		&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}, At: noon}},
		&shims.JobDeregister{Job: cluster.JobKey{Namespace: "default", ID: "web"}, Purge: true}, // of an older version
		&shims.RaiseClusterVersion{Version: cluster.VersionOfConfirmation},
	)
	confirm := func(id cluster.DrainID) shims.Response {
		return h.apply(&shims.ConfirmDrain{At: noon.Add(time.Hour), Drain: id, By: "ann"})
	}
	must.ErrorIs(t, confirm("d1").(shims.Refused).Err, statestore.ErrDrainRuns)
	must.ErrorIs(t, confirm("d2").(shims.Refused).Err, statestore.ErrDrainNotFound)

	h.apply(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", At: noon}})
	must.Eq(t, shims.DrainConfirmed{Allocs: 2}, confirm("d1").(shims.DrainConfirmed))
	must.Eq(t, &cluster.UnconfirmedAllocs{ConfirmedAt: noon.Add(time.Hour).UTC(), ConfirmedBy: "ann"}, h.state().DrainRecord("d1").Unconfirmed)
	must.Eq(t, shims.DrainConfirmed{}, confirm("d1").(shims.DrainConfirmed))
}

// A server of an older cluster version would stop at the entries, so they need their version.
func TestConfirm_needsItsVersion(t *testing.T) {
	t.Parallel()
	for _, m := range []shims.Message{&shims.ConfirmStops{}, &shims.ConfirmDrain{}} {
		must.Eq(t, []byte{byte(m.Type()), byte(cluster.VersionOfConfirmation)}, encode(t, m)[:2])
	}
	_, err := shims.Encode(&shims.ConfirmStops{Nodes: make([]cluster.NodeID, shims.MaxConfirmedNodes+1)})
	must.ErrorContains(t, err, "at most 100 nodes but found 101")
}

// Bug: a node that only the simulator could make disconnected. The FSM decides from the state of the apply;
// below the version it writes what the entry contains, as an older server does.
func TestFSM_DisconnectedNode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version   cluster.Version
		lostAfter time.Duration
		want      cluster.NodeStatus
	}{
		{cluster.VersionOfConfirmation - 1, 0, cluster.NodeDisconnected},
		{cluster.VersionOfConfirmation, 0, cluster.NodeDown},
		{cluster.VersionOfConfirmation, time.Hour, cluster.NodeDisconnected},
	} {
		h := twoOnOneNode(t)
		h.apply(&shims.RaiseClusterVersion{Version: test.version})
		awaits(h, func(d *cluster.DisconnectStrategy) { d.LostAfter = test.lostAfter })
		h.apply(&shims.NodeUpdateStatus{At: noon, Node: "n1", Status: cluster.NodeDisconnected})
		must.Eq(t, test.want, h.state().Node("n1").Status)
	}
}

// The status of a node is set from each status to each status, also when the FSM writes another one than the entry
// contains. The entry evaluates the jobs of the node exactly if the status changes. Bug: no test had a disconnected
// node that becomes down because its last allocation is no longer awaited.
func TestFSM_StatusEvaluates(t *testing.T) {
	t.Parallel()
	all := []cluster.NodeStatus{cluster.NodeInitializing, cluster.NodeReady, cluster.NodeDisconnected, cluster.NodeDown}
	seen := map[[3]cluster.NodeStatus]bool{}
	for _, version := range []cluster.Version{cluster.VersionOfConfirmation - 1, cluster.VersionOfConfirmation, cluster.MaxVersion} {
		for _, lostAfter := range []time.Duration{0, time.Hour, 48 * time.Hour} {
			for _, before := range all {
				for _, requested := range all {
					h := twoOnOneNode(t)
					h.apply(&shims.RaiseClusterVersion{Version: version})
					awaits(h, func(d *cluster.DisconnectStrategy) { d.LostAfter = lostAfter })
					h.apply(&shims.NodeUpdateStatus{At: noon, Node: "n1", Status: before})
					was := h.state().Node("n1").Status
					r := h.apply(&shims.NodeUpdateStatus{At: noon.Add(2 * time.Hour), Node: "n1", Status: requested})
					is := h.state().Node("n1").Status
					must.EqOp(t, was != is, len(evalsOf(t, r)) > 0, must.Sprint("version ", version, ": ", was, ", ", requested, " becomes ", is))
					seen[[3]cluster.NodeStatus{was, requested, is}] = true
				}
			}
		}
	}
	for _, was := range all {
		for _, requested := range all {
			must.True(t, seen[[3]cluster.NodeStatus{was, requested, requested}] || was == cluster.NodeDown && requested == cluster.NodeDisconnected, must.Sprint(was, requested))
		}
		must.True(t, seen[[3]cluster.NodeStatus{was, cluster.NodeDisconnected, cluster.NodeDown}], must.Sprint(was))
	}
}

// lostAndHeld starts a state machine with allocations that are lost with their node and that nothing replaces.
func lostAndHeld(t *testing.T, allocs ...cluster.AllocID) *history {
	t.Helper()
	h := twoOnOneNode(t)
	h.apply(&shims.RaiseClusterVersion{Version: cluster.VersionOfConfirmation})
	awaits(h, func(d *cluster.DisconnectStrategy) { d.NoReplace = true })
	h.apply(
		&shims.NodeUpdateStatus{At: noon, Node: "n1", Status: cluster.NodeDown},
		&shims.EvalUpdate{Evals: []*cluster.Evaluation{jobEval("e2")}},
	)
	plan := cluster.Plan{At: noon, Eval: jobEval("e2"), SnapshotIndex: h.state().Index()}
	for _, id := range allocs {
		plan.Stops = append(plan.Stops, cluster.PlanStop{Alloc: id, Lost: true, Description: cluster.DescLost})
	}
	h.apply(&shims.ApplyPlan{Plan: plan})
	return h
}

// An allocation that nothing replaces is placed again when an operator confirms its end: the confirmation
// makes an evaluation.
func TestFSM_ConfirmationOfHeldAllocations(t *testing.T) {
	t.Parallel()
	h := lostAndHeld(t, "a0", "a1")
	must.Eq(t, cluster.ClientLost, h.state().Alloc("a0").ClientStatus)
	h.apply(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}, At: noon}})
	h.apply(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", At: noon}})
	index := h.state().Index()
	confirmed := h.apply(&shims.ConfirmDrain{At: noon.Add(time.Hour), Drain: "d1", By: "ann"}).(shims.DrainConfirmed)
	var evals []cluster.EvalID
	for e := range h.state().Evals() {
		if e.CreateIndex > index && e.Status == cluster.EvalPending {
			evals = append(evals, e.ID)
		}
	}
	must.Len(t, 1, evals)
	must.Eq(t, evals, confirmed.Evals) // Bug: the response named none
}

// Time confirms only the allocations that their client stops without the servers. Bug: the entry also made
// an evaluation for the others of the node.
func TestFSM_ConfirmationOfSomeHeldAllocations(t *testing.T) {
	t.Parallel()
	h := lostAndHeld(t, "a0")
	r := h.apply(&shims.ConfirmStops{At: noon.Add(time.Hour), Nodes: []cluster.NodeID{"n1"}}).(shims.ChangeApplied)
	must.SliceEmpty(t, r.Evals)
}

// awaits registers the job of the allocations again, with another block.
func awaits(h *history, edit func(*cluster.DisconnectStrategy)) {
	job := webJob(2)
	edit(&job.TaskGroups[0].Disconnect)
	h.apply(&shims.JobRegister{Job: job})
}
