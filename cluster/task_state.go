package cluster

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// TaskStates are the states of an allocation's tasks. They are shared and never written to.
type TaskStates struct {
	// Tasks has at most one state for each task, in the order of the names.
	Tasks []TaskState
}

// TaskPhase is how far a task has come.
type TaskPhase string

// The values of [TaskPhase].
const (
	TaskPending TaskPhase = "pending"
	TaskRunning TaskPhase = "running"
	TaskDead    TaskPhase = "dead"
)

// TaskState is what a client last reported of one task.
type TaskState struct {
	Name  string
	State TaskPhase
	// Failed means that the task ended and failed.
	Failed   bool   `codec:",omitempty"`
	Restarts uint64 `codec:",omitempty"`
	// LastRestart, StartedAt and FinishedAt are zero if it has not happened.
	LastRestart time.Time `codec:",omitempty"`
	StartedAt   time.Time `codec:",omitempty"`
	FinishedAt  time.Time `codec:",omitempty"`
	// Waiting is what the task waits for, to stop or to start, or nil.
	Waiting *TaskWait `codec:",omitempty"`
	// Events are the last [MaxTaskEvents], oldest first.
	Events []TaskEvent `codec:",omitempty"`
}

// TaskEvent is one line of a task's history.
type TaskEvent struct {
	// Type is a short name, such as Started or Terminated.
	Type string
	Time time.Time
	// Message is a sentence for the operator, or empty.
	Message string `codec:",omitempty"`
	// Details are more facts by name, or nil.
	Details map[string]string `codec:",omitempty"`
}

// TaskWait is what a task waits for, to stop or to start.
type TaskWait struct {
	For WaitKind
	// Until is the end of a delay or of the grace, or zero.
	Until time.Time `codec:",omitempty"`
	// Detail names the cause: the driver, or a process with its id and state.
	Detail string `codec:",omitempty"`
}

// WaitKind is the kind of thing that a task waits for.
type WaitKind string

// The values of [WaitKind].
const (
	// WaitShutdownDelay is a shutdown delay of the task or its group.
	WaitShutdownDelay WaitKind = "shutdown delay"
	// WaitGrace is the kill timeout after the kill signal.
	WaitGrace WaitKind = "grace"
	// WaitDriver is a driver that does not answer.
	WaitDriver WaitKind = "driver"
	// WaitDisk is a disk to which the client cannot write.
	WaitDisk WaitKind = "disk"
	// WaitVolume is a volume that must be mounted or unmounted.
	WaitVolume WaitKind = "volume"
	// WaitProcess is a process that cannot be killed, such as one in state D.
	WaitProcess WaitKind = "process"
	// WaitDevice is a device that another start holds, or whose plugin does not run. The task has not
	// started.
	WaitDevice WaitKind = "device"
	// WaitPort is a port that another allocation of the node holds. The task has not started.
	WaitPort WaitKind = "port"
	// WaitCore is a core that another allocation of the node holds. The task has not started.
	WaitCore WaitKind = "core"
)

// Bounds on the states of tasks. Longer texts are cut, and the oldest events are dropped.
const (
	MaxTaskEvents = 10
	// MaxTaskEventBytes bounds each text of an event or of a wait, in bytes.
	MaxTaskEventBytes = 256
	// MaxTaskEventDetails bounds the details of one event, and MaxTaskDetailBytes their keys and
	// values together, in bytes. The first ones in the order of the keys are kept.
	MaxTaskEventDetails = 8
	MaxTaskDetailBytes  = 1 << 10
	// MaxTaskStatesBytes bounds the waits and events of all tasks of an allocation, in bytes. Each task
	// has an equal share.
	MaxTaskStatesBytes = 64 << 10
)

// taskEventBytes is what an event counts beside its texts: a time and the names of the fields.
const taskEventBytes = 64

// State returns the state of the task, or nil. Nil states have none.
func (s *TaskStates) State(task string) *TaskState {
	if s == nil {
		return nil
	}
	at, found := slices.BinarySearchFunc(s.Tasks, task, func(t TaskState, name string) int { return strings.Compare(t.Name, name) })
	if !found {
		return nil
	}
	return &s.Tasks[at]
}

// Equal reports whether both are the same in every field.
func (s *TaskStates) Equal(o *TaskStates) bool {
	if s == nil || o == nil {
		return s == o
	}
	return slices.EqualFunc(s.Tasks, o.Tasks, TaskState.equal)
}

func (t TaskState) equal(o TaskState) bool {
	return t.Name == o.Name && t.State == o.State && t.Failed == o.Failed && t.Restarts == o.Restarts &&
		t.LastRestart.Equal(o.LastRestart) && t.StartedAt.Equal(o.StartedAt) && t.FinishedAt.Equal(o.FinishedAt) &&
		t.Waiting.equal(o.Waiting) && slices.EqualFunc(t.Events, o.Events, TaskEvent.equal)
}

func (e TaskEvent) equal(o TaskEvent) bool {
	return e.Type == o.Type && e.Time.Equal(o.Time) && e.Message == o.Message && maps.Equal(e.Details, o.Details)
}

func (w *TaskWait) equal(o *TaskWait) bool {
	if w == nil || o == nil {
		return w == o
	}
	return w.For == o.For && w.Until.Equal(o.Until) && w.Detail == o.Detail
}

// Bounded returns a copy of what the state of the cluster keeps: the states of tasks of the group,
// in the order of their names, the first of each name, with the last events and bounded texts. It
// leaves out a state that is none of the phases. Nil stays nil.
func (s *TaskStates) Bounded(g *TaskGroup) *TaskStates {
	if s == nil {
		return nil
	}
	expected := map[string]bool{} // a small map needs no heap
	for _, t := range g.taskList() {
		if t != nil {
			expected[t.Name] = true
		}
	}
	kept := &TaskStates{Tasks: make([]TaskState, 0, min(len(s.Tasks), len(expected)))}
	for _, t := range s.Tasks {
		if expected[t.Name] && (t.State == TaskPending || t.State == TaskRunning || t.State == TaskDead) {
			expected[t.Name] = false
			kept.Tasks = append(kept.Tasks, t)
		}
	}
	for i := range kept.Tasks {
		kept.Tasks[i] = kept.Tasks[i].bounded(MaxTaskStatesBytes / len(kept.Tasks))
	}
	slices.SortFunc(kept.Tasks, func(a, b TaskState) int { return strings.Compare(a.Name, b.Name) })
	return kept
}

func (g *TaskGroup) taskList() []*Task {
	if g == nil {
		return nil
	}
	return g.Tasks
}

// bounded returns the state with a wait and events of at most so many bytes. The wait has precedence,
// then the newer event.
func (t TaskState) bounded(room int) TaskState {
	t.LastRestart, t.StartedAt, t.FinishedAt = t.LastRestart.UTC(), t.StartedAt.UTC(), t.FinishedAt.UTC()
	if w := t.Waiting; w != nil {
		t.Waiting = &TaskWait{For: WaitKind(CutText(string(w.For))), Until: w.Until.UTC(), Detail: CutText(w.Detail)}
		if room -= taskEventBytes + len(t.Waiting.For) + len(t.Waiting.Detail); room < 0 {
			t.Waiting = nil
		}
	}
	last := t.Events[max(0, len(t.Events)-MaxTaskEvents):]
	t.Events = nil
	for _, e := range slices.Backward(last) {
		e = e.bounded()
		if room -= e.bytes(); room < 0 {
			break
		}
		if t.Events == nil {
			t.Events = make([]TaskEvent, 0, len(last))
		}
		t.Events = append(t.Events, e)
	}
	slices.Reverse(t.Events)
	return t
}

func (e TaskEvent) bounded() TaskEvent {
	e.Type, e.Message, e.Time = CutText(e.Type), CutText(e.Message), e.Time.UTC()
	if e.Details == nil {
		return e
	}
	var details map[string]string
	room := MaxTaskDetailBytes
	for _, key := range slices.Sorted(maps.Keys(e.Details)) {
		short, value := CutText(key), CutText(e.Details[key])
		if room -= len(short) + len(value); room < 0 || len(details) == MaxTaskEventDetails {
			break
		}
		if details == nil {
			details = make(map[string]string)
		}
		details[short] = value
	}
	e.Details = details
	return e
}

func (e TaskEvent) bytes() int {
	return taskEventBytes + len(e.Type) + len(e.Message) + mapBytes(e.Details)
}

// CutText returns valid UTF-8 of at most [MaxTaskEventBytes]: the beginning of a text that a client
// reports.
func CutText(text string) string {
	text = text[:min(len(text), MaxTaskEventBytes)]
	if utf8.ValidString(text) { // the usual case
		return text
	}
	return strings.ToValidUTF8(text, "")
}

// Copy returns a copy that shares nothing with s.
func (s *TaskStates) Copy() *TaskStates {
	if s == nil {
		return nil
	}
	c := &TaskStates{Tasks: slices.Clone(s.Tasks)}
	for i := range c.Tasks {
		t := &c.Tasks[i]
		if t.Waiting != nil {
			w := *t.Waiting
			t.Waiting = &w
		}
		t.Events = slices.Clone(t.Events)
		for k := range t.Events {
			t.Events[k].Details = maps.Clone(t.Events[k].Details)
		}
	}
	return c
}
