package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/schema"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// containers is a driver that runs containers.
type containers struct {
	pb.UnimplementedDriverServer
	behavior
	machine string
	// fingerprinted: the client has read a fingerprint.
	fingerprinted atomic.Bool

	mu    sync.Mutex
	tasks map[string]container // that this process has, by id; guarded by mu
}

// behavior is how a driver differs from others.
type behavior struct {
	name  string
	tasks *sdk.Spec
	files pb.DriverCapabilities_FSIsolation
	// waitsEarly: WaitTask answers with code 0 as soon as a container is stopping.
	waitsEarly bool
	// needsFingerprint: StartTask panics before a fingerprint was read.
	needsFingerprint bool
	// forgetful: RecoverTask always fails, and tasks of an earlier process run on.
	forgetful bool
}

func podman(dir string) *identity {
	return driverPlugin(dir, "0.5.2", podmanSchema(), behavior{
		name: "podman", tasks: podmanTask(), files: pb.DriverCapabilities_IMAGE, waitsEarly: true, needsFingerprint: true,
	})
}

func lxc(dir string) *identity {
	return driverPlugin(dir, "0.3.0", sdk.Object(nil), behavior{name: "lxc", tasks: commandTask(), files: pb.DriverCapabilities_IMAGE})
}

func skeleton(dir string) *identity {
	return driverPlugin(dir, "0.1.0", sdk.Object(map[string]*sdk.Spec{"shell": sdk.Default(sdk.Attribute("string", false), `"bash"`)}), behavior{
		name: "skeleton", tasks: commandTask(), forgetful: true,
	})
}

func driverPlugin(dir, version string, own *sdk.Spec, b behavior) *identity {
	d := &containers{behavior: b, machine: dir, tasks: make(map[string]container)}
	return &identity{
		kind: base.PluginType_DRIVER, name: b.name, version: version, schema: own,
		register: func(s *grpc.Server) { pb.RegisterDriverServer(s, d) },
	}
}

func (d *containers) TaskConfigSchema(context.Context, *pb.TaskConfigSchemaRequest) (*pb.TaskConfigSchemaResponse, error) {
	return &pb.TaskConfigSchemaResponse{Spec: d.behavior.tasks}, nil
}

func (d *containers) Capabilities(context.Context, *pb.CapabilitiesRequest) (*pb.CapabilitiesResponse, error) {
	return &pb.CapabilitiesResponse{Capabilities: &pb.DriverCapabilities{SendSignals: true, FsIsolation: d.files}}, nil
}

func (d *containers) Fingerprint(_ *pb.FingerprintRequest, stream grpc.ServerStreamingServer[pb.FingerprintResponse]) error {
	for {
		if err := stream.Send(&pb.FingerprintResponse{
			Health: pb.FingerprintResponse_HEALTHY, HealthDescription: "Healthy",
			Attributes: map[string]*structs.Attribute{"driver." + d.name: {Value: &structs.Attribute_BoolVal{BoolVal: true}}},
		}); err != nil {
			return err
		}
		d.fingerprinted.Store(true)
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(30 * time.Second):
		}
	}
}

// unknown is the error of a task that the driver does not have.
func unknown() error { return status.Error(codes.Unknown, "task not found for given id") }

func (d *containers) task(id string) (container, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, is := d.tasks[id]; is {
		return c, nil
	}
	return container{}, unknown()
}

func (d *containers) add(id string, c container) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tasks[id] = c
}

func (d *containers) StartTask(_ context.Context, r *pb.StartTaskRequest) (*pb.StartTaskResponse, error) {
	if d.needsFingerprint && !d.fingerprinted.Load() {
		panic("runtime error: invalid memory address or nil pointer dereference")
	}
	task := r.GetTask()
	var config struct {
		Command string   `codec:"command"`
		Args    []string `codec:"args"`
	}
	if err := schema.Decode(task.GetMsgpackDriverConfig(), &config); err != nil {
		return nil, status.Error(codes.Unknown, "failed to decode driver config: "+err.Error())
	}
	path, err := exec.LookPath(config.Command)
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	env := []string{"PATH=" + os.Getenv("PATH")} // a variable of the task comes later, and counts
	for name, value := range task.GetEnv() {
		env = append(env, name+"="+value)
	}
	c := containerOf(d.machine, task.GetId())
	if err := c.start(append([]string{path}, config.Args...), env, task.GetStdoutPath(), task.GetStderrPath()); err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	d.add(task.GetId(), c)
	// The state of the handle stays unknown, and the config in it has no driver config.
	return &pb.StartTaskResponse{Handle: &pb.TaskHandle{Version: 1, Config: task, DriverState: []byte(c.dir)}}, nil
}

func (d *containers) RecoverTask(_ context.Context, r *pb.RecoverTaskRequest) (*pb.RecoverTaskResponse, error) {
	id := r.GetHandle().GetConfig().GetId()
	if _, err := d.task(id); err == nil {
		return &pb.RecoverTaskResponse{}, nil
	}
	c := container{string(r.GetHandle().GetDriverState())}
	switch {
	case d.forgetful:
		return nil, status.Error(codes.Unknown, "failed to decode driver config: EOF")
	case !c.exists():
		return nil, unknown()
	}
	d.add(id, c)
	return &pb.RecoverTaskResponse{}, nil
}

func (d *containers) WaitTask(ctx context.Context, r *pb.WaitTaskRequest) (*pb.WaitTaskResponse, error) {
	c, err := d.task(r.GetTaskId())
	if err != nil {
		return nil, err
	}
	for {
		code, ended := c.exited()
		if ended {
			return &pb.WaitTaskResponse{Result: &pb.ExitResult{ExitCode: int32(code)}}, nil
		}
		if d.waitsEarly && c.stopping() {
			return &pb.WaitTaskResponse{Result: &pb.ExitResult{}}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (d *containers) StopTask(_ context.Context, r *pb.StopTaskRequest) (*pb.StopTaskResponse, error) {
	c, err := d.task(r.GetTaskId())
	if err != nil {
		return nil, err
	}
	signal := syscall.SIGTERM
	if r.GetSignal() != "" {
		if signal = unix.SignalNum(r.GetSignal()); signal == 0 {
			return nil, status.Error(codes.Unknown, "invalid signal: "+r.GetSignal())
		}
	}
	if err := c.stop(signal, r.GetTimeout().AsDuration()); err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &pb.StopTaskResponse{}, nil
}

func (d *containers) DestroyTask(_ context.Context, r *pb.DestroyTaskRequest) (*pb.DestroyTaskResponse, error) {
	c, err := d.task(r.GetTaskId())
	if err != nil {
		return nil, err
	}
	if _, ended := c.exited(); !ended && !r.GetForce() {
		return nil, status.Error(codes.Unknown, "cannot destroy running task")
	}
	if err := c.remove(); err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tasks, r.GetTaskId())
	return &pb.DestroyTaskResponse{}, nil
}

func (d *containers) InspectTask(_ context.Context, r *pb.InspectTaskRequest) (*pb.InspectTaskResponse, error) {
	c, err := d.task(r.GetTaskId())
	if err != nil {
		return nil, err
	}
	// A running task ended in the year 1.
	task := &pb.TaskStatus{Id: r.GetTaskId(), State: pb.TaskState_RUNNING, CompletedAt: timestamppb.New(time.Time{})}
	if code, ended := c.exited(); ended {
		task.State, task.Result = pb.TaskState_EXITED, &pb.ExitResult{ExitCode: int32(code)}
	}
	return &pb.InspectTaskResponse{Task: task, Driver: &pb.TaskDriverStatus{}}, nil
}

// TaskEvents does not notice that the client has closed the stream.
func (*containers) TaskEvents(*pb.TaskEventsRequest, grpc.ServerStreamingServer[pb.DriverTaskEvent]) error {
	select {}
}

func (d *containers) SignalTask(_ context.Context, r *pb.SignalTaskRequest) (*pb.SignalTaskResponse, error) {
	c, err := d.task(r.GetTaskId())
	switch {
	case err != nil:
		return nil, err
	case d.forgetful:
		return nil, status.Error(codes.Unknown, "This driver does not support signals")
	}
	c.signal(unix.SignalNum(strings.ToUpper(r.GetSignal())))
	return &pb.SignalTaskResponse{}, nil
}
