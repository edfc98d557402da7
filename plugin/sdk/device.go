package sdk

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
)

// Device is what each device plugin implements. The calls have the meaning of [device.Plugin].
type Device interface {
	// Info returns what never changes.
	Info() Info
	// Configure is called once, before all other calls except Info, with the plugin's config as
	// Info's ConfigSchema describes it. Use [Decode].
	Configure(config []byte) error
	// Fingerprints reports all devices at once and then at each change, until the context ends. An
	// empty list is a valid report. The ids of devices must stay the same after a restart of the
	// plugin.
	Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error
	// Reserve prepares devices of one kind and returns what their task needs. It is called at each
	// start of a task. There is no call at the end of a task. An unknown id is an error.
	Reserve(ctx context.Context, ids []string) (device.Reservation, error)
}

// DeviceStatsSource is a device plugin that reports measured values, until the context ends.
type DeviceStatsSource interface {
	Stats(ctx context.Context, interval time.Duration, report func([]device.GroupStats)) error
}

// deviceServer serves a device plugin.
type deviceServer struct {
	pb.UnimplementedDevicePluginServer
	device Device
}

func (s *deviceServer) Fingerprint(_ *pb.FingerprintRequest, stream grpc.ServerStreamingServer[pb.FingerprintResponse]) error {
	ctx, send := sender(stream)
	return ended(ctx, s.device.Fingerprints(ctx, func(groups []*cluster.DeviceGroup) {
		send(&pb.FingerprintResponse{DeviceGroup: fromGroups(groups)})
	}))
}

func (s *deviceServer) Reserve(ctx context.Context, req *pb.ReserveRequest) (*pb.ReserveResponse, error) {
	r, err := s.device.Reserve(ctx, req.GetDeviceIds())
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.ReserveResponse{ContainerRes: fromReservation(r)}, nil
}

func (s *deviceServer) Stats(req *pb.StatsRequest, stream grpc.ServerStreamingServer[pb.StatsResponse]) error {
	d, ok := s.device.(DeviceStatsSource)
	if !ok {
		return status.Errorf(codes.Unimplemented, "the device plugin %s does not measure", s.device.Info().Name)
	}
	interval := req.GetCollectionInterval().AsDuration()
	if interval <= 0 {
		interval = time.Second
	}
	ctx, send := sender(stream)
	return ended(ctx, d.Stats(ctx, interval, func(groups []device.GroupStats) {
		send(&pb.StatsResponse{Groups: fromGroupStats(groups)})
	}))
}
