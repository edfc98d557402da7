package cluster_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A client may report anything. What the state keeps of it is bounded.
func TestTaskStates_Bounded(t *testing.T) {
	t.Parallel()
	group := driverJob().TaskGroups[0]
	here := time.FixedZone("here", 7200)
	at := time.Unix(1_700_000_000, 0).In(here)
	long := strings.Repeat("ü", 200)
	details := map[string]string{}
	for i := range 20 {
		details[fmt.Sprintf("%02d", i)] = long
	}
	var events []cluster.TaskEvent
	for i := range 12 {
		events = append(events, cluster.TaskEvent{Type: fmt.Sprint("event ", i), Time: at, Message: long, Details: details})
	}
	got := (&cluster.TaskStates{Tasks: []cluster.TaskState{
		{Name: "server", State: cluster.TaskRunning, StartedAt: at, Events: events,
			Waiting: &cluster.TaskWait{For: cluster.WaitGrace, Until: at, Detail: long}},
		{Name: "server", State: cluster.TaskDead},
		{Name: "stranger", State: cluster.TaskRunning},
		{Name: "cleanup", State: "sleeping"},
		{Name: "proxy", State: cluster.TaskDead, Failed: true},
	}}).Bounded(group)

	must.Len(t, 2, got.Tasks)
	must.Eq(t, cluster.TaskState{Name: "proxy", State: cluster.TaskDead, Failed: true}, got.Tasks[0])
	server := got.State("server")
	must.Eq(t, cluster.TaskRunning, server.State)
	must.Eq(t, time.UTC, server.StartedAt.Location())
	must.Eq(t, strings.Repeat("ü", 128), server.Waiting.Detail)
	must.Len(t, cluster.MaxTaskEvents, server.Events)
	must.Eq(t, "event 2", server.Events[0].Type)
	must.MapLen(t, 3, server.Events[0].Details, must.Sprint("a fourth has no room"))
	must.Eq(t, strings.Repeat("ü", 128), server.Events[0].Details["02"])
	must.True(t, got.Equal(got.Bounded(group)), must.Sprint("a second time changes nothing"))

	must.Nil(t, got.State("cleanup"))
	must.Nil(t, (*cluster.TaskStates)(nil).State("server"))
	must.Nil(t, (*cluster.TaskStates)(nil).Bounded(group))
	must.SliceEmpty(t, got.Bounded(nil).Tasks, must.Sprint("an allocation that has lost its job"))
	must.Eq(t, "xy", (&cluster.TaskStates{Tasks: []cluster.TaskState{
		{Name: "server", State: cluster.TaskDead, Events: []cluster.TaskEvent{{Type: "x\xffy"}}},
	}}).Bounded(group).Tasks[0].Events[0].Type)
}

// The secret of one node must not make the state of the cluster grow without bound.
func TestTaskStates_BoundedTogether(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tasks, events, details int }{
		{1, cluster.MaxTaskEvents, cluster.MaxTaskEventDetails},
		{7, 5, cluster.MaxTaskEventDetails}, // of 9,362 bytes each, with a wait
		{100, 0, 0},
		{2000, 0, 0},
	} {
		group, states := &cluster.TaskGroup{}, &cluster.TaskStates{}
		for i := range test.tasks {
			name := fmt.Sprintf("task-%04d", i)
			group.Tasks = append(group.Tasks, &cluster.Task{Name: name})
			s := cluster.TaskState{Name: name, State: cluster.TaskRunning,
				Waiting: &cluster.TaskWait{For: cluster.WaitKind(strings.Repeat("w", 300)), Detail: strings.Repeat("d", 300)}}
			for k := range 12 {
				e := cluster.TaskEvent{Type: strings.Repeat("t", 300), Message: strings.Repeat("m", 300), Details: map[string]string{}}
				for d := range 9 {
					e.Details[fmt.Sprint(d)] = strings.Repeat(fmt.Sprint(k%10), 127)
				}
				s.Events = append(s.Events, e)
			}
			states.Tasks = append(states.Tasks, s)
		}
		got := states.Bounded(group)
		must.Len(t, test.tasks, got.Tasks)
		must.True(t, got.Equal(got.Bounded(group)), must.Sprint("a second time changes nothing"))
		size := 0
		for _, task := range got.Tasks {
			must.Len(t, test.events, task.Events, must.Sprint(test.tasks, " tasks"))
			if w := task.Waiting; w != nil {
				size += len(w.For) + len(w.Detail)
			}
			for _, e := range task.Events {
				must.MapLen(t, test.details, e.Details)
				size += len(e.Type) + len(e.Message)
				for key, value := range e.Details {
					size += len(key) + len(value)
				}
			}
			if len(task.Events) > 0 {
				must.Eq(t, strings.Repeat("1", 127), task.Events[len(task.Events)-1].Details["0"], must.Sprint("the newest stays"))
			}
		}
		must.LessEq(t, cluster.MaxTaskStatesBytes, size)
		must.Eq(t, test.tasks < 200, got.Tasks[0].Waiting != nil)
	}
}

func TestTaskStates_Equal(t *testing.T) {
	t.Parallel()
	full := func() *cluster.TaskStates {
		s := new(cluster.TaskStates)
		fill(reflect.ValueOf(s).Elem(), 1)
		return s
	}
	must.True(t, full().Equal(full()))
	must.True(t, (*cluster.TaskStates)(nil).Equal(nil))
	must.False(t, full().Equal(nil))
	must.False(t, (*cluster.TaskStates)(nil).Equal(full()))
	for _, of := range []func(*cluster.TaskStates) reflect.Value{
		func(s *cluster.TaskStates) reflect.Value { return reflect.ValueOf(&s.Tasks[0]).Elem() },
		func(s *cluster.TaskStates) reflect.Value { return reflect.ValueOf(&s.Tasks[1].Events[1]).Elem() },
		func(s *cluster.TaskStates) reflect.Value { return reflect.ValueOf(s.Tasks[1].Waiting).Elem() },
	} {
		for i := range of(full()).NumField() {
			other := full()
			of(other).Field(i).SetZero()
			must.False(t, full().Equal(other), must.Sprint(of(other).Type().Field(i).Name))
		}
	}
	utc, here := full(), full()
	here.Tasks[0].StartedAt = here.Tasks[0].StartedAt.In(time.FixedZone("here", 7200))
	must.True(t, utc.Equal(here))
}
