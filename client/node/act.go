package node

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// operators handles requests of operators for tasks. It starts no goroutine.
type operators struct {
	core    client.Operator
	drivers *drivers
	// life ends when the node stops.
	life context.Context
}

var _ nodeapi.Tasks = (*operators)(nil)

// operators returns the handler of operators' requests for the node's tasks.
func (n *Node) operators() *operators {
	return &operators{core: n.core.Operator(), drivers: n.shell.drivers, life: n.shell.life}
}

// endDelay bounds the wait for the end of a task after the end of a command in it. The end of the task may
// have ended the command.
const endDelay = 2 * time.Second

// answer is an answer of the core.
type answer[T any] struct {
	value T
	err   error
}

// await returns an answer of the core.
func await[T any](ctx context.Context, o *operators, answers <-chan answer[T]) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var none T
	select {
	case a := <-answers:
		return a.value, refusalOf(a.err)
	case <-ctx.Done():
		return none, fmt.Errorf("the client does not answer: %w", ctx.Err())
	case <-o.life.Done():
		return none, errors.New("the client is stopping")
	}
}

// refusalOf converts an error of the core into an error of [nodeapi.Tasks].
func refusalOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrUnknownAlloc), errors.Is(err, client.ErrUnknownTask):
		return fmt.Errorf("%w: %w", nodeapi.ErrUnknown, err)
	case errors.Is(err, client.ErrNotRunning):
		return fmt.Errorf("%w: %w", nodeapi.ErrState, err)
	}
	return err
}

// List implements [nodeapi.Tasks].
func (o *operators) List(ctx context.Context, alloc string) ([]nodeapi.Task, error) {
	answers := make(chan answer[[]client.TaskInfo], 1)
	o.core.Tasks(cluster.AllocID(alloc), func(infos []client.TaskInfo, err error) {
		answers <- answer[[]client.TaskInfo]{infos, err} // it has room
	})
	infos, err := await(ctx, o, answers)
	if err != nil {
		return nil, err
	}
	tasks := make([]nodeapi.Task, len(infos))
	for i, t := range infos {
		tasks[i] = nodeapi.Task{
			Alloc: alloc, Name: t.Ref.Task, ID: t.Ref.ID, State: t.State, Running: t.Running,
			Driver: t.Ref.Driver, Generation: uint64(t.Ref.Generation), Capabilities: t.Capabilities,
		}
	}
	return tasks, nil
}

// refOf names the start of a task.
func refOf(t nodeapi.Task) client.TaskRef {
	return client.TaskRef{Alloc: cluster.AllocID(t.Alloc), Task: t.Name, ID: t.ID, Driver: t.Driver, Generation: client.Generation(t.Generation)}
}

// Exec implements [nodeapi.Tasks].
func (o *operators) Exec(ctx context.Context, t nodeapi.Task, command []string, streams driver.ExecStreams) (driver.ExitResult, error) {
	ref := refOf(t)
	// A server that was restarted without tokens forwards commands of every user.
	if err := o.drivers.trust.check(ctx, ref.Driver); err != nil {
		return driver.ExitResult{}, err
	}
	i, err := o.drivers.instance("ExecTaskStreaming", ref.Driver, ref.Generation)
	if err != nil {
		return driver.ExitResult{}, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(o.life, func() { end(errors.New("the client is stopping")) })()
	defer o.core.Follow(ref, func() { end(nodeapi.ErrTaskEnded) })()
	exit, err := i.ExecStreaming(ctx, ref.ID, command, streams)
	if exit.Signal == int(syscall.SIGKILL) || err != nil && !o.runs(ctx, ref) {
		sleep(ctx, endDelay)
	}
	if why := context.Cause(ctx); errors.Is(why, nodeapi.ErrTaskEnded) {
		return exit, why
	}
	return exit, err
}

// runs reports whether the task runs, by its driver. If it runs, a failed command has failed
// by itself, for example because it does not exist.
func (o *operators) runs(ctx context.Context, ref client.TaskRef) bool {
	ctx, cancel := context.WithTimeout(ctx, endDelay)
	defer cancel()
	d, leave, err := o.drivers.enter(ctx, "InspectTask", ref.Driver, ref.Generation)
	if err != nil {
		return false
	}
	defer leave()
	status, err := d.Inspect(ctx, ref.ID)
	return err == nil && status.State == driver.TaskRunning
}

// Signal implements [nodeapi.Tasks].
func (o *operators) Signal(ctx context.Context, t nodeapi.Task, signal string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ref := refOf(t)
	d, leave, err := o.drivers.enter(ctx, "SignalTask", ref.Driver, ref.Generation)
	if err != nil {
		return err
	}
	defer leave()
	if err := d.Signal(ctx, ref.ID, signal); err != nil {
		if driver.ClassOf(err) == driver.NotFound {
			return fmt.Errorf("%w: the task has ended", nodeapi.ErrState)
		}
		return err
	}
	o.core.Signaled(ref, signal)
	return nil
}

// Restart implements [nodeapi.Tasks].
func (o *operators) Restart(ctx context.Context, alloc, task string, all bool) error {
	answers := make(chan answer[struct{}], 1)
	o.core.Restart(cluster.AllocID(alloc), task, all, func(err error) {
		answers <- answer[struct{}]{err: err} // it has room
	})
	_, err := await(ctx, o, answers)
	return err
}
