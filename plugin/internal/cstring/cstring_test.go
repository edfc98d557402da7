//race:skip one goroutine
package cstring

import (
	"errors"
	"io"
	"testing"

	"github.com/shoenig/test/must"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	devicepb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
)

// Strings are cut in fields, lists, maps, keys of maps, oneofs and nested messages. Bytes and
// messages of exempt types do not change.
func TestCutter(t *testing.T) {
	t.Parallel()
	text := func(s string) *structs.Attribute {
		return &structs.Attribute{Value: &structs.Attribute_StringVal{StringVal: s}}
	}
	handle := &pb.TaskHandle{Config: &pb.TaskConfig{Id: "a\x00b"}, DriverState: []byte("a\x00b")}
	for name, test := range map[string]struct{ got, expected proto.Message }{
		"nothing":    {&base.PluginInfoResponse{}, &base.PluginInfoResponse{}},
		"a field":    {&base.PluginInfoResponse{Name: "nvidia\x00\x00"}, &base.PluginInfoResponse{Name: "nvidia"}},
		"only NUL":   {&base.PluginInfoResponse{Name: "\x00x"}, &base.PluginInfoResponse{}},
		"a list":     {&base.PluginInfoResponse{PluginApiVersions: []string{"v1\x00", "v2"}}, &base.PluginInfoResponse{PluginApiVersions: []string{"v1", "v2"}}},
		"bytes":      {&base.SetConfigRequest{MsgpackConfig: []byte("a\x00b")}, &base.SetConfigRequest{MsgpackConfig: []byte("a\x00b")}},
		"a oneof":    {text("a\x00b"), text("a")},
		"equal keys": {&devicepb.ContainerReservation{Envs: map[string]string{"A\x00y": "2", "A\x00x": "1", "B\x00": "3", "B": "4\x00"}}, &devicepb.ContainerReservation{Envs: map[string]string{"A": "1", "B": "4"}}},
		"a wrapper":  {&structs.StatValue{StringVal: wrapperspb.String("on\x00")}, &structs.StatValue{StringVal: wrapperspb.String("on")}},
		"exempt":     {&pb.StartTaskResponse{Handle: proto.CloneOf(handle), DriverErrorMsg: "a\x00b"}, &pb.StartTaskResponse{Handle: handle, DriverErrorMsg: "a"}},
		"a whole tree": {
			&devicepb.FingerprintResponse{DeviceGroup: []*devicepb.DeviceGroup{{
				Vendor: "nvidia\x00", Attributes: map[string]*structs.Attribute{"memory\x00": {Unit: "MiB\x00"}, "kind": text("x\x00")},
				Devices: []*devicepb.DetectedDevice{{ID: "GPU-1\x00", HwLocality: &devicepb.DeviceLocality{PciBusId: "0000:01:00.0\x00\x00\x00"}}},
			}}},
			&devicepb.FingerprintResponse{DeviceGroup: []*devicepb.DeviceGroup{{
				Vendor: "nvidia", Attributes: map[string]*structs.Attribute{"memory": {Unit: "MiB"}, "kind": text("x")},
				Devices: []*devicepb.DetectedDevice{{ID: "GPU-1", HwLocality: &devicepb.DeviceLocality{PciBusId: "0000:01:00.0"}}},
			}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cutter{"hashicorp.nomad.plugins.drivers.proto.TaskHandle"}.any(test.got)
			must.True(t, proto.Equal(test.expected, test.got), must.Sprint(test.got))
		})
	}
}

// The text of a plugin's error is cut. Its code and details stay, and other errors are returned
// as they are.
func TestCutError(t *testing.T) {
	t.Parallel()
	must.NoError(t, cutError(nil))
	must.EqOp(t, io.EOF, cutError(io.EOF))
	plain := errors.New("a\x00b")
	must.EqOp(t, plain, cutError(plain))
	s, err := status.New(codes.FailedPrecondition, "busy\x00\x00rest").WithDetails(&structs.RecoverableError{Recoverable: true})
	must.NoError(t, err)
	cut := status.Convert(cutError(s.Err()))
	must.EqOp(t, "busy", cut.Message())
	must.EqOp(t, codes.FailedPrecondition, cut.Code())
	must.SliceLen(t, 1, cut.Details())
}
