package wire

import (
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// TaskState is the state of one task. If the client reports allocations and not tasks, as simulated
// clients do, State and Failed follow from the allocation's ClientStatus, and the times are null.
type TaskState struct {
	// State is pending, running or dead.
	State       string
	Failed      bool
	Restarts    uint64
	LastRestart Time
	StartedAt   Time
	FinishedAt  Time
	// Events are the last ten, oldest first.
	Events []*TaskEvent
	// Waiting is what the task waits for, to stop or to start, or nil. Ours.
	Waiting *TaskWait `json:",omitempty"`
}

// TaskEvent is one event of a task's history.
type TaskEvent struct {
	Type string
	// Time is in Unix nanoseconds.
	Time int64
	// DisplayMessage and Message are the same text in an answer. In a report only Message is set.
	DisplayMessage string
	Message        string
	Details        map[string]string
}

// TaskWait is what a stopping task waits for. Ours.
type TaskWait struct {
	// For is "shutdown delay", "grace", "driver" or "process".
	For string
	// Until is the end of a delay or of the grace.
	Until Time `json:",omitzero"`
	// Detail names the driver or the process.
	Detail string `json:",omitempty"`
}

// taskStates returns the states of the allocation's tasks, never nil. A task of an allocation that
// never ran has none, as in the reference.
func taskStates(a *cluster.Allocation) map[string]*TaskState {
	if a.TaskStates != nil {
		return newTaskStates(a.TaskStates)
	}
	states := map[string]*TaskState{}
	state := cluster.TaskDead
	switch a.ClientStatus {
	case cluster.ClientPending:
		return states
	case cluster.ClientRunning, cluster.ClientUnknown:
		state = cluster.TaskRunning
	}
	if g := a.Job.Group(a.TaskGroup); g != nil {
		for _, t := range g.Tasks {
			if t != nil {
				states[t.Name] = &TaskState{State: string(state), Failed: a.ClientStatus == cluster.ClientFailed, Events: []*TaskEvent{}}
			}
		}
	}
	return states
}

func newTaskStates(s *cluster.TaskStates) map[string]*TaskState {
	states := make(map[string]*TaskState, len(s.Tasks))
	for _, t := range s.Tasks {
		w := &TaskState{
			State: string(t.State), Failed: t.Failed, Restarts: t.Restarts,
			LastRestart: NewTime(t.LastRestart), StartedAt: NewTime(t.StartedAt), FinishedAt: NewTime(t.FinishedAt),
			Events: []*TaskEvent{},
		}
		w.Waiting = newTaskWait(t.Waiting)
		for _, e := range t.Events {
			w.Events = append(w.Events, &TaskEvent{
				Type: e.Type, Time: unixNano(e.Time), DisplayMessage: e.Message, Message: e.Message, Details: object(e.Details),
			})
		}
		states[t.Name] = w
	}
	return states
}

func newTaskWait(w *cluster.TaskWait) *TaskWait {
	if w == nil {
		return nil
	}
	return &TaskWait{For: string(w.For), Until: NewTime(w.Until), Detail: w.Detail}
}

// NewTaskWaits returns what tasks wait for, by task, or nil if none waits. Nil states have none.
func NewTaskWaits(s *cluster.TaskStates) map[string]*TaskWait {
	var waits map[string]*TaskWait
	if s == nil {
		return nil
	}
	for _, t := range s.Tasks {
		if t.Waiting == nil {
			continue
		}
		if waits == nil {
			waits = make(map[string]*TaskWait)
		}
		waits[t.Name] = newTaskWait(t.Waiting)
	}
	return waits
}

// reportedStates returns the states in the order of the names, or nil for none.
func reportedStates(w map[string]*TaskState) *cluster.TaskStates {
	if w == nil {
		return nil
	}
	s := new(cluster.TaskStates)
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if w[name] != nil {
			s.Tasks = append(s.Tasks, w[name].state(name))
		}
	}
	return s
}

func (w *TaskState) state(name string) cluster.TaskState {
	t := cluster.TaskState{
		Name: name, State: cluster.TaskPhase(w.State), Failed: w.Failed, Restarts: w.Restarts,
		LastRestart: w.LastRestart.Time, StartedAt: w.StartedAt.Time, FinishedAt: w.FinishedAt.Time,
	}
	if w.Waiting != nil {
		t.Waiting = &cluster.TaskWait{For: cluster.WaitKind(w.Waiting.For), Until: w.Waiting.Until.Time, Detail: w.Waiting.Detail}
	}
	for _, e := range w.Events {
		if e == nil {
			continue
		}
		event := cluster.TaskEvent{Type: e.Type, Time: fromUnixNano(e.Time), Message: e.Message}
		if len(e.Details) > 0 {
			event.Details = e.Details
		}
		t.Events = append(t.Events, event)
	}
	return t
}

// newDrivers returns the drivers, never nil.
func newDrivers(drivers map[string]*cluster.DriverInfo) map[string]*Driver {
	w := make(map[string]*Driver, len(drivers))
	for name, d := range drivers {
		if d != nil {
			w[name] = &Driver{
				Attributes: object(d.Attributes), Detected: d.Detected, Healthy: d.Healthy,
				HealthDescription: d.HealthDescription, UpdateTime: NewTime(d.UpdateTime),
			}
		}
	}
	return w
}

// registeredDrivers returns the drivers of a registration, or nil for none.
func registeredDrivers(w map[string]*Driver) map[string]*cluster.DriverInfo {
	if len(w) == 0 {
		return nil
	}
	drivers := make(map[string]*cluster.DriverInfo, len(w))
	for name, d := range w {
		if d == nil {
			drivers[name] = nil // refused later
			continue
		}
		drivers[name] = &cluster.DriverInfo{
			Detected: d.Detected, Healthy: d.Healthy, HealthDescription: d.HealthDescription, UpdateTime: d.UpdateTime.Time,
		}
		if len(d.Attributes) > 0 {
			drivers[name].Attributes = d.Attributes
		}
	}
	return drivers
}
