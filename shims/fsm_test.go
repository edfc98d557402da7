package shims_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func TestFSM_ADrainFromItsRequestToItsEnd(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	must.Eq(t, shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "d1"}}, h.apply(startDrain("n1", "d1", time.Hour)).(shims.DrainRequestApplied))
	revision := h.state().Node("n1").Drain.Revision

	// The budget has room for one of two marks. The second is refused.
	marked := h.apply(mark(cluster.MarkPaced, "d1", revision, "a0", "a1")).(shims.MarksApplied)
	must.SliceLen(t, 1, marked.Accepted)
	must.Eq(t, cluster.AllocID("a0"), marked.Accepted[0].Alloc)
	must.Eq(t, []cluster.EvalID{"e-mark"}, marked.Evals)
	must.SliceLen(t, 1, marked.Refused)
	must.Eq(t, cluster.AllocID("a1"), marked.Refused[0].Alloc)
	must.NotEq(t, "", marked.Refused[0].Why)
	must.True(t, h.state().Alloc("a0").MarkedBy("d1"))
	must.False(t, h.state().Alloc("a1").Marked())
	must.Eq(t, cluster.EvalPending, h.state().Eval("e-mark").Status)

	// The drain is not done, so a completion is refused.
	complete := &shims.NodesDrainComplete{Completions: rules.Completions{At: noon, Completions: []rules.Completion{{Node: "n1", Drain: "d1", Revision: revision}}}}
	completed := h.apply(complete).(shims.CompletionsApplied)
	must.SliceEmpty(t, completed.Ended)
	must.SliceLen(t, 1, completed.Refused)
	must.True(t, h.state().Node("n1").Draining())

	done := new(shims.AllocClientUpdate)
	for _, id := range []cluster.AllocID{"a0", "a1"} {
		done.Reports = append(done.Reports, cluster.AllocReport{Alloc: id, Node: "n1", ClientStatus: cluster.ClientComplete, At: noon})
	}
	h.apply(done)
	completed = h.apply(complete).(shims.CompletionsApplied)
	must.SliceEmpty(t, completed.Refused)
	must.SliceLen(t, 1, completed.Ended)
	must.Eq(t, cluster.OutcomeComplete, completed.Ended[0].Outcome)
	must.False(t, h.state().Node("n1").Draining())
	must.Eq(t, cluster.OutcomeComplete, h.state().DrainRecord("d1").Outcome)
}

func TestFSM_ACancelNamesTheMarksThatStay(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	h.apply(startDrain("n1", "d1", -1))
	revision := h.state().Node("n1").Drain.Revision
	must.SliceLen(t, 2, h.apply(mark(cluster.MarkForced, "d1", revision, "a0", "a1")).(shims.MarksApplied).Accepted)
	answered := jobEval("e-mark")
	stop := &shims.ApplyPlan{Plan: cluster.Plan{At: noon, Eval: answered, SnapshotIndex: h.next - 1, Stops: []cluster.PlanStop{{Alloc: "a1", Migrate: true}}}}
	must.SliceEmpty(t, h.apply(stop).(shims.PlanApplied).Refused)

	cancel := &shims.NodeUpdateDrain{
		DrainUpdate: cluster.DrainUpdate{Node: "n1", At: noon, MarkEligible: true, Key: "cancel"},
		Evals:       []*cluster.Evaluation{jobEval("e-back")},
	}
	must.Eq(t, shims.DrainRequestApplied{
		DrainResult: cluster.DrainResult{Drain: "d1", Withdrawn: 1, Stopping: []cluster.AllocID{"a1"}, Moved: []cluster.MovedAllocs{{Job: cluster.JobKey{Namespace: "default", ID: "web"}, Allocs: 1}}},
		Evals:       []cluster.EvalID{"e-back"},
	}, h.apply(cancel).(shims.DrainRequestApplied))
	must.NotNil(t, h.state().Eval("e-back"))

	// The stop of an allocation whose mark was withdrawn is refused.
	stop.Stops[0].Alloc, stop.SnapshotIndex = "a0", h.next-1
	must.SliceLen(t, 1, h.apply(stop).(shims.PlanApplied).Refused)
	must.Eq(t, cluster.DesiredRun, h.state().Alloc("a0").DesiredStatus)
}

func TestFSM_ARepeatedRequestChangesNothing(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	start := startDrain("n1", "d1", time.Hour)
	start.Key = "key"
	h.apply(start)
	before := h.state()
	start.Evals = []*cluster.Evaluation{jobEval("again")}
	must.True(t, h.apply(start).(shims.DrainRequestApplied).Repeated)
	must.Nil(t, h.state().Eval("again"))
	must.True(t, before.Node("n1") == h.state().Node("n1"))
}

func TestFSM_AnInvalidMessageIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	noID := []*cluster.Evaluation{{}}
	invalid := webJob(-1)
	for _, c := range []struct {
		name string
		m    shims.Message
		want error  // or
		text string // part of it
	}{
		{"status of no node", &shims.NodeUpdateStatus{Node: "n9", Status: cluster.NodeReady}, statestore.ErrNodeNotFound, ""},
		{"no status", &shims.NodeUpdateStatus{Node: "n1", Status: "fine"}, nil, "invalid node status"},
		{"eligibility of no node", &shims.NodeUpdateEligibility{Node: "n9", Eligibility: cluster.NodeEligible}, statestore.ErrNodeNotFound, ""},
		{"eligible while draining", &shims.NodeUpdateEligibility{Node: "n2", Eligibility: cluster.NodeEligible}, statestore.ErrNodeDraining, ""},
		{"drain of no node", startDrain("n9", "d9", 0), statestore.ErrNodeNotFound, ""},
		{"drain without an id", startDrain("n1", "", 0), nil, "without an id"},
		{"node without an id", &shims.NodeRegister{Node: &cluster.Node{}}, nil, "without an id"},
		{"invalid job", &shims.JobRegister{Job: invalid}, nil, "Count must be >= 0"},
		{"job with a nil group", &shims.JobRegister{Job: &cluster.Job{ID: "x", TaskGroups: []*cluster.TaskGroup{nil}}}, nil, "missing"},
		{"end of no job", &shims.JobDeregister{Job: cluster.JobKey{Namespace: "default", ID: "x"}}, statestore.ErrJobNotFound, ""},
		{"evaluation without an id", &shims.EvalUpdate{Evals: append([]*cluster.Evaluation{jobEval("e9")}, noID...)}, nil, "has no id"},
		{"half a registration", &shims.NodeRegister{Node: &cluster.Node{ID: "n9"}, Evals: noID}, nil, "has no id"},
		{"half a deregistration", &shims.NodeDeregister{Nodes: []cluster.NodeID{"n1"}, Evals: noID}, nil, "has no id"},
		{"half a status", &shims.NodeUpdateStatus{Node: "n1", Status: cluster.NodeDown, Evals: noID}, nil, "has no id"},
		{"half an eligibility", &shims.NodeUpdateEligibility{Node: "n1", Eligibility: cluster.NodeIneligible, Evals: noID}, nil, "has no id"},
		{"half a drain", &shims.NodeUpdateDrain{DrainUpdate: startDrain("n1", "d9", 0).DrainUpdate, Evals: noID}, nil, "has no id"},
		{"half a job", &shims.JobRegister{Job: webJob(3), Evals: noID}, nil, "has no id"},
		{"half a purge", &shims.JobDeregister{Job: webJob(1).Key(), Purge: true, Evals: noID}, nil, "has no id"},
		{"half a report", &shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: "a0", Node: "n1", ClientStatus: cluster.ClientFailed}}, Evals: noID}, nil, "has no id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, twin := twoOnOneNode(t), twoOnOneNode(t)
			h.apply(startDrain("n2", "d2", 0))
			twin.apply(startDrain("n2", "d2", 0))
			refused, ok := h.apply(c.m).(shims.Refused)
			must.True(t, ok, must.Sprint("it is refused"))
			if c.want != nil {
				must.ErrorIs(t, refused.Err, c.want)
			}
			must.ErrorContains(t, refused.Err, c.text)
			must.Eq(t, h.next-1, h.state().Index(), must.Sprint("a refused entry also moves the index"))
			twin.apply(&shims.EvalUpdate{})
			must.Eq(t, dump(t, twin.fsm), dump(t, h.fsm), must.Sprint("as after an empty entry"))
		})
	}
}

func TestFSM_OneMissingNodeDoesNotFailABatch(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	gone := &shims.NodeDeregister{At: noon, Nodes: []cluster.NodeID{"n9", "n2"}}
	must.Eq(t, shims.NodesDeregistered{Missing: []cluster.NodeID{"n9"}}, h.apply(gone).(shims.NodesDeregistered))
	must.Nil(t, h.state().Node("n2"))
	must.NotNil(t, h.state().Node("n1"))
}

func TestFSM_APlanOfAClosedEvaluationIsRefused(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	again := h.apply(h.place("e1", "n2")).(shims.PlanApplied)
	must.NotNil(t, again.Accepted)
	must.SliceEmpty(t, again.Accepted.Places)
	must.SliceLen(t, 1, again.Refused)
	must.Eq(t, cluster.NodeID("n1"), h.state().Alloc("a0").NodeID)
}

// raiseBeyond is an entry that raises the cluster version beyond what this build understands.
func raiseBeyond(t testing.TB) []byte {
	return entry(shims.RaiseClusterVersionType, 2, body(t, map[string]any{"Version": cluster.MaxVersion + 1}))
}

func TestFSM_StopsAtAnEntryThatItCannotApply(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"unknown type":                  {[]byte{77, 1}, shims.ErrBroken},
		"cut short":                     {encode(t, node("n3"))[:20], shims.ErrBroken},
		"nothing":                       {nil, shims.ErrBroken},
		"a raise beyond this build":     {raiseBeyond(t), cluster.ErrVersion},
		"a type of a newer build":       {[]byte{77, byte(cluster.MaxVersion) + 1}, cluster.ErrVersion},
		"a known type with a new field": {[]byte{byte(shims.EvalUpdateType), byte(cluster.MaxVersion) + 1, 0x80}, cluster.ErrVersion},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := twoOnOneNode(t)
			before, index, next := dump(t, h.fsm), h.state().Index(), encode(t, node("n3"))
			must.NoError(t, h.fsm.Err())

			must.Nil(t, h.fsm.Apply(&raft.Log{Index: h.next, Data: c.data}))
			<-h.fsm.Stopped()
			must.ErrorIs(t, h.fsm.Err(), c.want)
			must.ErrorContains(t, h.fsm.Err(), fmt.Sprintf("raft entry %d cannot be applied, and must not be skipped", h.next))
			if c.want == cluster.ErrVersion {
				must.ErrorContains(t, h.fsm.Err(), fmt.Sprintf("upgrade this server to a build that understands cluster version %d or later", cluster.MaxVersion+1))
			}

			// It stays stopped: it applies nothing, and raft gets no snapshot of it.
			first := h.fsm.Err()
			must.Nil(t, h.fsm.Apply(&raft.Log{Index: h.next + 1, Data: next}))
			_, err := h.fsm.Snapshot()
			must.ErrorIs(t, err, c.want)
			must.ErrorIs(t, h.fsm.Restore(io.NopCloser(bytes.NewReader(persist(t, twoOnOneNode(t).fsm)))), c.want)
			must.Eq(t, before, dump(t, h.fsm))
			must.Eq(t, index, h.state().Index())
			must.True(t, first == h.fsm.Err(), must.Sprint("the first reason stays"))
		})
	}
}

func TestFSM_ASnapshotOfANewerBuildStopsIt(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	before, older := dump(t, h.fsm), persist(t, h.fsm)
	newer := bytes.Clone(older)
	newer[len("nodedrain state\n")] = byte(cluster.MaxVersion) + 1

	must.ErrorIs(t, h.fsm.Restore(io.NopCloser(bytes.NewReader(newer))), cluster.ErrVersion)
	must.ErrorIs(t, h.fsm.Err(), cluster.ErrVersion)
	// When raft starts, it then tries an older snapshot, but the log may not begin there.
	must.ErrorIs(t, h.fsm.Restore(io.NopCloser(bytes.NewReader(older))), cluster.ErrVersion)
	must.Eq(t, before, dump(t, h.fsm))
}

func TestFSM_AnEntryOfAnOldIndexIsRefused(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	before := dump(t, h.fsm)
	for _, index := range []uint64{0, 1, h.next - 1} {
		_, err := h.fsm.ApplyEntry(index, encode(t, node("n3")))
		must.ErrorIs(t, err, shims.ErrBroken)
		must.Eq(t, before, dump(t, h.fsm))
	}
	_, err := h.fsm.ApplyEntry(h.next+5, encode(t, node("n3")))
	must.NoError(t, err, must.Sprint("raft's own entries have the indexes between"))
}

func TestFSM_AnIgnorableEntryIsSkipped(t *testing.T) {
	t.Parallel()
	h, twin := twoOnOneNode(t), twoOnOneNode(t)
	unknown := shims.IgnorableFlag | 5
	response := h.fsm.Apply(&raft.Log{Index: h.next, Data: []byte{byte(unknown), 3, 1, 2, 3}})
	must.Eq(t, shims.Skipped{Type: unknown}, response.(shims.Skipped))
	twin.apply(&shims.EvalUpdate{})
	must.Eq(t, dump(t, twin.fsm), dump(t, h.fsm))
}

func TestFSM_ObserversSeeEveryEntryWithTheStatesAroundIt(t *testing.T) {
	t.Parallel()
	var applied []shims.Applied
	h := newHistory(t, shims.FSMConfig{OnApply: func(a shims.Applied) { applied = append(applied, a) }})
	h.apply(node("n1"), &shims.NodeUpdateStatus{Node: "n9", Status: cluster.NodeReady})
	_, err := h.fsm.ApplyEntry(h.next, []byte{byte(shims.IgnorableFlag | 5), 1})
	must.NoError(t, err)
	_, err = h.fsm.ApplyEntry(h.next+1, []byte{77, 1})
	must.Error(t, err)

	must.SliceLen(t, 3, applied, must.Sprint("all but the broken one"))
	must.Eq(t, 1, applied[0].Index)
	must.Eq(t, shims.NodeRegisterType, applied[0].Type)
	must.Eq(t, cluster.NodeID("n1"), applied[0].Message.(*shims.NodeRegister).Node.ID)
	must.Eq(t, shims.ChangeApplied{}, applied[0].Response.(shims.ChangeApplied))
	must.Nil(t, applied[0].Before.Node("n1"))
	must.NotNil(t, applied[0].After.Node("n1"))
	must.ErrorIs(t, applied[1].Response.(shims.Refused).Err, statestore.ErrNodeNotFound)
	must.Eq(t, 1, applied[1].Before.Index())
	must.Eq(t, 2, applied[1].After.Index())
	must.Nil(t, applied[2].Message)
	must.Eq(t, shims.IgnorableFlag|5, applied[2].Type)
}

func TestFSM_ARestoreReplacesTheStore(t *testing.T) {
	t.Parallel()
	source := twoOnOneNode(t)
	source.apply(startDrain("n1", "d1", time.Hour))

	var restored *statestore.Store
	h := newHistory(t, shims.FSMConfig{OnRestore: func(s *statestore.Store) { restored = s }})
	h.apply(node("n7"))
	old := h.fsm.Store()
	restore(t, h.fsm, persist(t, source.fsm))

	must.Eq(t, dump(t, source.fsm), dump(t, h.fsm))
	must.True(t, h.fsm.Store() != old)
	must.True(t, restored == h.fsm.Store())
	select {
	case <-old.Abandoned():
	default:
		t.Error("the old store is not abandoned")
	}
	must.NotNil(t, old.Snapshot().Node("n7"), must.Sprint("its snapshots stay readable"))

	h.next = source.next
	h.apply(mark(cluster.MarkPaced, "d1", h.state().Node("n1").Drain.Revision, "a0"))
	source.apply(mark(cluster.MarkPaced, "d1", h.state().Node("n1").Drain.Revision, "a0"))
	must.Eq(t, dump(t, source.fsm), dump(t, h.fsm), must.Sprint("and applies later entries"))
}

func TestFSM_ASnapshotShowsOneIndex(t *testing.T) {
	t.Parallel()
	h, twin := twoOnOneNode(t), twoOnOneNode(t)
	snapshot, err := h.fsm.Snapshot()
	must.NoError(t, err)
	h.apply(node("n3"))
	sink := new(memorySink)
	must.NoError(t, snapshot.Persist(sink))
	must.Eq(t, persist(t, twin.fsm), sink.Bytes())
}

func TestFSM_ABrokenSnapshotChangesNothing(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	before, store := dump(t, h.fsm), h.fsm.Store()
	whole := persist(t, h.fsm)
	must.Error(t, h.fsm.Restore(io.NopCloser(bytes.NewReader(whole[:len(whole)/2]))))
	must.NoError(t, h.fsm.Err(), must.Sprint("raft tries another, or the leader sends it again"))
	must.True(t, store == h.fsm.Store())
	must.Eq(t, before, dump(t, h.fsm))
}

func TestFSM_ASnapshotThatCannotBeWrittenIsCancelled(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	snapshot, err := h.fsm.Snapshot()
	must.NoError(t, err)
	full := errors.New("disk full")
	sink := &memorySink{fail: full}
	must.ErrorIs(t, snapshot.Persist(sink), full)
	must.True(t, sink.cancelled)
	must.False(t, sink.closed)
}
