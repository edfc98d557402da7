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
	client       pb.DriverClient
	capabilities driver.Capabilities
	tasks        *schema.Schema
}

var _ driver.Driver = (*remote)(nil)

// Capabilities implements driver.Driver.
func (r *remote) Capabilities() driver.Capabilities { return r.capabilities }

// Encode implements driver.Driver.
func (r *remote) Encode(config []byte, lookup func(variable string) (string, bool)) ([]byte, error) {
	encoded, err := r.tasks.Encode(config, lookup)
	if err != nil {
		return nil, &driver.Error{Class: driver.Fatal, Call: "Encode", Err: err}
	}
	return encoded, nil
}

// Start implements driver.Driver.
func (r *remote) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	const name = "StartTask"
	answer, err := invoke(ctx, &r.calls, r.client.StartTask, name, &pb.StartTaskRequest{Task: toTask(task)})
	if err != nil {
		return nil, err
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
	_, err := invoke(ctx, &r.calls, r.client.RecoverTask, name, &pb.RecoverTaskRequest{TaskId: string(id), Handle: &h})
	return err
}

// Wait implements driver.Driver.
func (r *remote) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	const name = "WaitTask"
	answer, err := invoke(ctx, &r.calls, r.client.WaitTask, name, &pb.WaitTaskRequest{TaskId: string(id)})
	switch {
	case err != nil:
		return driver.ExitResult{}, err
	case answer.GetErr() != "":
		return driver.ExitResult{}, failText(name, answer.GetErr())
	case answer.GetResult() == nil:
		return driver.ExitResult{}, failText(name, "the driver returned no result")
	}
	return fromExit(answer.GetResult()), nil
}

// Stop implements driver.Driver.
func (r *remote) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	_, err := invoke(ctx, &r.calls, r.client.StopTask, "StopTask", &pb.StopTaskRequest{TaskId: string(id), Timeout: durationpb.New(grace), Signal: signal})
	return err
}

// Destroy implements driver.Driver.
func (r *remote) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	_, err := invoke(ctx, &r.calls, r.client.DestroyTask, "DestroyTask", &pb.DestroyTaskRequest{TaskId: string(id), Force: force})
	return err
}

// Inspect implements driver.Driver.
func (r *remote) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	const name = "InspectTask"
	answer, err := invoke(ctx, &r.calls, r.client.InspectTask, name, &pb.InspectTaskRequest{TaskId: string(id)})
	if err != nil {
		return driver.Status{}, err
	}
	if answer.GetTask() == nil {
		return driver.Status{}, failText(name, "the driver returned no status")
	}
	return fromStatus(answer), nil
}

// Signal implements driver.Driver.
func (r *remote) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	_, err := invoke(ctx, &r.calls, r.client.SignalTask, "SignalTask", &pb.SignalTaskRequest{TaskId: string(id), Signal: signal})
	return err
}
