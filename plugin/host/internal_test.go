package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	devicepb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
)

func withDetail(t *testing.T, code codes.Code, recoverable bool) error {
	t.Helper()
	s, err := status.New(code, "x").WithDetails(&structs.RecoverableError{Recoverable: recoverable})
	must.NoError(t, err)
	return s.Err()
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err      error
		expected driver.Class
	}{
		{status.Error(codes.Unknown, "task not found for given id"), driver.NotFound},
		{status.Error(codes.Unknown, "rpc error: code = Unknown desc = task not found for given id"), driver.NotFound},
		{status.Error(codes.Unknown, `Task does not exist: "a/b"`), driver.NotFound},
		{status.Error(codes.Unknown, "unknown task"), driver.NotFound},
		{status.Error(codes.NotFound, "x"), driver.NotFound},
		{errors.New("task not found for given id"), driver.NotFound},
		{status.Error(codes.Unknown, "executable file not found in $PATH"), driver.Fatal},
		{status.Error(codes.Unknown, "x"), driver.Fatal},
		{status.Error(codes.FailedPrecondition, "x"), driver.Fatal},
		{status.Error(codes.Internal, "x"), driver.Fatal},
		{errors.New("x"), driver.Fatal},
		{io.EOF, driver.Fatal},
		{withDetail(t, codes.FailedPrecondition, true), driver.Recoverable},
		{withDetail(t, codes.FailedPrecondition, false), driver.Fatal},
		{withDetail(t, codes.Unknown, true), driver.Recoverable},
		{fmt.Errorf("start: %w", withDetail(t, codes.FailedPrecondition, true)), driver.Recoverable},
		{status.Error(codes.Unimplemented, "unknown method Init"), driver.Unsupported},
		{status.Error(codes.DeadlineExceeded, "x"), driver.Deadline},
		{status.Error(codes.Canceled, "context canceled"), driver.Deadline},
		{context.DeadlineExceeded, driver.Deadline},
		{context.Canceled, driver.Deadline},
		{status.Error(codes.Unavailable, "error reading from server: EOF"), driver.Gone},
		{status.Error(codes.Unavailable, "transport is closing"), driver.Gone},
		{status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial unix /s: connect: connection refused"`), driver.Gone},
		{status.Error(codes.Canceled, "grpc: the client connection is closing"), driver.Gone},
		{status.Error(codes.Internal, "stream terminated by RST_STREAM with error code: CANCEL"), driver.Gone},
		{status.Error(codes.Internal, "unexpected EOF"), driver.Gone},
	} {
		must.Eq(t, test.expected, classify(test.err), must.Sprint(test.err))
	}
}

// The host notices the end of a process after the end of its connection. If the process still runs,
// the outcome of the call is unknown, and the driver is not gone.
func TestFail_waitsForTheEnd(t *testing.T) {
	t.Parallel()
	broken := status.Error(codes.Unavailable, "error reading from server: EOF")
	for name, test := range map[string]struct {
		err      error
		ends     time.Duration // 0: it does not
		expected driver.Class
		took     time.Duration
	}{
		"at once":   {broken, time.Nanosecond, driver.Gone, time.Nanosecond},
		"later":     {broken, time.Second, driver.Gone, time.Second},
		"it lives":  {broken, 0, driver.Deadline, exitDelay},
		"no matter": {status.Error(codes.Unknown, "x"), time.Second, driver.Fatal, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan struct{})
				r := &calls{gone: ended}
				if test.ends > 0 {
					time.AfterFunc(test.ends, func() { close(ended) })
				}
				began := time.Now()
				err := r.fail(t.Context(), "StopTask", test.err)
				must.Eq(t, test.expected, driver.ClassOf(err), must.Sprint(err))
				must.Eq(t, test.took, time.Since(began))
			})
		})
	}
}

// The class of an error depends on the error, on the end of the call's time and on the end of the process. An error
// that is final in time is uncertain after it: the driver may report its own end of the time with any text. Bug: no
// test had a text of a driver at the end of the time.
func TestFail_classes(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	close(ended)
	over, end := context.WithCancel(t.Context())
	end()
	const recoverable, fatal, deadline, gone = driver.Recoverable, driver.Fatal, driver.Deadline, driver.Gone
	text := status.Error(codes.Unknown, "rpc to the daemon: timed out")
	for name, test := range map[string]struct {
		err error
		// inTime, late, dead and both are the classes by whether the time of the call and the process have ended.
		inTime, late, dead, both driver.Class
	}{
		"a text":          {text, fatal, deadline, fatal, fatal},
		"an end":          {io.EOF, fatal, deadline, fatal, fatal},
		"a refusal":       {withDetail(t, codes.Unknown, false), fatal, deadline, fatal, fatal},
		"a retry":         {withDetail(t, codes.Unknown, true), recoverable, recoverable, recoverable, recoverable},
		"no task":         {status.Error(codes.Unknown, "unknown task"), driver.NotFound, driver.NotFound, driver.NotFound, driver.NotFound},
		"no such call":    {status.Error(codes.Unimplemented, "x"), driver.Unsupported, driver.Unsupported, driver.Unsupported, driver.Unsupported},
		"no answer":       {status.Error(codes.DeadlineExceeded, "x"), deadline, deadline, gone, gone},
		"no connection":   {status.Error(codes.Unavailable, "EOF"), deadline, deadline, gone, gone},
		"a broken answer": {status.Error(codes.Internal, "unexpected EOF"), deadline, deadline, gone, gone},
	} {
		synctest.Test(t, func(t *testing.T) { // a broken connection is waited for
			for i, want := range []driver.Class{test.inTime, test.late, test.dead, test.both} {
				ctx := t.Context()
				if i%2 == 1 {
					ctx = over
				}
				c := &calls{gone: make(chan struct{})}
				if i >= 2 {
					c.gone = ended
				}
				must.Eq(t, want, driver.ClassOf(c.fail(ctx, "RecoverTask", test.err)), must.Sprint(name, " ", i))
			}
		})
	}
	// A start and a reservation have no task that could be unknown.
	for call, want := range map[string]driver.Class{"StartTask": fatal, reserve: fatal, "StopTask": driver.NotFound} {
		c := &calls{gone: make(chan struct{})}
		must.Eq(t, want, driver.ClassOf(c.fail(t.Context(), call, status.Error(codes.NotFound, "x"))), must.Sprint(call))
	}
}

// What a process wrote last is found after each number of rotations of its log. Bug: no test rotated
// the log of a plugin that crashes.
func TestCause_rotatedLog(t *testing.T) {
	t.Parallel()
	const crash = "panic: no more\n\ngoroutine 1 [running]:\n"
	before, own := strings.Repeat("an old line\n", 100), strings.Repeat("a line\n", 20)
	for name, test := range map[string]struct {
		before string
		writes []string // of the process, with a rotation before each but the first
		want   string
	}{
		"no log before":             {"", []string{crash}, "panic: no more"},
		"no rotation":               {before, []string{own + crash}, "panic: no more"},
		"nothing written":           {before, []string{""}, ""},
		"before the crash":          {before, []string{own, crash}, "panic: no more"},
		"twice before the crash":    {before, []string{own, own, own + crash}, "panic: no more"},
		"no crash":                  {before, []string{own, "a last line\n"}, "the last line of its log: a last line"},
		"nothing after it":          {before, []string{own, ""}, ""},
		"an old crash, and nothing": {crash, []string{""}, ""},
	} {
		log := filepath.Join(t.TempDir(), "log")
		if test.before != "" {
			must.NoError(t, os.WriteFile(log, []byte(test.before), 0o600))
		}
		c := newCause(log)
		for i, text := range test.writes {
			if i > 0 {
				must.NoError(t, rotateLog(log, 1))
			}
			file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			must.NoError(t, err)
			_, err = io.WriteString(file, text)
			must.NoError(t, errors.Join(err, file.Close()))
		}
		must.Eq(t, test.want, c.reason(), must.Sprint(name))
	}
}

// The first value is reported at once. Of the others the newest is, once in an interval, and the
// last one before the error.
func TestNewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		n := 0
		var reported []string
		err := newest(time.Second, func() (int, error) {
			time.Sleep(300 * time.Millisecond)
			if n++; n > 10 {
				return 0, io.ErrUnexpectedEOF
			}
			return n, nil
		}, func(n int) { reported = append(reported, fmt.Sprint(n, " ", time.Since(began))) })
		must.ErrorIs(t, err, io.ErrUnexpectedEOF)
		must.Eq(t, []string{"1 300ms", "4 1.3s", "7 2.3s", "10 3.3s"}, reported)
	})
}

// The last value before the error is reported, whenever the error comes. Each case is played often, because both
// may be there at the same time. Bug: the health that a driver reported at its end was lost.
func TestNewest_end(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		waits    []time.Duration // before each value, and before the error
		reported []string
	}{
		"no value":                         {[]time.Duration{0}, nil},
		"with the only value":              {[]time.Duration{0, 0}, []string{"1 0s"}},
		"with the second value":            {[]time.Duration{0, 100 * ms, 0}, []string{"1 0s", "2 100ms"}},
		"within the interval of the first": {[]time.Duration{0, 100 * ms, 100 * ms}, []string{"1 0s", "2 200ms"}},
		"without a value in the interval":  {[]time.Duration{0, 100 * ms}, []string{"1 0s"}},
		"with two values in the interval":  {[]time.Duration{0, 100 * ms, 100 * ms, 100 * ms}, []string{"1 0s", "3 300ms"}},
		"in the second interval":           {[]time.Duration{0, 100 * ms, 1000 * ms, 100 * ms}, []string{"1 0s", "2 1s", "3 1.2s"}},
		"after a quiet time":               {[]time.Duration{0, 100 * ms, time.Minute}, []string{"1 0s", "2 1s"}},
		"with a value after a quiet time":  {[]time.Duration{0, time.Minute, 0}, []string{"1 0s", "2 1m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 40 {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					n := 0
					var reported []string
					err := newest(time.Second, func() (int, error) {
						time.Sleep(test.waits[n])
						if n++; n == len(test.waits) {
							return 0, io.ErrUnexpectedEOF
						}
						return n, nil
					}, func(n int) { reported = append(reported, fmt.Sprint(n, " ", time.Since(began))) })
					must.ErrorIs(t, err, io.ErrUnexpectedEOF)
					must.Eq(t, test.reported, reported)
				})
			}
		})
	}
}

// go-plugin gets one line of bounded length. The rest is dropped.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ written, expected string }{
		"a line":       {"1|2|unix|/s|grpc|\n", "1|2|unix|/s|grpc|\n"},
		"more lines":   {"one\ntwo\nthree\n", "one\n"},
		"no end":       {"one", "one"},
		"nothing":      {"", ""},
		"a large line": {strings.Repeat("x", 1<<20), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, write, err := os.Pipe()
			must.NoError(t, err)
			go func() {
				_, _ = io.WriteString(write, test.written)
				_ = write.Close()
			}()
			got, err := io.ReadAll(&firstLine{file: read})
			must.NoError(t, err)
			if len(test.written) > maxFirstLine {
				must.Between(t, maxFirstLine, len(got), 2*maxFirstLine)
				must.Eq(t, '\n', rune(got[len(got)-1]))
			} else {
				must.Eq(t, test.expected, string(got))
			}
		})
	}
}

// The log of a plugin is bounded, and the newest lines are kept.
func TestRotateLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log", "plugin.log")
	file, err := openLog(path, 100)
	must.NoError(t, err)
	defer file.Close()
	cause := newCause(path)
	write := func(text string) {
		_, err := file.WriteString(text)
		must.NoError(t, err)
	}
	write("one\n")
	must.NoError(t, rotateLog(path, 100))
	must.Eq(t, "the last line of its log: one", cause.described())
	write(strings.Repeat("two\n", 50))
	must.NoError(t, rotateLog(path, 100))
	old, err := os.ReadFile(path + ".1")
	must.NoError(t, err)
	must.Eq(t, strings.Repeat("two\n", 25), string(old))
	write("three\n")
	now, err := os.ReadFile(path)
	must.NoError(t, err)
	must.Eq(t, "three\n", string(now))
	write(strings.Repeat("four\n", 30))
	must.NoError(t, rotateLog(path, 100), must.Sprint("over the file of the last rotation"))
	old, err = os.ReadFile(path + ".1")
	must.NoError(t, err)
	must.Eq(t, strings.Repeat("four\n", 20), string(old))
	info, err := os.Stat(path)
	must.NoError(t, err)
	must.Eq(t, 0, info.Size())
	must.Eq(t, "", newCause("/nonexistent").described())
	must.NoError(t, rotateLog("/nonexistent", 100))
}

// A plugin that was killed leaves a folder with its socket. Nothing of it stays: each crash would leave another one.
func TestSweep_socketsOfDeadPlugins(t *testing.T) { // not parallel: a process of another test could inherit the socket
	dir, err := os.MkdirTemp("", "nd")
	must.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range []string{"socket", "plugin-dir1/plugin2", "plugin-dir3/deeper/plugin4"} {
		path := filepath.Join(dir, name)
		must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must.NoError(t, err)
		must.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
		must.NoError(t, unix.Close(fd))
	}
	must.NoError(t, os.MkdirAll(filepath.Join(dir, "plugin-dir5"), 0o700))
	must.NoError(t, sweep(t.Context(), dir))
	left, err := os.ReadDir(dir)
	must.NoError(t, err)
	must.SliceEmpty(t, left)
}

// A plugin that hangs with a full backlog still listens: the next one must not start beside it.
func TestSweep_fullBacklog(t *testing.T) { // not parallel: a process of another test could inherit the socket
	dir, err := os.MkdirTemp("", "nd")
	must.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	address := &unix.SockaddrUnix{Name: filepath.Join(dir, "socket")}
	socket := func() int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		must.NoError(t, err)
		return fd
	}
	listening := socket()
	must.NoError(t, unix.Bind(listening, address))
	must.NoError(t, unix.Listen(listening, 1))
	for err = nil; err == nil; {
		fd := socket()
		defer unix.Close(fd)
		err = unix.Connect(fd, address)
	}
	must.ErrorIs(t, err, unix.EAGAIN)
	err = sweep(t.Context(), dir)
	must.ErrorIs(t, err, unix.EAGAIN)
	must.ErrorContains(t, err, "the process that listens on")
	must.ErrorContains(t, err, address.Name)
	_, err = os.Stat(address.Name)
	must.NoError(t, err, must.Sprint("the next launch must find it"))

	must.NoError(t, unix.Close(listening)) // as at its end
	must.NoError(t, sweep(t.Context(), dir))
	_, err = os.Stat(address.Name)
	must.ErrorIs(t, err, os.ErrNotExist)
}

// Times that a driver does not have are zero.
func TestFromTime(t *testing.T) {
	t.Parallel()
	for _, unset := range []*timestamppb.Timestamp{nil, timestamppb.New(time.Time{}), {Seconds: -1 << 62}} {
		must.True(t, fromTime(unset).IsZero())
	}
	must.Eq(t, time.Unix(1, 0).UTC(), fromTime(timestamppb.New(time.Unix(1, 0))))
}

// A driver's attributes are bounded: they become part of the node.
func TestFromFingerprint_bounds(t *testing.T) {
	t.Parallel()
	text := func(s string) *structs.Attribute {
		return &structs.Attribute{Value: &structs.Attribute_StringVal{StringVal: s}}
	}
	message := &pb.FingerprintResponse{Health: 9, Attributes: map[string]*structs.Attribute{
		"long": text(strings.Repeat("x", maxAttributeValue+1)), strings.Repeat("y", maxAttributeName+1): text(""), "": text(""), "z": nil,
	}}
	for n := range maxAttributes {
		message.Attributes[fmt.Sprintf("a%03d", n)] = text("v")
	}
	f := fromFingerprint(message)
	must.Eq(t, driver.Unhealthy, f.Health, must.Sprint("an unknown health is not healthy"))
	must.MapLen(t, maxAttributes, f.Attributes)
	must.Eq(t, " (4 attributes are too many or too long)", f.Description)
}

// Each message of a device plugin can be converted and checked.
func FuzzDevices(f *testing.F) {
	for _, m := range []proto.Message{
		&devicepb.FingerprintResponse{DeviceGroup: []*devicepb.DeviceGroup{{
			Vendor: "v", DeviceType: "t", DeviceName: "n", Devices: []*devicepb.DetectedDevice{{ID: "1"}},
			Attributes: map[string]*structs.Attribute{"a": {Value: &structs.Attribute_FloatVal{FloatVal: 1}}},
		}}},
		&devicepb.ReserveResponse{ContainerRes: &devicepb.ContainerReservation{Mounts: []*devicepb.Mount{{TaskPath: "/a", HostPath: "/b"}}}},
		&devicepb.StatsResponse{Groups: []*devicepb.DeviceGroupStats{{InstanceStats: map[string]*devicepb.DeviceStats{"1": {Stats: &structs.StatObject{}}}}}},
	} {
		encoded, err := proto.Marshal(m)
		must.NoError(f, err)
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		var groups devicepb.FingerprintResponse
		if proto.Unmarshal(message, &groups) == nil {
			good, _ := device.Check(fromGroups(groups.GetDeviceGroup()))
			_, err := device.Check(good)
			must.NoError(t, err)
		}
		var reserved devicepb.ReserveResponse
		if proto.Unmarshal(message, &reserved) == nil {
			if r, err := device.Merge([]device.Part{{Reservation: fromReservation(reserved.GetContainerRes())}}); err == nil {
				_, err = device.Merge([]device.Part{{Reservation: r}, {Reservation: r}})
				must.NoError(t, err)
			}
		}
		var stats devicepb.StatsResponse
		if proto.Unmarshal(message, &stats) == nil {
			_ = fromGroupStats(stats.GetGroups())
		}
	})
}

// A text of a plugin cannot change the terminal of an operator.
func FuzzPlain(f *testing.F) {
	f.Add([]byte("a\x1b[31mb\n\x9b\xff\u202e"))
	f.Add(bytes.Repeat([]byte("é"), maxText))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := plain(string(text))
		must.True(t, utf8.ValidString(got))
		must.LessEq(t, maxText+len("…"), len(got))
		for _, r := range got {
			must.True(t, r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f), must.Sprintf("%q", got))
		}
	})
}
