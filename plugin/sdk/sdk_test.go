package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/schema"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// tea is a driver whose answers a real driver gives rarely.
type tea struct{ sdk.Driver }

func (*tea) Info() sdk.Info {
	return sdk.Info{
		Name: "tea", Version: "1.2.3", HandleVersion: 2,
		TaskSchema: sdk.Object(map[string]*hclspec.Spec{
			"kind":  sdk.Attribute("string", true),
			"sugar": sdk.Default(sdk.Attribute("number", false), "1"),
		}),
	}
}

func (*tea) Start(_ context.Context, t *driver.TaskConfig) ([]byte, error) {
	switch t.User {
	case "early":
		return nil, sdk.Recoverable(errors.New("the water is cold"))
	case "late":
		return nil, errors.New("the pot is broken")
	}
	return []byte("cup of " + t.Name), nil
}

func (*tea) Recover(_ context.Context, t *driver.TaskConfig, version int32, state []byte) error {
	if version != 1 || string(state) != "old cup" || t.ID != "a" {
		return errors.New("not the handle of the test")
	}
	return nil
}

func (*tea) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	switch id {
	case "killed":
		return driver.ExitResult{Code: 137, Signal: 9, OOMKilled: true}, nil
	case "lost":
		return driver.ExitResult{Unknown: true}, nil
	case "running":
		<-ctx.Done()
		return driver.ExitResult{}, ctx.Err()
	case "late":
		return driver.ExitResult{}, fmt.Errorf("wait: %w", context.DeadlineExceeded)
	}
	return driver.ExitResult{}, driver.ErrUnknownTask
}

func (t *tea) Inspect(_ context.Context, id driver.TaskID) (driver.Status, error) {
	if exit, is := ends[id]; is {
		return driver.Status{ID: id, State: driver.TaskExited, StartedAt: time.Unix(5, 0), CompletedAt: time.Unix(6, 0), Exit: exit}, nil
	}
	return driver.Status{ID: id, State: driver.TaskRunning, StartedAt: time.Unix(5, 0)}, nil
}

func (*tea) Destroy(context.Context, driver.TaskID, bool) error { return driver.ErrUnknownTask }

func (*tea) ExecStreaming(_ context.Context, _ driver.TaskID, command []string, s driver.ExecStreams) (driver.ExitResult, error) {
	all, err := io.ReadAll(s.Stdin)
	if err != nil {
		return driver.ExitResult{}, err
	}
	size := <-s.Resize
	_, err = io.WriteString(s.Stdout, strings.Join(command, " ")+" "+string(all))
	return driver.ExitResult{Code: size.Height}, err
}

// dial serves the driver in this process.
func dial(t *testing.T, d sdk.Driver) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	s := grpc.NewServer()
	sdk.Register(s, d)
	go s.Serve(listener)
	t.Cleanup(s.Stop)
	conn, err := grpc.NewClient("passthrough:tea", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, conn.Close()) })
	return conn
}

// pot is a driver that implements sdk.Closer.
type pot struct {
	tea
	closed bool
}

func (p *pot) Close(context.Context) error {
	p.closed = true
	return nil
}

// Close is optional.
func TestServe_close(t *testing.T) {
	t.Parallel()
	d := &pot{}
	_, err := pb.NewDriverClient(dial(t, d)).Shutdown(t.Context(), &pb.ShutdownRequest{})
	must.NoError(t, err)
	must.True(t, d.closed)
	_, err = pb.NewDriverClient(dial(t, &tea{})).Shutdown(t.Context(), &pb.ShutdownRequest{})
	must.EqOp(t, codes.Unimplemented, status.Code(err))
}

// Hosts can read the schemas that the package builds, also nested schemas.
func TestObject(t *testing.T) {
	t.Parallel()
	spec, err := schema.New(sdk.Object(map[string]*sdk.Spec{
		"limits": sdk.Block(sdk.Object(map[string]*sdk.Spec{"files": sdk.Attribute("number", true)}), false),
		"disks":  sdk.Blocks(sdk.Object(map[string]*sdk.Spec{"name": sdk.Attribute("string", true)}), 0, 2),
	}))
	must.NoError(t, err)
	type disk struct {
		Name string `codec:"name"`
	}
	var c struct {
		Limits struct {
			Files int `codec:"files"`
		} `codec:"limits"`
		Disks []disk `codec:"disks"`
	}
	encoded, err := spec.Encode([]byte(`{"limits": {"files": 10}, "disks": [{"name": "a"}, {"name": "b"}]}`), nil)
	must.NoError(t, err)
	must.NoError(t, sdk.Decode(encoded, &c))
	must.Eq(t, 10, c.Limits.Files)
	must.Eq(t, []disk{{"a"}, {"b"}}, c.Disks)
	_, err = spec.Encode([]byte(`{"limits": {}}`), nil)
	must.ErrorContains(t, err, "files")
	_, err = spec.Encode([]byte(`{"disks": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}`), nil)
	must.ErrorContains(t, err, "disks")
}

func TestServe_errors(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := pb.NewDriverClient(dial(t, &tea{}))

	_, err := c.StartTask(ctx, &pb.StartTaskRequest{Task: &pb.TaskConfig{Id: "a", User: "early"}})
	must.Eq(t, codes.FailedPrecondition, status.Code(err))
	must.ErrorContains(t, err, "the water is cold")
	detail, ok := status.Convert(err).Details()[0].(*structs.RecoverableError)
	must.True(t, ok && detail.GetRecoverable())
	_, err = c.StartTask(ctx, &pb.StartTaskRequest{Task: &pb.TaskConfig{Id: "a", User: "late"}})
	must.Eq(t, codes.Unknown, status.Code(err))
	_, err = c.StartTask(ctx, &pb.StartTaskRequest{Task: &pb.TaskConfig{Name: "mint"}})
	must.ErrorContains(t, err, "no id")

	handle := &pb.TaskHandle{Version: 1, Config: &pb.TaskConfig{Id: "a"}, DriverState: []byte("old cup")}
	_, err = c.RecoverTask(ctx, &pb.RecoverTaskRequest{Handle: handle})
	must.NoError(t, err, must.Sprint("an older handle is recovered"))
	handle.Version = 3
	_, err = c.RecoverTask(ctx, &pb.RecoverTaskRequest{Handle: handle})
	must.ErrorContains(t, err, "version 3")
	_, err = c.RecoverTask(ctx, &pb.RecoverTaskRequest{TaskId: "a"})
	must.ErrorContains(t, err, "no task id")

	_, err = c.DestroyTask(ctx, &pb.DestroyTaskRequest{TaskId: "x"})
	must.Eq(t, "task not found for given id", status.Convert(err).Message())
	must.Eq(t, codes.Unknown, status.Code(err))
	exit, err := c.WaitTask(ctx, &pb.WaitTaskRequest{TaskId: "killed"})
	must.NoError(t, err)
	must.Eq(t, "exit_code:137 signal:9 oom_killed:true", strings.ReplaceAll(exit.GetResult().String(), "  ", " "))
	exit, err = c.WaitTask(ctx, &pb.WaitTaskRequest{TaskId: "lost"})
	must.NoError(t, err)
	must.StrContains(t, exit.GetErr(), "lost")
	must.Nil(t, exit.GetResult())
	brief, end := context.WithTimeout(ctx, 20*time.Millisecond)
	defer end()
	_, err = c.WaitTask(brief, &pb.WaitTaskRequest{TaskId: "running"})
	must.Eq(t, codes.DeadlineExceeded, status.Code(err))
	// The driver may notice the end of the call before its caller does. Bug: it answered Unknown,
	// which a host treats as a final error.
	_, err = c.WaitTask(ctx, &pb.WaitTaskRequest{TaskId: "late"})
	must.Eq(t, codes.DeadlineExceeded, status.Code(err))

	_, err = c.SignalTask(ctx, &pb.SignalTaskRequest{TaskId: "a"})
	must.Eq(t, codes.Unimplemented, status.Code(err))
	_, err = c.ExecTask(ctx, &pb.ExecTaskRequest{TaskId: "a"})
	must.Eq(t, codes.Unimplemented, status.Code(err))
	_, err = c.CreateNetwork(ctx, &pb.CreateNetworkRequest{AllocId: "a"})
	must.Eq(t, codes.Unimplemented, status.Code(err))
	stats, err := c.TaskStats(ctx, &pb.TaskStatsRequest{TaskId: "a"})
	must.NoError(t, err)
	_, err = stats.Recv()
	must.Eq(t, codes.Unimplemented, status.Code(err))
}

// A running task has no end. Regression: a host read the zero time as one.
func TestServe_inspectRunningTask(t *testing.T) {
	t.Parallel()
	st, err := pb.NewDriverClient(dial(t, &tea{})).InspectTask(t.Context(), &pb.InspectTaskRequest{TaskId: "a"})
	must.NoError(t, err)
	must.Eq(t, pb.TaskState_RUNNING, st.GetTask().GetState())
	must.Eq(t, time.Unix(5, 0).UTC(), st.GetTask().GetStartedAt().AsTime())
	must.Nil(t, st.GetTask().GetCompletedAt())
}

// ends are the ends of tasks by id.
var ends = map[driver.TaskID]*driver.ExitResult{
	"success": {}, "failure": {Code: 3}, "killed": {Code: 137, Signal: 9, OOMKilled: true}, "unknown": {Unknown: true}, "unknown killed": {Unknown: true, Signal: 9}, "no end": nil,
}

// A task that has ended has its true exit result, and none if the result is unknown. Bug: no test had an unknown one.
func TestServe_inspectEndedTask(t *testing.T) {
	t.Parallel()
	c := pb.NewDriverClient(dial(t, &tea{}))
	for id, exit := range ends { //lint:order each is a separate call
		st, err := c.InspectTask(t.Context(), &pb.InspectTaskRequest{TaskId: string(id)})
		must.NoError(t, err)
		must.Eq(t, pb.TaskState_EXITED, st.GetTask().GetState())
		must.Eq(t, time.Unix(6, 0).UTC(), st.GetTask().GetCompletedAt().AsTime())
		got := st.GetTask().GetResult()
		if exit == nil || exit.Unknown {
			must.Nil(t, got, must.Sprint(id))
			continue
		}
		must.NotNil(t, got, must.Sprint(id))
		must.Eq(t, exit.Code, int(got.GetExitCode()))
		must.Eq(t, exit.Signal, int(got.GetSignal()))
		must.Eq(t, exit.OOMKilled, got.GetOomKilled())
	}
}

func TestServe_execStreaming(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := pb.NewDriverClient(dial(t, &tea{}))
	stream, err := c.ExecTaskStreaming(ctx)
	must.NoError(t, err)
	for _, m := range []*pb.ExecTaskStreamingRequest{
		{Setup: &pb.ExecTaskStreamingRequest_Setup{TaskId: "a", Command: []string{"pour", "slowly"}}},
		{Stdin: &pb.ExecTaskStreamingIOOperation{Data: []byte("two ")}},
		{TtySize: &pb.ExecTaskStreamingRequest_TerminalSize{Height: 40}},
		{Stdin: &pb.ExecTaskStreamingIOOperation{Data: []byte("cups"), Close: true}},
	} {
		must.NoError(t, stream.Send(m))
	}
	var out, steps string
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		must.NoError(t, err)
		out += string(m.GetStdout().GetData())
		switch {
		case m.GetStdout().GetClose():
			steps += "stdout "
		case m.GetStderr().GetClose():
			steps += "stderr "
		case m.GetExited():
			steps += "exited"
			must.Eq(t, int32(40), m.GetResult().GetExitCode())
		}
	}
	must.Eq(t, "pour slowly two cups", out)
	must.Eq(t, "stdout stderr exited", steps)

	stream, err = c.ExecTaskStreaming(ctx)
	must.NoError(t, err)
	must.NoError(t, stream.Send(&pb.ExecTaskStreamingRequest{}))
	_, err = stream.Recv()
	must.Eq(t, codes.InvalidArgument, status.Code(err))
}

func TestDecode(t *testing.T) {
	t.Parallel()
	var c struct {
		Command string   `codec:"command"`
		Args    []string `codec:"args"`
	}
	b, err := sdk.Encode(map[string]any{"command": "a", "args": nil})
	must.NoError(t, err)
	must.NoError(t, sdk.Decode(b, &c))
	must.Eq(t, "a", c.Command)
	must.NoError(t, sdk.Decode(nil, &c))
	must.Eq(t, "a", c.Command)
	must.Error(t, sdk.Decode(append(b, b...), &c))
	must.Error(t, sdk.Decode([]byte{0xc1}, &c))
}

// Keys that the user left out are nil in the config, and their fields keep their defaults.
func TestDecode_defaults(t *testing.T) {
	t.Parallel()
	type disk struct {
		Name string `codec:"name"`
		Size int    `codec:"size"`
	}
	c := struct {
		Shell string         `codec:"shell"`
		Tries int            `codec:"tries"`
		Disk  disk           `codec:"disk"`
		Disks []disk         `codec:"disks"`
		Codes map[string]int `codec:"codes"`
	}{Shell: "/bin/sh", Tries: 3, Disk: disk{Size: 10}}
	b, err := sdk.Encode(map[string]any{
		"shell": nil, "tries": nil, "disk": map[string]any{"name": "a", "size": nil},
		"disks": []any{map[string]any{"name": "b", "size": 7}}, "codes": map[string]any{"SIGHUP": 4},
	})
	must.NoError(t, err)
	must.NoError(t, sdk.Decode(b, &c))
	must.Eq(t, "/bin/sh", c.Shell)
	must.Eq(t, 3, c.Tries)
	must.Eq(t, disk{"a", 10}, c.Disk)
	must.Eq(t, []disk{{"b", 7}}, c.Disks)
	must.Eq(t, map[string]int{"SIGHUP": 4}, c.Codes)
	b, err = sdk.Encode(map[string]any{"shel": "x"})
	must.NoError(t, err)
	must.ErrorContains(t, sdk.Decode(b, &c), "shel")
}

// A value that its field cannot hold is an error with the key.
func TestDecode_wrongValue(t *testing.T) {
	t.Parallel()
	var c struct {
		Limit int    `codec:"max_runtime"`
		Shell string `codec:"shell"`
	}
	b, err := sdk.Encode(map[string]any{"shell": "/bin/sh", "max_runtime": 1.5})
	must.NoError(t, err)
	must.ErrorContains(t, sdk.Decode(b, &c), `decode the config: the key "max_runtime": `)
}

func FuzzDecode(f *testing.F) {
	b, err := sdk.Encode(map[string]any{"command": "a", "args": []string{"b"}})
	must.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(_ *testing.T, b []byte) {
		var c struct {
			Command string   `codec:"command"`
			Args    []string `codec:"args"`
		}
		_ = sdk.Decode(b, &c)
	})
}
