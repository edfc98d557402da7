package setting_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// recorder is an operator with its recorded writes.
type recorder struct {
	setting.Operator
	asked   []shims.Message
	placed  []*cluster.Allocation
	reasons []string // why operations had no effect
	racing  bool
}

// newRecorder returns an operator of a state with a node n1 and a job web with one allocation.
func newRecorder(t *testing.T) *recorder {
	web := cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "web"}
	group := cluster.GroupKey{Job: web, Name: "web"}
	s := &scenario.Scenario{
		Nodes: []scenario.Node{{IDs: []cluster.NodeID{"n1", "n2"}}},
		Jobs:  []scenario.Job{{Key: web, Groups: []scenario.Group{{Name: "web", Count: 1}}}},
	}
	ids := 0
	id := func() string { ids++; return fmt.Sprintf("id%d", ids) }
	job := setting.Job(s, s.Jobs[0])
	store := statestore.New()
	txn := store.Begin(1)
	must.NoError(t, txn.UpsertNode(setting.Nodes(s.Nodes[0])[0], noon))
	must.NoError(t, txn.UpsertJob(job))
	allocs := setting.Allocs(scenario.Alloc{Group: group, On: []cluster.NodeID{"n1"}}, job, noon, func() cluster.AllocID { return "a1" })
	_, err := txn.ApplyPlan(&cluster.Plan{At: noon, Places: allocs})
	must.NoError(t, err)
	txn.Commit()
	o := &recorder{}
	o.Operator = setting.Operator{
		Requests: &setting.Requests{
			Truth: store.Snapshot, Now: func() time.Time { return noon }, Clock: func() time.Time { return noon },
			Races:      func() bool { return o.racing },
			NewEvalID:  func() cluster.EvalID { return cluster.EvalID(id()) },
			NewDrainID: func() cluster.DrainID { return cluster.DrainID(id()) },
		},
		Scenario: s, NewAllocID: func() cluster.AllocID { return "a2" },
		Ask: func(m shims.Message) { o.asked = append(o.asked, m) },
		Place: func(_ *cluster.Job, allocs []*cluster.Allocation) error {
			o.placed = append(o.placed, allocs...)
			return nil
		},
		Nothing: func(why string) { o.reasons = append(o.reasons, why) },
	}
	return o
}

// Each operation makes its writes. An operation without a subject makes none and gives a reason.
// For an operation on servers Do returns false.
func TestOperator_Do(t *testing.T) {
	t.Parallel()
	web, gone := cluster.JobKey{Namespace: "default", ID: "web"}, cluster.JobKey{Namespace: "default", ID: "gone"}
	alloc := scenario.AllocName{Group: cluster.GroupKey{Job: web, Name: "web"}}
	none := scenario.AllocName{Group: alloc.Group, Index: 7}
	node, absent := []cluster.NodeID{"n1"}, []cluster.NodeID{"n2"}
	zero := 0
	for _, c := range []struct {
		op    scenario.Op
		asked []string
	}{
		{&scenario.Drain{Nodes: []cluster.NodeID{"n1", "n2"}, Twice: true}, []string{"NodeUpdateDrain", "NodeUpdateDrain", "NodeUpdateDrain", "NodeUpdateDrain"}},
		{&scenario.Cancel{Nodes: node, Eligible: true}, []string{"NodeUpdateDrain"}},
		{&scenario.Register{Job: web}, []string{"JobRegister"}},
		{&scenario.Register{Job: gone}, nil},
		{&scenario.Edit{Job: web, Count: &zero}, []string{"JobRegister"}},
		{&scenario.Edit{Job: gone, Count: &zero}, nil},
		{&scenario.Stop{Job: web}, []string{"JobDeregister"}},
		{&scenario.Stop{Job: gone}, nil},
		{&scenario.StopAlloc{Alloc: alloc}, []string{"ApplyPlan"}},
		{&scenario.StopAlloc{Alloc: none}, nil},
		{&scenario.Exit{Alloc: alloc, Failed: true}, []string{"AllocClientUpdate"}},
		{&scenario.Exit{Alloc: none}, nil},
		{&scenario.NodeChange{Nodes: node, Change: scenario.NodeDown}, []string{"NodeUpdateStatus"}},
		{&scenario.NodeChange{Nodes: absent, Change: scenario.NodeDown}, nil},
		{&scenario.NodeChange{Nodes: node, Change: scenario.NodeIneligible}, []string{"NodeUpdateEligibility"}},
		{&scenario.NodeChange{Nodes: node, Change: scenario.NodeDelete}, []string{"NodeDeregister"}},
		{&scenario.NodeChange{Nodes: absent, Change: scenario.NodeDelete}, nil},
		{&scenario.NodeChange{Nodes: absent, Change: scenario.NodeRegister}, []string{"NodeRegister"}},
	} {
		o := newRecorder(t)
		done, err := o.Do(c.op)
		must.NoError(t, err)
		must.True(t, done)
		var asked []string
		for _, m := range o.asked {
			asked = append(asked, m.Type().String())
		}
		must.Eq(t, c.asked, asked, must.Sprintf("%T", c.op))
		must.Eq(t, asked == nil, len(o.reasons) == 1, must.Sprintf("%T: %v", c.op, o.reasons))
	}
	done, err := newRecorder(t).Do(&scenario.Elect{})
	must.NoError(t, err)
	must.False(t, done)
}

func TestOperator_Do_place(t *testing.T) {
	t.Parallel()
	o := newRecorder(t)
	group := cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: "web"}, Name: "web"}
	for _, name := range []string{"web", "other"} { // there is no other group
		_, err := o.Do(&scenario.Place{Alloc: scenario.Alloc{
			Group: cluster.GroupKey{Job: group.Job, Name: name}, Indexes: scenario.Indexes{First: 1, Count: 1}, On: []cluster.NodeID{"n1"},
		}})
		must.NoError(t, err)
	}
	must.SliceLen(t, 1, o.placed)
	must.Eq(t, "web.web[1]", o.placed[0].Name)
	must.Eq(t, []string{"group default/web.other: its job is stopped, or has no such group"}, o.reasons)
	must.SliceEmpty(t, o.asked)
}

// A write between plan and apply of another one carries no evaluations.
func TestRequests_races(t *testing.T) {
	t.Parallel()
	o := newRecorder(t)
	must.SliceNotEmpty(t, o.NodeStatus("n1", cluster.NodeDown, false).Evals)
	must.SliceEmpty(t, o.NodeStatus("n1", cluster.NodeDown, true).Evals)
	must.SliceNotEmpty(t, o.Stop(o.Truth().Job(cluster.JobKey{Namespace: "default", ID: "web"}), false).Evals)
	o.racing = true
	must.SliceEmpty(t, o.NodeStatus("n1", cluster.NodeDown, false).Evals)
	must.SliceEmpty(t, o.Stop(o.Truth().Job(cluster.JobKey{Namespace: "default", ID: "web"}), false).Evals)
}
