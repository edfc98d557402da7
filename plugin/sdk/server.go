package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
)

// server serves a driver.
type server struct {
	pb.UnimplementedDriverServer
	driver Driver
}

func (s *server) TaskConfigSchema(context.Context, *pb.TaskConfigSchemaRequest) (*pb.TaskConfigSchemaResponse, error) {
	return &pb.TaskConfigSchemaResponse{Spec: orEmpty(s.driver.Info().TaskSchema)}, nil
}

func (s *server) Capabilities(context.Context, *pb.CapabilitiesRequest) (*pb.CapabilitiesResponse, error) {
	return &pb.CapabilitiesResponse{Capabilities: fromCapabilities(s.driver.Capabilities())}, nil
}

func (s *server) Fingerprint(_ *pb.FingerprintRequest, stream grpc.ServerStreamingServer[pb.FingerprintResponse]) error {
	ctx, send := sender(stream)
	return ended(ctx, s.driver.Fingerprints(ctx, func(f driver.Fingerprint) {
		out := &pb.FingerprintResponse{
			Health:            pb.FingerprintResponse_HealthState(f.Health),
			HealthDescription: f.Description,
			Attributes:        map[string]*structs.Attribute{},
		}
		for key, value := range f.Attributes {
			out.Attributes[key] = &structs.Attribute{Value: &structs.Attribute_StringVal{StringVal: value}}
		}
		send(out)
	}))
}

func (s *server) StartTask(ctx context.Context, req *pb.StartTaskRequest) (*pb.StartTaskResponse, error) {
	if req.GetTask().GetId() == "" {
		return nil, status.Error(codes.Unknown, "the task has no id")
	}
	state, err := s.driver.Start(ctx, toTask(req.GetTask()))
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.StartTaskResponse{Handle: &pb.TaskHandle{
		Version:     s.driver.Info().HandleVersion,
		Config:      req.GetTask(),
		State:       pb.TaskState_RUNNING,
		DriverState: state,
	}}, nil
}

func (s *server) RecoverTask(ctx context.Context, req *pb.RecoverTaskRequest) (*pb.RecoverTaskResponse, error) {
	h := req.GetHandle()
	if h.GetConfig().GetId() == "" {
		return nil, status.Error(codes.Unknown, "the handle has no task id")
	}
	err := checkVersion(s.driver.Info(), h.GetVersion())
	if err == nil {
		err = s.driver.Recover(ctx, toTask(h.GetConfig()), h.GetVersion(), h.GetDriverState())
	}
	return answer(&pb.RecoverTaskResponse{}, err)
}

func (s *server) WaitTask(ctx context.Context, req *pb.WaitTaskRequest) (*pb.WaitTaskResponse, error) {
	exit, err := s.driver.Wait(ctx, driver.TaskID(req.GetTaskId()))
	if err != nil {
		return nil, toStatus(err)
	}
	if exit.Unknown {
		return &pb.WaitTaskResponse{Err: "the task has ended and its exit result is lost"}, nil
	}
	return &pb.WaitTaskResponse{Result: fromExit(exit)}, nil
}

func (s *server) StopTask(ctx context.Context, req *pb.StopTaskRequest) (*pb.StopTaskResponse, error) {
	err := s.driver.Stop(ctx, driver.TaskID(req.GetTaskId()), req.GetTimeout().AsDuration(), req.GetSignal())
	return answer(&pb.StopTaskResponse{}, err)
}

func (s *server) DestroyTask(ctx context.Context, req *pb.DestroyTaskRequest) (*pb.DestroyTaskResponse, error) {
	return answer(&pb.DestroyTaskResponse{}, s.driver.Destroy(ctx, driver.TaskID(req.GetTaskId()), req.GetForce()))
}

func (s *server) InspectTask(ctx context.Context, req *pb.InspectTaskRequest) (*pb.InspectTaskResponse, error) {
	st, err := s.driver.Inspect(ctx, driver.TaskID(req.GetTaskId()))
	if err != nil {
		return nil, toStatus(err)
	}
	task := &pb.TaskStatus{Id: string(st.ID), Name: st.Name, State: pb.TaskState(st.State), StartedAt: fromTime(st.StartedAt), CompletedAt: fromTime(st.CompletedAt)}
	if st.Exit != nil && !st.Exit.Unknown {
		task.Result = fromExit(*st.Exit)
	}
	return &pb.InspectTaskResponse{Task: task, Driver: &pb.TaskDriverStatus{Attributes: st.Attributes}}, nil
}

func (s *server) TaskStats(req *pb.TaskStatsRequest, stream grpc.ServerStreamingServer[pb.TaskStatsResponse]) error {
	d, ok := s.driver.(StatsSource)
	if !ok {
		return s.unsupported("TaskStats")
	}
	interval := req.GetCollectionInterval().AsDuration()
	if interval <= 0 {
		interval = time.Second
	}
	ctx, send := sender(stream)
	return ended(ctx, d.Stats(ctx, driver.TaskID(req.GetTaskId()), interval, func(u driver.Usage) {
		send(&pb.TaskStatsResponse{Stats: &pb.TaskStats{
			Id:        req.GetTaskId(),
			Timestamp: timestamppb.New(u.Time),
			AggResourceUsage: &pb.TaskResourceUsage{
				Cpu:    &pb.CPUUsage{Percent: u.CPUPercent, MeasuredFields: []pb.CPUUsage_Fields{pb.CPUUsage_PERCENT}},
				Memory: &pb.MemoryUsage{Rss: u.RSS, MeasuredFields: []pb.MemoryUsage_Fields{pb.MemoryUsage_RSS}},
			},
		}})
	}))
}

func (s *server) TaskEvents(_ *pb.TaskEventsRequest, stream grpc.ServerStreamingServer[pb.DriverTaskEvent]) error {
	ctx, send := sender(stream)
	d, ok := s.driver.(EventSource)
	if !ok {
		<-ctx.Done() // a driver without events keeps the stream open
		return nil
	}
	return ended(ctx, d.Events(ctx, func(e driver.Event) {
		send(&pb.DriverTaskEvent{TaskId: string(e.Task), Timestamp: timestamppb.New(e.Time), Message: e.Message, Annotations: e.Annotations})
	}))
}

func (s *server) SignalTask(ctx context.Context, req *pb.SignalTaskRequest) (*pb.SignalTaskResponse, error) {
	d, ok := s.driver.(Signaler)
	if !ok {
		return nil, s.unsupported("SignalTask")
	}
	return answer(&pb.SignalTaskResponse{}, d.Signal(ctx, driver.TaskID(req.GetTaskId()), req.GetSignal()))
}

func (s *server) ExecTask(ctx context.Context, req *pb.ExecTaskRequest) (*pb.ExecTaskResponse, error) {
	d, ok := s.driver.(Execer)
	if !ok {
		return nil, s.unsupported("ExecTask")
	}
	out, err := d.Exec(ctx, driver.TaskID(req.GetTaskId()), req.GetCommand(), req.GetTimeout().AsDuration())
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.ExecTaskResponse{Stdout: out.Stdout, Stderr: out.Stderr, Result: fromExit(out.Exit)}, nil
}

func (s *server) CreateNetwork(ctx context.Context, req *pb.CreateNetworkRequest) (*pb.CreateNetworkResponse, error) {
	d, ok := s.driver.(Networker)
	if !ok {
		return nil, s.unsupported("CreateNetwork")
	}
	network, created, err := d.CreateNetwork(ctx, req.GetAllocId(), req.GetHostname())
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.CreateNetworkResponse{IsolationSpec: fromNetwork(network), Created: created}, nil
}

func (s *server) DestroyNetwork(ctx context.Context, req *pb.DestroyNetworkRequest) (*pb.DestroyNetworkResponse, error) {
	d, ok := s.driver.(Networker)
	if !ok {
		return nil, s.unsupported("DestroyNetwork")
	}
	return answer(&pb.DestroyNetworkResponse{}, d.DestroyNetwork(ctx, req.GetAllocId(), toNetwork(req.GetIsolationSpec())))
}

func (s *server) Shutdown(ctx context.Context, _ *pb.ShutdownRequest) (*pb.ShutdownResponse, error) {
	d, ok := s.driver.(Closer)
	if !ok {
		return nil, s.unsupported("Shutdown")
	}
	return answer(&pb.ShutdownResponse{}, d.Close(ctx))
}

func (s *server) unsupported(call string) error {
	return status.Errorf(codes.Unimplemented, "the %s driver has no %s", s.driver.Info().Name, call)
}

// sender returns the context of a stream and a function that sends on it. After an error of a send
// the context ends.
func sender[M any](stream grpc.ServerStreamingServer[M]) (context.Context, func(*M)) {
	ctx, cancel := context.WithCancelCause(stream.Context())
	return ctx, func(m *M) {
		if ctx.Err() == nil {
			if err := stream.Send(m); err != nil {
				cancel(err)
			}
		}
	}
}

// ended is the answer of a stream whose driver returned err.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return toStatus(err)
}

// answer returns the response, or the error as a gRPC status.
func answer[M any](response *M, err error) (*M, error) {
	if err != nil {
		return nil, toStatus(err)
	}
	return response, nil
}

// toStatus converts a driver's error to the gRPC status that hosts expect.
func toStatus(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return status.FromContextError(err).Err()
	}
	switch driver.ClassOf(err) {
	case driver.NotFound:
		return status.Error(codes.Unknown, driver.ErrUnknownTask.Error())
	case driver.Recoverable:
		var marked *driver.Error
		if errors.As(err, &marked) {
			err = marked.Err
		}
		st, detail := status.New(codes.FailedPrecondition, err.Error()).WithDetails(&structs.RecoverableError{Recoverable: true})
		if detail != nil {
			return fmt.Errorf("%w; and its detail: %w", err, detail)
		}
		return st.Err()
	case driver.Unsupported:
		return status.Error(codes.Unimplemented, err.Error())
	case driver.Deadline:
		return status.FromContextError(err).Err()
	case driver.Fatal, driver.Gone:
	}
	return status.Error(codes.Unknown, err.Error())
}
