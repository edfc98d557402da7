package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// period is the time between two looks at the devices. The plugins' own default is a minute.
const period = 100 * time.Millisecond

// cards is a device plugin. Its devices are the lines "ID MODEL HEALTH" of a file, with "ok" or a
// word that states why the device is unhealthy.
type cards struct {
	pb.UnimplementedDevicePluginServer
	file   string
	vendor string
	// nvml: the plugin gets its texts from the library of Nvidia.
	nvml bool

	mu sync.Mutex
	// reported is the file as it was reported last, on any stream; guarded by mu.
	reported []byte
}

func nvidia(dir string) *identity {
	return devicePlugin("nvidia-gpu", "1.1.0", &cards{file: filepath.Join(dir, "gpus"), vendor: "nvidia", nvml: true}, sdk.Object(map[string]*sdk.Spec{
		"enabled":            sdk.Default(sdk.Attribute("bool", false), "true"),
		"ignored_gpu_ids":    sdk.Default(sdk.Attribute("list(string)", false), "[]"),
		"fingerprint_period": sdk.Default(sdk.Attribute("string", false), `"1m"`),
	}))
}

func skeletonDevice(dir string) *identity {
	return devicePlugin("skeleton-device", "0.1.0", &cards{file: filepath.Join(dir, "skeletons"), vendor: "hashicorp"}, sdk.Object(map[string]*sdk.Spec{
		"fingerprint_period": sdk.Default(sdk.Attribute("string", false), `"1m"`),
	}))
}

func devicePlugin(name, version string, c *cards, schema *sdk.Spec) *identity {
	return &identity{
		kind: base.PluginType_DEVICE, name: name, version: version, schema: schema,
		register: func(s *grpc.Server) { pb.RegisterDevicePluginServer(s, c) },
	}
}

// Fingerprint sends the devices when they differ from the last report of this process. So a second
// stream gets nothing until a device changes.
func (c *cards) Fingerprint(_ *pb.FingerprintRequest, stream grpc.ServerStreamingServer[pb.FingerprintResponse]) error {
	for {
		if text, changed := c.read(); changed {
			if err := stream.Send(&pb.FingerprintResponse{DeviceGroup: c.groups(text)}); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(period):
		}
	}
}

// look reads the devices, and reports whether they have changed since the last look.
func (c *cards) read() ([]byte, bool) {
	text, err := os.ReadFile(c.file)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.reported != nil && bytes.Equal(text, c.reported) {
		return nil, false
	}
	c.reported = append([]byte{}, text...)
	return text, true
}

func (c *cards) groups(text []byte) (groups []*pb.DeviceGroup) {
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		at := slices.IndexFunc(groups, func(g *pb.DeviceGroup) bool { return g.GetDeviceName() == words[1] })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &pb.DeviceGroup{Vendor: c.vendor, DeviceType: "gpu", DeviceName: words[1], Attributes: c.attributes()})
		}
		d := &pb.DetectedDevice{ID: words[0], Healthy: words[2] == "ok"}
		if !d.Healthy {
			d.HealthDescription = words[2]
		}
		if c.nvml {
			// The driver's buffer has 32 bytes, and the plugin sends all of them.
			bus := fmt.Sprintf("00000000:%02X:00.0", n+1)
			d.HwLocality = &pb.DeviceLocality{PciBusId: bus + strings.Repeat("\x00", 32-len(bus))}
		}
		groups[at].Devices = append(groups[at].Devices, d)
	}
	return groups
}

func (c *cards) attributes() map[string]*structs.Attribute {
	if !c.nvml {
		return nil
	}
	return map[string]*structs.Attribute{
		"memory":         {Value: &structs.Attribute_IntVal{IntVal: 143771}, Unit: "MiB"},
		"power":          {Value: &structs.Attribute_IntVal{IntVal: 700}, Unit: "W"},
		"driver_version": {Value: &structs.Attribute_StringVal{StringVal: "570.86"}},
	}
}

// Reserve returns the variable that the container runtime of Nvidia reads.
func (c *cards) Reserve(_ context.Context, r *pb.ReserveRequest) (*pb.ReserveResponse, error) {
	c.mu.Lock()
	known := c.groups(c.reported)
	c.mu.Unlock()
	for _, id := range r.GetDeviceIds() {
		if !slices.ContainsFunc(known, func(g *pb.DeviceGroup) bool {
			return slices.ContainsFunc(g.GetDevices(), func(d *pb.DetectedDevice) bool { return d.GetID() == id })
		}) {
			return nil, status.Error(codes.Unknown, "unknown device IDs: "+id)
		}
	}
	answer := &pb.ContainerReservation{}
	if c.nvml && len(r.GetDeviceIds()) > 0 {
		answer.Envs = map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(r.GetDeviceIds(), ",")}
	}
	return &pb.ReserveResponse{ContainerRes: answer}, nil
}

// Stats sends the use of memory at once and in each interval.
func (c *cards) Stats(r *pb.StatsRequest, stream grpc.ServerStreamingServer[pb.StatsResponse]) error {
	for {
		c.mu.Lock()
		known := c.groups(c.reported)
		c.mu.Unlock()
		answer := &pb.StatsResponse{}
		for _, g := range known {
			all := &pb.DeviceGroupStats{Vendor: g.GetVendor(), Type: g.GetDeviceType(), Name: g.GetDeviceName(), InstanceStats: map[string]*pb.DeviceStats{}}
			for _, d := range g.GetDevices() {
				all.InstanceStats[d.GetID()] = &pb.DeviceStats{
					Summary:   &structs.StatValue{IntNumeratorVal: wrapperspb.Int64(4), IntDenominatorVal: wrapperspb.Int64(143771), Unit: "MiB", Desc: "used memory"},
					Timestamp: timestamppb.Now(),
				}
			}
			answer.Groups = append(answer.Groups, all)
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(r.GetCollectionInterval().AsDuration()):
		}
	}
}
