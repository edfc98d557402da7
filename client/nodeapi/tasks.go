package nodeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Tasks acts on the tasks of the node. It is safe for concurrent use. Errors that wrap [ErrUnknown] or
// [ErrState] are the caller's. All others are the node's.
type Tasks interface {
	// List returns the tasks of an allocation, in the order of its job.
	List(ctx context.Context, alloc string) ([]Task, error)
	// Exec runs a command in a task until the command ends, the task ends or the context ends. It
	// returns when nothing uses the streams any more, except that a read of Stdin may be in progress:
	// the caller ends it. The error wraps [ErrTaskEnded] if the end of the task has ended the command.
	Exec(ctx context.Context, t Task, command []string, streams driver.ExecStreams) (driver.ExitResult, error)
	// Signal sends a signal to a task.
	Signal(ctx context.Context, t Task, signal string) error
	// Restart begins a restart of a task, of all tasks that run if task is empty, or with all of the
	// whole allocation in its order. It returns when the restart is certain to come.
	Restart(ctx context.Context, alloc, task string, all bool) error
}

// Task is one task of an allocation.
type Task struct {
	Alloc, Name string
	// ID is the present start of the task.
	ID driver.TaskID
	// State is "pending", "running" or "dead". Running: the task takes commands and signals.
	State   string
	Running bool
	// Driver is the name of its driver. Generation is the number of the driver's process, or zero
	// if none runs. Capabilities are what it can do then.
	Driver       string
	Generation   uint64
	Capabilities driver.Capabilities
}

// Errors of [Tasks].
var (
	// ErrUnknown: the node does not have the allocation or the task.
	ErrUnknown = errors.New("unknown on this node")
	// ErrState: the state of the allocation or of the task does not allow the request.
	ErrState = errors.New("not possible now")
	// ErrTaskEnded: the task has ended, and the command with it.
	ErrTaskEnded = errors.New("the task has ended, and the command with it")
)

// routeTasks registers the requests that act on tasks.
func (h *Handler) routeTasks() {
	h.handle("POST /v1/client/allocation/{id}/exec", h.exec)
	h.handle("GET /v1/client/allocation/{id}/checks", h.checks)
	for _, method := range []string{"PUT", "POST"} {
		h.handle(method+" /v1/client/allocation/{id}/signal", h.signal)
		h.handle(method+" /v1/client/allocation/{id}/restart", h.restart)
	}
}

// maxActBody bounds the body of a signal or a restart, in bytes.
const maxActBody = 64 << 10

// readBody reads a small JSON body.
func readBody(w http.ResponseWriter, r *http.Request, into any) error {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxActBody)).Decode(into); err != nil {
		return refuse(http.StatusBadRequest, "the body is malformed: "+err.Error())
	}
	return nil
}

// answered turns an error of [Tasks] into a refusal.
func answered(err error) error {
	switch {
	case errors.Is(err, ErrUnknown):
		return refuse(http.StatusNotFound, err.Error())
	case errors.Is(err, ErrState):
		return refuse(http.StatusConflict, err.Error())
	}
	return err
}

// list returns the tasks of the allocation in the path.
func (h *Handler) list(r *http.Request) ([]Task, error) {
	if h.options.Tasks == nil {
		return nil, refuse(http.StatusNotImplemented, "this node does not act on tasks")
	}
	tasks, err := h.options.Tasks.List(r.Context(), r.PathValue("id"))
	return tasks, answered(err)
}

// names joins the names of tasks.
func names(tasks []Task) string {
	var all []string
	for _, t := range tasks {
		all = append(all, t.Name)
	}
	return strings.Join(all, ", ")
}

func find(tasks []Task, name string) (Task, error) {
	for _, t := range tasks {
		if t.Name == name {
			return t, nil
		}
	}
	return Task{}, refuse(http.StatusNotFound, fmt.Sprintf("the allocation has no task %q: it has %s", name, names(tasks)))
}

// checkRunning refuses a task that does not run, and one whose driver is away.
func checkRunning(t Task) error {
	switch {
	case !t.Running:
		return refuse(http.StatusConflict, fmt.Sprintf("task %q is %s, and must be running", t.Name, t.State))
	case t.Generation == 0:
		return refuse(http.StatusConflict, fmt.Sprintf("task %q runs, but its driver %s does not: retry later", t.Name, t.Driver))
	}
	return nil
}

// signal answers PUT /v1/client/allocation/{id}/signal. Without a task it signals all that run.
func (h *Handler) signal(w http.ResponseWriter, r *http.Request) error {
	var q wire.SignalRequest
	if err := readBody(w, r, &q); err != nil {
		return err
	}
	tasks, err := h.list(r)
	if err != nil {
		return err
	}
	to, err := signalled(tasks, q)
	if err != nil {
		return err
	}
	for i, t := range to {
		if err := h.options.Tasks.Signal(r.Context(), t, q.Signal); err != nil {
			err = fmt.Errorf("task %q did not get %s: %w", t.Name, q.Signal, err)
			if i > 0 {
				err = fmt.Errorf("%w; got it: %s", err, names(to[:i]))
			}
			return answered(err)
		}
		h.options.Logger.Info("an operator has sent a signal to a task", "alloc", t.Alloc, "task", t.Name, "signal", q.Signal)
	}
	return answerJSON(w, struct{}{})
}

// signalled are the tasks that a request signals: each of them can take the signal.
func signalled(tasks []Task, q wire.SignalRequest) (to []Task, err error) {
	switch {
	case q.Signal == "":
		return nil, refuse(http.StatusBadRequest, "Signal is missing, such as SIGHUP")
	case unix.SignalNum(q.Signal) == 0:
		return nil, refuse(http.StatusBadRequest, fmt.Sprintf("the signal %q is unknown: use a name such as SIGHUP", q.Signal))
	case q.Task != "":
		t, err := find(tasks, q.Task)
		if err != nil {
			return nil, err
		}
		if err := checkRunning(t); err != nil {
			return nil, err
		}
		to = []Task{t}
	default:
		for _, t := range tasks {
			if t.Running {
				to = append(to, t)
			}
		}
	}
	if len(to) == 0 {
		return nil, refuse(http.StatusConflict, "no task of the allocation is running")
	}
	for _, t := range to {
		if err := checkRunning(t); err != nil {
			return nil, err
		}
		if !t.Capabilities.SendSignals {
			return nil, refuse(http.StatusBadRequest, fmt.Sprintf("the driver %s of task %q cannot send signals", t.Driver, t.Name))
		}
	}
	return to, nil
}

// restart answers PUT /v1/client/allocation/{id}/restart, when the node has the restart on disk. The tasks
// stop and start later.
func (h *Handler) restart(w http.ResponseWriter, r *http.Request) error {
	var q wire.RestartRequest
	if err := readBody(w, r, &q); err != nil {
		return err
	}
	if q.AllTasks && q.TaskName != "" {
		return refuse(http.StatusBadRequest, "TaskName and AllTasks exclude each other")
	}
	if h.options.Tasks == nil {
		return refuse(http.StatusNotImplemented, "this node does not act on tasks")
	}
	id := r.PathValue("id")
	if err := h.options.Tasks.Restart(r.Context(), id, q.TaskName, q.AllTasks); err != nil {
		return answered(err)
	}
	h.options.Logger.Info("an operator restarts tasks", "alloc", id, "task", q.TaskName, "all", q.AllTasks)
	return answerJSON(w, struct{}{})
}
