package host

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/schema"
)

// remote is the driver in a process. It is part of an [Instance].
type remote struct {
	calls
	driver       pb.DriverClient
	capabilities driver.Capabilities
	tasks        *schema.Schema // nil for a device plugin
}

// Capabilities implements driver.Driver.
func (r *remote) Capabilities() driver.Capabilities { return r.capabilities }

// Encode implements driver.Driver.
func (r *remote) Encode(config []byte, lookup func(variable string) (string, bool)) ([]byte, error) {
	const name = "Encode"
	if r.tasks == nil {
		return nil, &driver.Error{Class: driver.Unsupported, Call: name, Err: errors.New("the plugin is not a driver")}
	}
	encoded, err := r.tasks.Encode(config, lookup)
	if err != nil {
		return nil, &driver.Error{Class: driver.Fatal, Call: name, Err: err}
	}
	return encoded, nil
}

// Start implements driver.Driver.
func (r *remote) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	const name = "StartTask"
	answer, err := r.driver.StartTask(ctx, &pb.StartTaskRequest{Task: toTask(task)})
	if err != nil {
		return nil, r.fail(ctx, name, err)
	}
	if answer.GetHandle() == nil {
		// Without a handle the task cannot be taken over. The class states that the task may run.
		return nil, &driver.Error{Class: driver.Deadline, Call: name, Err: errors.New("the driver returned no handle")}
	}
	// The handle keeps fields that this version does not have.
	handle, err := proto.MarshalOptions{Deterministic: true}.Marshal(answer.GetHandle())
	if err != nil {
		return nil, &driver.Error{Class: driver.Deadline, Call: name, Err: err}
	}
	return handle, nil
}

// Recover implements driver.Driver.
func (r *remote) Recover(ctx context.Context, id driver.TaskID, handle driver.Handle) error {
	const name = "RecoverTask"
	var h pb.TaskHandle
	if err := proto.Unmarshal(handle, &h); err != nil {
		return &driver.Error{Class: driver.Fatal, Call: name, Err: err}
	}
	if _, err := r.driver.RecoverTask(ctx, &pb.RecoverTaskRequest{TaskId: string(id), Handle: &h}); err != nil {
		return r.fail(ctx, name, err)
	}
	return nil
}

// Wait implements driver.Driver.
func (r *remote) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	const name = "WaitTask"
	answer, err := r.driver.WaitTask(ctx, &pb.WaitTaskRequest{TaskId: string(id)})
	switch {
	case err != nil:
		return driver.ExitResult{}, r.fail(ctx, name, err)
	case answer.GetErr() != "":
		return driver.ExitResult{}, failText(name, answer.GetErr())
	case answer.GetResult() == nil:
		return driver.ExitResult{}, failText(name, "the driver returned no result")
	}
	return fromExit(answer.GetResult()), nil
}

// Stop implements driver.Driver.
func (r *remote) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	if _, err := r.driver.StopTask(ctx, &pb.StopTaskRequest{TaskId: string(id), Timeout: durationpb.New(grace), Signal: signal}); err != nil {
		return r.fail(ctx, "StopTask", err)
	}
	return nil
}

// Destroy implements driver.Driver.
func (r *remote) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	if _, err := r.driver.DestroyTask(ctx, &pb.DestroyTaskRequest{TaskId: string(id), Force: force}); err != nil {
		return r.fail(ctx, "DestroyTask", err)
	}
	return nil
}

// Inspect implements driver.Driver.
func (r *remote) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	const name = "InspectTask"
	answer, err := r.driver.InspectTask(ctx, &pb.InspectTaskRequest{TaskId: string(id)})
	if err != nil {
		return driver.Status{}, r.fail(ctx, name, err)
	}
	if answer.GetTask() == nil {
		return driver.Status{}, failText(name, "the driver returned no status")
	}
	return fromStatus(answer), nil
}

// Signal implements driver.Driver.
func (r *remote) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	if _, err := r.driver.SignalTask(ctx, &pb.SignalTaskRequest{TaskId: string(id), Signal: signal}); err != nil {
		return r.fail(ctx, "SignalTask", err)
	}
	return nil
}

// Exec implements driver.Driver.
func (r *remote) Exec(ctx context.Context, id driver.TaskID, command []string, timeout time.Duration) (driver.Output, error) {
	const name = "ExecTask"
	answer, err := r.driver.ExecTask(ctx, &pb.ExecTaskRequest{TaskId: string(id), Command: command, Timeout: durationpb.New(timeout)})
	switch {
	case err != nil:
		return driver.Output{}, r.fail(ctx, name, err)
	case answer.GetResult() == nil:
		return driver.Output{}, failText(name, "the driver returned no result")
	}
	return driver.Output{Stdout: answer.GetStdout(), Stderr: answer.GetStderr(), Exit: fromExit(answer.GetResult())}, nil
}

// CreateNetwork implements driver.Driver.
func (r *remote) CreateNetwork(ctx context.Context, alloc, hostname string) (*driver.Network, bool, error) {
	answer, err := r.driver.CreateNetwork(ctx, &pb.CreateNetworkRequest{AllocId: alloc, Hostname: hostname})
	if err != nil {
		return nil, false, r.fail(ctx, "CreateNetwork", err)
	}
	return fromNetwork(answer.GetIsolationSpec()), answer.GetCreated(), nil
}

// DestroyNetwork implements driver.Driver.
func (r *remote) DestroyNetwork(ctx context.Context, alloc string, network *driver.Network) error {
	if _, err := r.driver.DestroyNetwork(ctx, &pb.DestroyNetworkRequest{AllocId: alloc, IsolationSpec: toNetwork(network)}); err != nil {
		return r.fail(ctx, "DestroyNetwork", err)
	}
	return nil
}
