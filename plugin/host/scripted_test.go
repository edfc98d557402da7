package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
	"github.com/seed-f9cf0b39/nodedrain/plugin"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	devicepb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/schema"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// The test binary is also the plugin, and a client that is killed.
const (
	asPlugin = "scripted-plugin"
	asClient = "scripted-client"
	asEcho   = "echo-plugin"
	asLamps  = "lamps-plugin"
	asQuiet  = "quiet-plugin"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 {
		switch os.Args[1] {
		case asPlugin:
			runPlugin(os.Args[2])
			return
		case asEcho:
			sdk.Serve(&echo{folder: os.Args[2]})
			return
		case asLamps:
			sdk.ServeDevice(&lamps{folder: os.Args[2]})
			return
		case asQuiet:
			sdk.ServeDevice(struct{ sdk.Device }{&lamps{folder: os.Args[2]}})
			return
		case asClient:
			runClient(os.Args[2])
			return
		}
	}
	freshmachine.Enter()
	m.Run()
}

// script describes how a plugin behaves.
type script struct {
	// Calls is a file that gets a line for each call.
	Calls string
	// First, if not empty, is written to standard output in place of a handshake. Then states what
	// follows it: "exit" or a misbehavior. The process sleeps by default.
	First, Then string
	// At has the misbehavior of methods.
	At map[string]string
	// The plugin's answer to PluginInfo. Zero values are those of a good driver.
	Type     base.PluginType
	Name     string
	Versions []string
	// Fingerprints is the number of messages of health. The stream then stays open, or ends.
	Fingerprints  int
	EndOfStream   bool
	HealthMessage string
	// Padded: all strings of answers and errors end with a NUL and more bytes.
	Padded bool
	// OldSocket: the plugin has an old go-plugin, which has its socket in the folder for temporary files.
	OldSocket bool
	// Devices is the number of devices of a device plugin. Its fingerprints are then as above.
	Devices int

	log hclog.Logger
}

// fails returns the error of a misbehavior, or does not return.
func fails(ctx context.Context, how string) error {
	switch how {
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "exit":
		os.Exit(3)
	case "panic":
		go func() { panic("a panic of the plugin") }()
		select {}
	case "nil":
		go func() { _ = *(*int)(nil) }()
		select {}
	case "map":
		shared := map[int]int{}
		for range 2 {
			go func() {
				for {
					shared[1]++
				}
			}()
		}
		select {}
	case "abort": // the dump ends with registers
		_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
		select {}
	case "give up":
		// go-plugin has replaced os.Stderr.
		_, _ = syscall.Write(syscall.Stderr, []byte("the container engine is not installed\n"))
		os.Exit(3)
	case "hang":
		<-ctx.Done()
		select {}
	case "freeze":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	case "recoverable", "not recoverable":
		s, err := status.New(codes.FailedPrecondition, "the disk is slow").WithDetails(&structs.RecoverableError{Recoverable: how == "recoverable"})
		if err != nil {
			return err
		}
		return s.Err()
	case "unimplemented":
		return status.Error(codes.Unimplemented, "method is not there")
	case "":
		return nil
	}
	return status.Error(codes.Unknown, how)
}

func runPlugin(text string) {
	var s script
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	sid, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	s.note("process %d session %d", os.Getpid(), sid)
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		s.note("env %s", name)
	}
	if n, err := os.Stdin.Read(make([]byte, 1)); err != io.EOF {
		s.note("stdin %d %v", n, err)
	}
	if s.First != "" {
		_, _ = fmt.Print(s.First)
		switch s.Then {
		case "exit":
			return
		case "":
			<-make(chan struct{})
		}
		_ = fails(context.Background(), s.Then)
	}
	// The log is the real standard error, also after go-plugin has replaced os.Stderr.
	s.log = hclog.New(&hclog.LoggerOptions{Output: os.Stderr, JSONFormat: true, Level: hclog.Trace})
	s.log.Info("the plugin begins")
	if s.OldSocket {
		_ = os.Unsetenv(goplugin.EnvUnixSocketDir)
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: plugin.Handshake(),
		Plugins:         goplugin.PluginSet{plugin.DriverName: &scripted{s: s}},
		Logger:          s.log,
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(o, grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream))...)
		},
	})
}

// note appends a line to the file of calls.
func (s script) note(format string, args ...any) {
	file, err := os.OpenFile(s.Calls, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	_, _ = fmt.Fprintf(file, format+"\n", args...)
}

func (s script) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if name := path.Base(info.FullMethod); strings.Contains(info.FullMethod, "nomad") {
		s.note("call %s", name)
		s.log.Info("a call", "name", name)
		if err := fails(ctx, s.At[name]); err != nil {
			return nil, err
		}
	}
	answer, err := handle(ctx, request)
	if s.Padded {
		return padded(answer), paddedError(err)
	}
	return answer, err
}

func (s script) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if name := path.Base(info.FullMethod); strings.Contains(info.FullMethod, "nomad") {
		s.note("call %s", name)
		if err := fails(stream.Context(), s.At[name]); err != nil {
			return err
		}
	}
	if s.Padded {
		return paddedError(handle(server, paddedStream{stream}))
	}
	return handle(server, stream)
}

// scripted is a driver whose tasks are entries of a map. They outlive its process in their handles.
type scripted struct {
	goplugin.NetRPCUnsupportedPlugin
	base.UnimplementedBasePluginServer
	pb.UnimplementedDriverServer
	s script

	mu    sync.Mutex
	tasks map[string]chan *pb.ExitResult
}

func (d *scripted) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	d.tasks = map[string]chan *pb.ExitResult{}
	base.RegisterBasePluginServer(s, d)
	if d.s.Type == base.PluginType_DEVICE {
		devicepb.RegisterDevicePluginServer(s, &scriptedDevices{s: d.s})
		return nil
	}
	pb.RegisterDriverServer(s, d)
	return nil
}

func (d *scripted) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	panic("the host uses its own client")
}

func (d *scripted) PluginInfo(context.Context, *base.PluginInfoRequest) (*base.PluginInfoResponse, error) {
	info := &base.PluginInfoResponse{Type: base.PluginType_DRIVER, Name: "scripted", PluginVersion: "1.2.3", PluginApiVersions: []string{"v0.1.0"}}
	if d.s.Type != 0 {
		info.Type = d.s.Type
	}
	if d.s.Name != "" {
		info.Name = d.s.Name
	}
	if d.s.Versions != nil {
		info.PluginApiVersions = d.s.Versions
	}
	return info, nil
}

func oneKey(name string) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_Object{Object: &hclspec.Object{Attributes: map[string]*hclspec.Spec{
		name: {Block: &hclspec.Spec_Attr{Attr: &hclspec.Attr{Type: "string"}}},
	}}}}
}

func (d *scripted) ConfigSchema(context.Context, *base.ConfigSchemaRequest) (*base.ConfigSchemaResponse, error) {
	return &base.ConfigSchemaResponse{Spec: oneKey("mode")}, nil
}

func (d *scripted) SetConfig(_ context.Context, r *base.SetConfigRequest) (*base.SetConfigResponse, error) {
	var config struct {
		Mode string `codec:"mode"`
	}
	if err := schema.Decode(r.GetMsgpackConfig(), &config); err != nil {
		return nil, err
	}
	driver := r.GetNomadConfig().GetDriver()
	d.s.note("config mode=%s version=%s topology=%t ports=%d-%d", config.Mode, r.GetPluginApiVersion(), driver.GetClientTopology() != nil, driver.GetClientMinPort(), driver.GetClientMaxPort())
	return &base.SetConfigResponse{}, nil
}

func (d *scripted) TaskConfigSchema(context.Context, *pb.TaskConfigSchemaRequest) (*pb.TaskConfigSchemaResponse, error) {
	return &pb.TaskConfigSchemaResponse{Spec: oneKey("command")}, nil
}

func (d *scripted) Capabilities(context.Context, *pb.CapabilitiesRequest) (*pb.CapabilitiesResponse, error) {
	return &pb.CapabilitiesResponse{Capabilities: &pb.DriverCapabilities{
		SendSignals: true, FsIsolation: pb.DriverCapabilities_CHROOT, MountConfigs: pb.DriverCapabilities_NO_MOUNTS,
		NetworkIsolationModes: []pb.NetworkIsolationSpec_NetworkIsolationMode{pb.NetworkIsolationSpec_HOST, pb.NetworkIsolationSpec_NONE},
	}}, nil
}

func (d *scripted) Fingerprint(_ *pb.FingerprintRequest, stream grpc.ServerStreamingServer[pb.FingerprintResponse]) error {
	message := &pb.FingerprintResponse{
		Health: pb.FingerprintResponse_HEALTHY, HealthDescription: d.s.HealthMessage,
		Attributes: map[string]*structs.Attribute{
			"driver.scripted":        {Value: &structs.Attribute_BoolVal{BoolVal: true}},
			"driver.scripted.memory": {Value: &structs.Attribute_IntVal{IntVal: 5}, Unit: "GiB"},
			"driver.scripted.load":   {Value: &structs.Attribute_FloatVal{FloatVal: 0.5}},
			"driver.scripted.system": {Value: &structs.Attribute_StringVal{StringVal: "linux"}},
		},
	}
	for n := range max(1, d.s.Fingerprints) {
		message.Attributes["driver.scripted.count"] = &structs.Attribute{Value: &structs.Attribute_IntVal{IntVal: int64(n)}}
		if err := stream.Send(message); err != nil {
			return err
		}
	}
	if !d.s.EndOfStream {
		<-stream.Context().Done()
	}
	return nil
}

func (d *scripted) TaskEvents(_ *pb.TaskEventsRequest, stream grpc.ServerStreamingServer[pb.DriverTaskEvent]) error {
	event := &pb.DriverTaskEvent{TaskId: "t", Timestamp: timestamppb.New(time.Unix(5, 0)), Message: "pulled", Annotations: map[string]string{"a": "b"}}
	if err := stream.Send(event); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (d *scripted) TaskStats(r *pb.TaskStatsRequest, stream grpc.ServerStreamingServer[pb.TaskStatsResponse]) error {
	if _, err := d.task(r.GetTaskId()); err != nil {
		return err
	}
	return stream.Send(&pb.TaskStatsResponse{Stats: &pb.TaskStats{Timestamp: timestamppb.New(time.Unix(5, 0)), AggResourceUsage: &pb.TaskResourceUsage{
		Cpu: &pb.CPUUsage{Percent: 12.5}, Memory: &pb.MemoryUsage{Rss: 4096},
	}}})
}

func (d *scripted) task(id string) (chan *pb.ExitResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if task := d.tasks[id]; task != nil {
		return task, nil
	}
	return nil, status.Error(codes.Unknown, "rpc error: task not found for given id")
}

func (d *scripted) StartTask(_ context.Context, r *pb.StartTaskRequest) (*pb.StartTaskResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	task := r.GetTask()
	if d.tasks[task.GetId()] != nil {
		return nil, status.Error(codes.Unknown, "the task is already started")
	}
	d.tasks[task.GetId()] = make(chan *pb.ExitResult, 1)
	return &pb.StartTaskResponse{Handle: &pb.TaskHandle{Version: 1, Config: task, DriverState: []byte("state of " + task.GetId())}}, nil
}

func (d *scripted) RecoverTask(_ context.Context, r *pb.RecoverTaskRequest) (*pb.RecoverTaskResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := r.GetHandle().GetConfig().GetId()
	if string(r.GetHandle().GetDriverState()) != "state of "+id {
		return nil, status.Error(codes.Unknown, "failed to decode driver config: EOF")
	}
	if d.tasks[id] == nil {
		d.tasks[id] = make(chan *pb.ExitResult, 1)
	}
	return &pb.RecoverTaskResponse{}, nil
}

func (d *scripted) WaitTask(ctx context.Context, r *pb.WaitTaskRequest) (*pb.WaitTaskResponse, error) {
	task, err := d.task(r.GetTaskId())
	if err != nil {
		return nil, err
	}
	select {
	case result := <-task:
		task <- result
		return &pb.WaitTaskResponse{Result: result}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *scripted) StopTask(_ context.Context, r *pb.StopTaskRequest) (*pb.StopTaskResponse, error) {
	task, err := d.task(r.GetTaskId())
	if err != nil {
		return nil, err
	}
	d.s.note("stop %s %s", r.GetTimeout().AsDuration(), r.GetSignal())
	task <- &pb.ExitResult{Signal: 15}
	return &pb.StopTaskResponse{}, nil
}

func (d *scripted) DestroyTask(_ context.Context, r *pb.DestroyTaskRequest) (*pb.DestroyTaskResponse, error) {
	if _, err := d.task(r.GetTaskId()); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tasks, r.GetTaskId())
	return &pb.DestroyTaskResponse{}, nil
}

func (d *scripted) InspectTask(_ context.Context, r *pb.InspectTaskRequest) (*pb.InspectTaskResponse, error) {
	task, err := d.task(r.GetTaskId())
	if err != nil {
		return nil, err
	}
	answer := &pb.InspectTaskResponse{
		Task:   &pb.TaskStatus{Id: r.GetTaskId(), Name: "web", State: pb.TaskState_RUNNING, StartedAt: timestamppb.New(time.Unix(5, 0)), CompletedAt: timestamppb.New(time.Time{})},
		Driver: &pb.TaskDriverStatus{Attributes: map[string]string{"pid": "7"}},
	}
	select {
	case result := <-task:
		task <- result
		answer.Task.State, answer.Task.Result = pb.TaskState_EXITED, result
	default:
	}
	return answer, nil
}

func (d *scripted) SignalTask(_ context.Context, r *pb.SignalTaskRequest) (*pb.SignalTaskResponse, error) {
	d.s.note("signal %s", r.GetSignal())
	return &pb.SignalTaskResponse{}, nil
}

// ExecTaskStreaming answers with its input, and exits at the input's end.
func (d *scripted) ExecTaskStreaming(stream grpc.BidiStreamingServer[pb.ExecTaskStreamingRequest, pb.ExecTaskStreamingResponse]) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		answer := &pb.ExecTaskStreamingResponse{}
		switch {
		case request.GetSetup() != nil:
			answer.Stderr = &pb.ExecTaskStreamingIOOperation{Data: fmt.Appendf(nil, "%s %t;", request.GetSetup().GetCommand(), request.GetSetup().GetTty())}
		case request.GetTtySize() != nil:
			answer.Stderr = &pb.ExecTaskStreamingIOOperation{Data: fmt.Appendf(nil, "%dx%d;", request.GetTtySize().GetHeight(), request.GetTtySize().GetWidth())}
		case request.GetStdin().GetClose():
			answer.Exited, answer.Result = true, &pb.ExitResult{ExitCode: 4}
		default:
			answer.Stdout = &pb.ExecTaskStreamingIOOperation{Data: request.GetStdin().GetData()}
		}
		if err := stream.Send(answer); err != nil || answer.GetExited() {
			return err
		}
	}
}

// client is the client that is killed.
type client struct {
	Options host.Options
	// Record is the file that gets the record, or empty.
	Record string
}

// runClient launches a plugin and waits to be killed. Its output is "launched".
func runClient(text string) {
	var c client
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	program, err := host.New(c.Options)
	if err != nil {
		panic(err)
	}
	instance, err := program.Launch(context.Background(), host.Record{}, func(r host.Record) error {
		encoded, err := json.Marshal(r)
		if err != nil || c.Record == "" {
			return err
		}
		return os.WriteFile(c.Record, encoded, 0o600)
	})
	if err != nil {
		panic(err)
	}
	if _, err := instance.Driver().Start(context.Background(), &taskOfClient); err != nil {
		panic(err)
	}
	fmt.Println("launched")
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR2)
	<-never
}
