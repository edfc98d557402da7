package shims_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Entries with the fields of real clients need cluster version 4: a proposer in a cluster of an
// older version rejects them, and an older build stops at them. Entries without these fields do not
// change.
func TestDrivers_EntriesNeedTheVersionOfTheirFields(t *testing.T) {
	t.Parallel()
	plain, driver := webJob(1), webJob(1)
	driver.TaskGroups[0].Tasks[0].Driver = "raw_exec"
	states := &cluster.TaskStates{Tasks: []cluster.TaskState{{Name: "web", State: cluster.TaskRunning}}}
	alloc := func(j *cluster.Job, states *cluster.TaskStates) *cluster.Allocation {
		return &cluster.Allocation{ID: "a", Job: j, TaskStates: states}
	}
	plan := func(places ...*cluster.Allocation) shims.Message {
		return &shims.ApplyPlan{Plan: cluster.Plan{Eval: jobEval("e"), Places: places}}
	}
	for _, test := range []struct {
		older, newer shims.Message
	}{
		{&shims.JobRegister{Job: plain}, &shims.JobRegister{Job: driver}},
		{&shims.JobRegister{Job: plain}, &shims.JobRegister{Job: plain, EnforceIndex: true}},
		{&shims.JobRegister{Job: plain}, &shims.JobRegister{Job: plain, JobModifyIndex: 1}},
		{&shims.NodeRegister{Node: &cluster.Node{ID: "n"}}, &shims.NodeRegister{Node: &cluster.Node{ID: "n", ReportsDrivers: true}}},
		{&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: "a"}}},
			&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: "a", TaskStates: states}, {Alloc: "b"}}}},
		{plan(alloc(plain, nil), alloc(plain, nil)), plan(alloc(plain, nil), alloc(driver, nil))},
		{plan(alloc(plain, nil), alloc(nil, nil)), plan(alloc(plain, nil), alloc(plain, states))},
	} {
		must.Eq(t, 1, encode(t, test.older)[1])
		entry := encode(t, test.newer)
		must.Eq(t, byte(cluster.VersionOfDrivers), entry[1])
		must.Eq(t, entry, encode(t, decode[shims.Message](t, entry)))

		entry[1] = 1 // no build writes it
		_, err := shims.Decode(entry)
		must.ErrorIs(t, err, shims.ErrBroken)
	}
}

// An enforced index is checked when the entry is applied. So of two operators who have read the
// same version of a job, one is refused.
func TestDrivers_AnEnforcedIndexIsJudgedAtApply(t *testing.T) {
	t.Parallel()
	h := newHistory(t, shims.FSMConfig{})
	register := func(index uint64) error {
		response := h.apply(&shims.JobRegister{Job: webJob(1), EnforceIndex: true, JobModifyIndex: index, Evals: []*cluster.Evaluation{jobEval("e1")}})
		if refused, is := response.(shims.Refused); is {
			return refused.Err
		}
		return nil
	}
	must.EqError(t, register(7), "Enforcing job modify index 7: job does not exist")
	must.NoError(t, register(0))
	was := h.state().Job(webJob(1).Key()).JobModifyIndex
	must.EqError(t, register(0), "Enforcing job modify index 0: job already exists")
	must.NoError(t, register(was))
	err := register(was)
	must.ErrorIs(t, err, cluster.ErrModifyIndex)
	must.ErrorContains(t, err, "job exists with conflicting job modify index: ")
	must.Eq(t, 1, h.state().Job(webJob(1).Key()).Version)
}

// Servers that were built with different versions of Go must apply the same jobs, so an FSM
// compiles no regular expression. It only checks their number and length.
func TestDrivers_AnFSMReadsNoRegularExpression(t *testing.T) {
	t.Parallel()
	h := newHistory(t, shims.FSMConfig{})
	register := func(right string, count int) error {
		job := webJob(1)
		for range count {
			job.Constraints = append(job.Constraints, cluster.Constraint{LTarget: "${attr.x}", Operand: cluster.OperandRegexp, RTarget: right})
		}
		job.Constraints = append(job.Constraints, cluster.Constraint{LTarget: "${attr.x}", Operand: cluster.OperandVersion, RTarget: "newer than all"})
		if refused, is := h.apply(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{jobEval("e1")}}).(shims.Refused); is {
			return refused.Err
		}
		return nil
	}
	must.NoError(t, register("(?newer syntax", cluster.MaxJobRegexps))
	must.Eq(t, "(?newer syntax", h.state().Job(webJob(1).Key()).Constraints[0].RTarget)
	must.ErrorContains(t, register(strings.Repeat("x", cluster.MaxRegexpBytes+1), 1), "a regular expression has at most 128 bytes")
	must.ErrorContains(t, register("x", cluster.MaxJobRegexps+1), "at most 10 constraints with a regular expression but found 11")
}

// The reports of clients carry the states of tasks. These are bounded, and a report without them
// keeps the previous states.
func TestDrivers_ReportsCarryTheStatesOfTasks(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	task := h.state().Alloc("a0").Job.TaskGroups[0].Tasks[0].Name
	report := func(states *cluster.TaskStates, description string) {
		h.apply(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{
			Alloc: "a0", Node: "n1", ClientStatus: cluster.ClientRunning, ClientDescription: description, TaskStates: states, At: noon,
		}}})
	}
	events := make([]cluster.TaskEvent, 30)
	for i := range events {
		events[i] = cluster.TaskEvent{Type: "Restarting", Message: strings.Repeat("x", 10_000)}
	}
	report(&cluster.TaskStates{Tasks: []cluster.TaskState{
		{Name: task, State: cluster.TaskRunning, StartedAt: noon, Events: events}, {Name: "stranger", State: cluster.TaskRunning},
	}}, "runs")
	got := h.state().Alloc("a0")
	must.Len(t, 1, got.TaskStates.Tasks)
	must.Len(t, cluster.MaxTaskEvents, got.TaskStates.Tasks[0].Events)
	must.StrHasPrefix(t, "xxx", got.TaskStates.Tasks[0].Events[0].Message)
	must.Eq(t, cluster.MaxTaskEventBytes, len(got.TaskStates.Tasks[0].Events[0].Message))

	report(nil, "runs well")
	after := h.state().Alloc("a0")
	must.Eq(t, "runs well", after.ClientDescription)
	must.Eq(t, got.TaskStates, after.TaskStates)
	report(after.TaskStates, "runs well")
	must.Eq(t, after.ModifyIndex, h.state().Alloc("a0").ModifyIndex, must.Sprint("the report changes nothing"))

	other := shims.NewFSM(shims.FSMConfig{})
	restore(t, other, persist(t, h.fsm))
	must.Eq(t, dump(t, h.fsm), dump(t, other))
}

// A node may report that it has no driver. This differs from a node that reports no drivers field.
func TestDrivers_ANodeWithoutDriversSurvivesTheLog(t *testing.T) {
	t.Parallel()
	h := newHistory(t, shims.FSMConfig{})
	h.apply(&shims.NodeRegister{At: noon, Node: &cluster.Node{ID: "n1", ReportsDrivers: true, Drivers: map[string]*cluster.DriverInfo{}}})
	must.False(t, h.state().Node("n1").HasDriver("raw_exec"))
	refused := h.apply(&shims.NodeRegister{At: noon, Node: &cluster.Node{ID: "n1", MaxKillTimeout: -time.Second}}).(shims.Refused)
	must.EqError(t, refused.Err, "registering node n1: MaxKillTimeout is -1s and must be >= 0")
}
