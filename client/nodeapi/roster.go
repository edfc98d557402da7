package nodeapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Roster records which tasks the node has, and measures them. Its methods are safe for concurrent use.
type Roster interface {
	// Tasks returns the tasks of an allocation, in the order of its group, and a channel that is closed
	// when one of them changes. Known is false if the node does not have the allocation.
	Tasks(alloc string) (tasks []TaskState, changed <-chan struct{}, known bool)
	// Usage measures what a running task uses. It returns when the context ends.
	Usage(ctx context.Context, alloc, task string) (driver.Usage, error)
}

// TaskState is what readers need of a task.
type TaskState struct {
	Name string
	// Running: the task has been started and has not ended.
	Running bool
	// Dead: the task does not start again, and its log is complete.
	Dead bool
	// Devices are those that the plan gave to the task. They are shared and never written to.
	Devices []cluster.AssignedDevice
}

// allocation returns the tasks of the allocation that a request names.
func (h *reader) allocation(r *http.Request) (alloc string, tasks []TaskState, changed <-chan struct{}, err error) {
	alloc = r.PathValue("alloc")
	tasks, changed, known := h.options.Roster.Tasks(alloc)
	if !known {
		err = refuse(http.StatusNotFound, fmt.Sprintf("the node does not have allocation %q", alloc))
	}
	return alloc, tasks, changed, err
}

func stateOf(alloc string, tasks []TaskState, name string) (TaskState, error) {
	for _, t := range tasks {
		if t.Name == name {
			return t, nil
		}
	}
	return TaskState{}, refuse(http.StatusNotFound, fmt.Sprintf("allocation %q has no task %q", alloc, name))
}
