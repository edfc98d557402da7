package csi_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/shoenig/test/must"
	"google.golang.org/grpc"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/csi"
)

// padded is a storage plugin that sends whole buffers of C.
type padded struct {
	spec.UnimplementedIdentityServer
	spec.UnimplementedNodeServer
}

func (padded) GetPluginInfo(context.Context, *spec.GetPluginInfoRequest) (*spec.GetPluginInfoResponse, error) {
	return &spec.GetPluginInfoResponse{Name: "disks\x00\x00", VendorVersion: "1.0\x00rest"}, nil
}

func (padded) NodeGetCapabilities(context.Context, *spec.NodeGetCapabilitiesRequest) (*spec.NodeGetCapabilitiesResponse, error) {
	return &spec.NodeGetCapabilitiesResponse{}, nil
}

func (padded) NodeGetInfo(context.Context, *spec.NodeGetInfoRequest) (*spec.NodeGetInfoResponse, error) {
	return &spec.NodeGetInfoResponse{NodeId: "n1\x00", AccessibleTopology: &spec.Topology{Segments: map[string]string{"zone\x00": "a\x00b"}}}, nil
}

// The strings of a storage plugin are cut at the first NUL.
func TestDescribe_paddedStrings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "csi.sock")
	listener, err := net.Listen("unix", path)
	must.NoError(t, err)
	server := grpc.NewServer()
	spec.RegisterIdentityServer(server, padded{})
	spec.RegisterNodeServer(server, padded{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	p, err := csi.Connect(path)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, p.Close()) })
	found, err := p.Describe(t.Context(), cluster.PluginNode)
	must.NoError(t, err)
	must.Eq(t, &cluster.StoragePlugin{
		Type: cluster.PluginNode, Provider: "disks", Version: "1.0", NodeID: "n1", Topology: cluster.Topology{Segments: map[string]string{"zone": "a"}},
	}, found)
}
