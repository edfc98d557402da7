package nodeapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/client/driver"
)

// Tasks knows the tasks of the node. Its methods are safe for concurrent use.
type Tasks interface {
	// Tasks returns the tasks of an allocation, in the order of its group, and a channel that is closed
	// when one of them changes. Known is false if the node does not have the allocation.
	Tasks(alloc string) (tasks []Task, changed <-chan struct{}, known bool)
	// Usage measures what a running task uses. It returns when the context ends.
	Usage(ctx context.Context, alloc, task string) (driver.Usage, error)
}

// Task is what the node knows of a task.
type Task struct {
	Name string
	// Running: the task has been started and has not ended.
	Running bool
	// Dead: the task does not start again, and its log is complete.
	Dead bool
}

// allocation returns the tasks of the allocation that a request names.
func (h *Handler) allocation(r *http.Request) (alloc string, tasks []Task, changed <-chan struct{}, err error) {
	alloc = r.PathValue("alloc")
	tasks, changed, known := h.options.Tasks.Tasks(alloc)
	if !known {
		err = refuse(http.StatusNotFound, fmt.Sprintf("the node does not have allocation %q", alloc))
	}
	return alloc, tasks, changed, err
}

// find returns the task with a name.
func find(alloc string, tasks []Task, name string) (Task, error) {
	for _, t := range tasks {
		if t.Name == name {
			return t, nil
		}
	}
	return Task{}, refuse(http.StatusNotFound, fmt.Sprintf("allocation %q has no task %q", alloc, name))
}
