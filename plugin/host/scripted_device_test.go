package host_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	devicepb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
)

// ofDevices returns the script of a device plugin with so many devices.
func ofDevices(n int) script { return script{Type: base.PluginType_DEVICE, Devices: n} }

// scriptedDevices is a device plugin. It answers with each field that the protocol has.
type scriptedDevices struct {
	devicepb.UnimplementedDevicePluginServer
	s script
}

func (d *scriptedDevices) Fingerprint(_ *devicepb.FingerprintRequest, stream grpc.ServerStreamingServer[devicepb.FingerprintResponse]) error {
	for n := range max(1, d.s.Fingerprints) {
		message := &devicepb.FingerprintResponse{}
		if d.s.Devices > 0 {
			message.DeviceGroup = []*devicepb.DeviceGroup{{
				Vendor: "acme", DeviceType: "lamp", DeviceName: "L1", Attributes: map[string]*structs.Attribute{
					"count":  {Value: &structs.Attribute_IntVal{IntVal: int64(n)}},
					"memory": {Value: &structs.Attribute_IntVal{IntVal: 5}, Unit: "GiB"},
					"load":   {Value: &structs.Attribute_FloatVal{FloatVal: 0.5}},
					"dim":    {Value: &structs.Attribute_BoolVal{BoolVal: true}},
					"color":  {Value: &structs.Attribute_StringVal{StringVal: "\x1bred"}},
					"none":   {},
				},
			}}
		}
		for i := range d.s.Devices {
			message.DeviceGroup[0].Devices = append(message.DeviceGroup[0].Devices, &devicepb.DetectedDevice{
				ID: fmt.Sprintf("lamp-%d", i), Healthy: i > 0, HealthDescription: d.s.HealthMessage,
				HwLocality: &devicepb.DeviceLocality{PciBusId: fmt.Sprintf("0000:00:%02x.0", i)},
			})
		}
		if err := stream.Send(message); err != nil {
			return err
		}
	}
	if !d.s.EndOfStream {
		<-stream.Context().Done()
		d.s.note("the end of Fingerprint")
	}
	return nil
}

func (d *scriptedDevices) Reserve(_ context.Context, r *devicepb.ReserveRequest) (*devicepb.ReserveResponse, error) {
	if len(r.GetDeviceIds()) == 0 {
		return &devicepb.ReserveResponse{}, nil
	}
	ids := strings.Join(r.GetDeviceIds(), ",")
	if !strings.HasPrefix(ids, "lamp-") {
		return nil, status.Error(codes.Unknown, "unknown device "+ids)
	}
	return &devicepb.ReserveResponse{ContainerRes: &devicepb.ContainerReservation{
		Envs:    map[string]string{"LAMPS": ids},
		Mounts:  []*devicepb.Mount{{TaskPath: "/lib/lamp", HostPath: "/usr/lib/lamp", ReadOnly: true}, {TaskPath: "/w", HostPath: "/var/w"}},
		Devices: []*devicepb.DeviceSpec{{TaskPath: "/dev/lamp", HostPath: "/dev/lamp0", Permissions: "rw"}},
	}}, nil
}

func (d *scriptedDevices) Stats(r *devicepb.StatsRequest, stream grpc.ServerStreamingServer[devicepb.StatsResponse]) error {
	deep := &structs.StatObject{Attributes: map[string]*structs.StatValue{"bottom": {BoolVal: wrapperspb.Bool(true)}}}
	for range 20 {
		deep = &structs.StatObject{Nested: map[string]*structs.StatObject{"down": deep}}
	}
	deep.Attributes = map[string]*structs.StatValue{
		"on":    {BoolVal: wrapperspb.Bool(false)},
		"state": {StringVal: wrapperspb.String("warm"), Desc: "how it\x07 feels"},
		"hours": {IntNumeratorVal: wrapperspb.Int64(3), IntDenominatorVal: wrapperspb.Int64(1000), Unit: "h"},
	}
	message := &devicepb.StatsResponse{Groups: []*devicepb.DeviceGroupStats{{
		Vendor: "acme", Type: "lamp", Name: "L1", InstanceStats: map[string]*devicepb.DeviceStats{"lamp-0": {
			Summary:   &structs.StatValue{FloatNumeratorVal: wrapperspb.Double(2.5), FloatDenominatorVal: wrapperspb.Double(40), Unit: "W", Desc: "power"},
			Stats:     deep,
			Timestamp: timestamppb.New(time.Unix(5, 0)),
		}, "lamp-1": nil},
	}}}
	for {
		if err := stream.Send(message); err != nil {
			return err
		}
		select {
		case <-time.After(r.GetCollectionInterval().AsDuration()):
		case <-stream.Context().Done():
			return nil
		}
	}
}
