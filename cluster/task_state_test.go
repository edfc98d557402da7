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
	must.MapLen(t, cluster.MaxTaskEventDetails, server.Events[0].Details)
	must.Eq(t, strings.Repeat("ü", 128), server.Events[0].Details["07"])
	must.True(t, got.Equal(got.Bounded(group)), must.Sprint("a second time changes nothing"))

	must.Nil(t, got.State("cleanup"))
	must.Nil(t, (*cluster.TaskStates)(nil).State("server"))
	must.Nil(t, (*cluster.TaskStates)(nil).Bounded(group))
	must.SliceEmpty(t, got.Bounded(nil).Tasks, must.Sprint("an allocation that has lost its job"))
	must.Eq(t, "xy", (&cluster.TaskStates{Tasks: []cluster.TaskState{
		{Name: "server", State: cluster.TaskDead, Events: []cluster.TaskEvent{{Type: "x\xffy"}}},
	}}).Bounded(group).Tasks[0].Events[0].Type)
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
