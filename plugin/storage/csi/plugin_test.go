package csi_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/shoenig/test/must"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/csi"
)

// scripted is a storage plugin that stores its requests. The test sets its answers.
type scripted struct {
	spec.UnimplementedIdentityServer
	spec.UnimplementedNodeServer
	spec.UnimplementedControllerServer
	notReady bool
	// err is the answer to all calls for volumes, or nil.
	err error
	// requested is the request of the last of these calls.
	received proto.Message
}

func (s *scripted) Probe(context.Context, *spec.ProbeRequest) (*spec.ProbeResponse, error) {
	if s.notReady {
		return &spec.ProbeResponse{Ready: wrapperspb.Bool(false)}, nil
	}
	return &spec.ProbeResponse{}, nil
}

func (*scripted) GetPluginInfo(context.Context, *spec.GetPluginInfoRequest) (*spec.GetPluginInfoResponse, error) {
	return &spec.GetPluginInfoResponse{Name: "disks.example", VendorVersion: "1.2"}, nil
}

func (*scripted) NodeGetCapabilities(context.Context, *spec.NodeGetCapabilitiesRequest) (*spec.NodeGetCapabilitiesResponse, error) {
	return &spec.NodeGetCapabilitiesResponse{Capabilities: []*spec.NodeServiceCapability{{Type: &spec.NodeServiceCapability_Rpc{
		Rpc: &spec.NodeServiceCapability_RPC{Type: spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
	}}}}, nil
}

func (*scripted) NodeGetInfo(context.Context, *spec.NodeGetInfoRequest) (*spec.NodeGetInfoResponse, error) {
	return &spec.NodeGetInfoResponse{NodeId: "this", MaxVolumesPerNode: 7, AccessibleTopology: &spec.Topology{Segments: map[string]string{"zone": "a"}}}, nil
}

func (*scripted) ControllerGetCapabilities(context.Context, *spec.ControllerGetCapabilitiesRequest) (*spec.ControllerGetCapabilitiesResponse, error) {
	has := func(t spec.ControllerServiceCapability_RPC_Type) *spec.ControllerServiceCapability {
		return &spec.ControllerServiceCapability{Type: &spec.ControllerServiceCapability_Rpc{Rpc: &spec.ControllerServiceCapability_RPC{Type: t}}}
	}
	return &spec.ControllerGetCapabilitiesResponse{Capabilities: []*spec.ControllerServiceCapability{
		has(spec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME), has(spec.ControllerServiceCapability_RPC_PUBLISH_READONLY),
	}}, nil
}

func (s *scripted) NodeStageVolume(_ context.Context, r *spec.NodeStageVolumeRequest) (*spec.NodeStageVolumeResponse, error) {
	s.received = r
	return &spec.NodeStageVolumeResponse{}, s.err
}

func (s *scripted) NodePublishVolume(_ context.Context, r *spec.NodePublishVolumeRequest) (*spec.NodePublishVolumeResponse, error) {
	s.received = r
	return &spec.NodePublishVolumeResponse{}, s.err
}

func (s *scripted) NodeUnpublishVolume(_ context.Context, r *spec.NodeUnpublishVolumeRequest) (*spec.NodeUnpublishVolumeResponse, error) {
	s.received = r
	return &spec.NodeUnpublishVolumeResponse{}, s.err
}

func (s *scripted) NodeUnstageVolume(_ context.Context, r *spec.NodeUnstageVolumeRequest) (*spec.NodeUnstageVolumeResponse, error) {
	s.received = r
	return &spec.NodeUnstageVolumeResponse{}, s.err
}

func (s *scripted) ControllerPublishVolume(_ context.Context, r *spec.ControllerPublishVolumeRequest) (*spec.ControllerPublishVolumeResponse, error) {
	s.received = r
	return &spec.ControllerPublishVolumeResponse{PublishContext: map[string]string{"device": "sdb"}}, s.err
}

func (s *scripted) ControllerUnpublishVolume(_ context.Context, r *spec.ControllerUnpublishVolumeRequest) (*spec.ControllerUnpublishVolumeResponse, error) {
	s.received = r
	return &spec.ControllerUnpublishVolumeResponse{}, s.err
}

func connect(t *testing.T, s *scripted) *csi.Plugin {
	t.Helper()
	dir, err := os.MkdirTemp("", "nd")
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, os.RemoveAll(dir)) })
	path := filepath.Join(dir, "csi.sock")
	listener, err := net.Listen("unix", path)
	must.NoError(t, err)
	server := grpc.NewServer()
	spec.RegisterIdentityServer(server, s)
	spec.RegisterNodeServer(server, s)
	spec.RegisterControllerServer(server, s)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	p, err := csi.Connect(path)
	must.NoError(t, err)
	t.Cleanup(func() {
		must.NoError(t, p.Close())
		server.Stop()
		must.NoError(t, <-ended)
	})
	return p
}

func TestPlugin_describe(t *testing.T) {
	t.Parallel()
	s := new(scripted)
	p := connect(t, s)
	must.NoError(t, p.Probe(t.Context()))
	s.notReady = true
	must.ErrorContains(t, p.Probe(t.Context()), "not ready")

	found, err := p.Describe(t.Context(), cluster.PluginMonolith)
	must.NoError(t, err)
	must.Eq(t, &cluster.StoragePlugin{
		Type: cluster.PluginMonolith, Provider: "disks.example", Version: "1.2", NodeID: "this", MaxVolumes: 7,
		Topology: cluster.Topology{Segments: map[string]string{"zone": "a"}}, Stages: true, Attaches: true, ReadOnlyAttaches: true,
	}, found)
	found, err = p.Describe(t.Context(), cluster.PluginController)
	must.NoError(t, err)
	must.False(t, found.Stages)
	must.True(t, found.Attaches)
}

func TestPlugin_nobodyListens(t *testing.T) {
	t.Parallel()
	p, err := csi.Connect(filepath.Join(t.TempDir(), "none"))
	must.NoError(t, err)
	must.ErrorContains(t, p.Probe(t.Context()), "Probe: Unavailable")
	must.NoError(t, p.Close())
}

var writer = cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}

// Each request contains exactly the fields that the plugin needs.
func TestPlugin_requests(t *testing.T) {
	t.Parallel()
	s := new(scripted)
	p := connect(t, s)
	claimed := storage.Claimed{
		PublishContext: map[string]string{"device": "sdb"}, Context: map[string]string{"a": "b"}, Secrets: map[string]string{"key": "secret"},
		Options: &cluster.MountOptions{FSType: "ext4", Flags: []string{"noatime"}},
	}
	capability := &spec.VolumeCapability{
		AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{FsType: "ext4", MountFlags: []string{"noatime"}}},
	}
	for _, c := range []struct {
		verb     storage.Verb
		expected proto.Message
	}{
		{storage.Stage, &spec.NodeStageVolumeRequest{
			VolumeId: "ext", PublishContext: claimed.PublishContext, StagingTargetPath: "/s", VolumeCapability: capability, Secrets: claimed.Secrets, VolumeContext: claimed.Context,
		}},
		{storage.Publish, &spec.NodePublishVolumeRequest{
			VolumeId: "ext", PublishContext: claimed.PublishContext, StagingTargetPath: "/s", TargetPath: "/t", VolumeCapability: capability,
			Readonly: true, Secrets: claimed.Secrets, VolumeContext: claimed.Context,
		}},
		{storage.Unpublish, &spec.NodeUnpublishVolumeRequest{VolumeId: "ext", TargetPath: "/t"}},
		{storage.Unstage, &spec.NodeUnstageVolumeRequest{VolumeId: "ext", StagingTargetPath: "/s"}},
	} {
		call := storage.Call{Verb: c.verb, ExternalID: "ext", Staged: true, Claimed: claimed, Request: storage.Request{Usage: storage.Usage{VolumeCapability: writer, ReadOnly: true}}}
		must.NoError(t, p.Do(t.Context(), call, "/s", "/t"))
		must.True(t, proto.Equal(c.expected, s.received), must.Sprintf("%v\n%v", c.expected, s.received))
	}
	block := storage.Call{Verb: storage.Publish, Request: storage.Request{Usage: storage.Usage{VolumeCapability: cluster.VolumeCapability{Attachment: cluster.AttachBlockDevice}}}}
	must.NoError(t, p.Do(t.Context(), block, "/s", "/t"))
	received, is := s.received.(*spec.NodePublishVolumeRequest)
	must.True(t, is)
	must.NotNil(t, received.GetVolumeCapability().GetBlock())
	must.EqOp(t, "", received.GetStagingTargetPath(), must.Sprint("the plugin does not stage"))
}

// Every access mode has its number.
func TestPlugin_accessModes(t *testing.T) {
	t.Parallel()
	s := new(scripted)
	p := connect(t, s)
	for mode, expected := range map[cluster.AccessMode]spec.VolumeCapability_AccessMode_Mode{
		cluster.SingleNodeReader:      spec.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
		cluster.SingleNodeWriter:      spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		cluster.MultiNodeReader:       spec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		cluster.MultiNodeSingleWriter: spec.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		cluster.MultiNodeMultiWriter:  spec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
		"":                            spec.VolumeCapability_AccessMode_UNKNOWN,
	} {
		_, err := p.Attach(t.Context(), csi.Attachment{Capability: cluster.VolumeCapability{Access: mode, Attachment: cluster.AttachFileSystem}})
		must.NoError(t, err)
		received, is := s.received.(*spec.ControllerPublishVolumeRequest)
		must.True(t, is)
		must.EqOp(t, expected, received.GetVolumeCapability().GetAccessMode().GetMode())
	}
}

// The code of an answer decides whether the call is retried.
func TestPlugin_classes(t *testing.T) {
	t.Parallel()
	s := new(scripted)
	p := connect(t, s)
	do := func(verb storage.Verb, code codes.Code) error {
		s.err = status.Error(code, "no")
		return p.Do(t.Context(), storage.Call{Verb: verb, Staged: true}, "/s", "/t")
	}
	for code, class := range map[codes.Code]storage.Class{
		codes.Aborted: storage.Transient, codes.DeadlineExceeded: storage.Transient, codes.Unavailable: storage.Transient, codes.Internal: storage.Transient,
		codes.ResourceExhausted: storage.Transient, codes.FailedPrecondition: storage.Transient,
		codes.InvalidArgument: storage.Refused, codes.NotFound: storage.Refused, codes.AlreadyExists: storage.Refused, codes.OutOfRange: storage.Refused,
		codes.PermissionDenied: storage.Refused, codes.Unimplemented: storage.Unimplemented,
	} {
		err := do(storage.Stage, code)
		must.EqOp(t, class, storage.ClassOf(err), must.Sprint(code))
		must.EqError(t, err, "NodeStageVolume: "+code.String()+": no")
	}
	must.EqOp(t, storage.NotStaged, storage.ClassOf(do(storage.Publish, codes.FailedPrecondition)))
	must.NoError(t, do(storage.Unpublish, codes.NotFound))
	must.NoError(t, do(storage.Unstage, codes.NotFound))
	must.Error(t, do(storage.Unstage, codes.FailedPrecondition))
}

func TestPlugin_controller(t *testing.T) {
	t.Parallel()
	s := new(scripted)
	p := connect(t, s)
	a := csi.Attachment{ExternalID: "ext", NodeID: "that", Capability: writer, Secrets: map[string]string{"key": "secret"}, Context: map[string]string{"a": "b"}}
	published, err := p.Attach(t.Context(), a)
	must.NoError(t, err)
	must.Eq(t, map[string]string{"device": "sdb"}, published)
	must.NoError(t, p.Detach(t.Context(), a))
	must.True(t, proto.Equal(&spec.ControllerUnpublishVolumeRequest{VolumeId: "ext", NodeId: "that", Secrets: a.Secrets}, s.received))

	s.err = status.Error(codes.NotFound, "unknown")
	must.NoError(t, p.Detach(t.Context(), a))
	_, err = p.Attach(t.Context(), a)
	var classed *storage.Error
	must.True(t, errors.As(err, &classed))
}

// If a plugin repeats secrets or values of mount flags in an error, they do not get into logs and
// reports. The class of the error stays.
func TestPlugin_hidesSecrets(t *testing.T) {
	t.Parallel()
	output := status.Error(codes.InvalidArgument, "mount -o username=bob,password=hunter2+: key hunter2 of 12 is wrong")
	p := connect(t, &scripted{err: output})
	secrets := map[string]string{"key": "hunter2", "longer": "hunter2+", "short": "12"}
	flags := &cluster.MountOptions{Flags: []string{"ro", "username=bob", "password=hunter2+"}}
	const expected = "InvalidArgument: mount -o username=bob,password=[redacted]: key [redacted] of 12 is wrong"
	check := func(err error) {
		t.Helper()
		must.ErrorContains(t, err, expected)
		must.Eq(t, storage.Refused, storage.ClassOf(err))
	}
	for _, verb := range []storage.Verb{storage.Stage, storage.Publish} {
		check(p.Do(t.Context(), storage.Call{Verb: verb, Claimed: storage.Claimed{Secrets: secrets, Options: flags}}, "/s", "/t"))
		check(p.Do(t.Context(), storage.Call{Verb: verb, Request: storage.Request{Options: flags}, Claimed: storage.Claimed{Secrets: secrets}}, "/s", "/t"))
	}
	// Bug: calls that undo have no claim, so their errors contained options and secrets.
	for _, verb := range []storage.Verb{storage.Unpublish, storage.Unstage} {
		check(p.Do(t.Context(), storage.Call{Verb: verb, Confidential: storage.Confidential{Secrets: secrets, Options: flags}}, "/s", "/t"))
	}
	a := csi.Attachment{Secrets: secrets, Options: flags}
	_, err := p.Attach(t.Context(), a)
	check(err)
	check(p.Detach(t.Context(), a))
}
