package csi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/internal/cstring"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/socket"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Plugin is a connection to one storage plugin. It is safe for concurrent use.
type Plugin struct {
	conn       *grpc.ClientConn
	identity   spec.IdentityClient
	node       spec.NodeClient
	controller spec.ControllerClient
}

// Waits between attempts to connect, and the timeout of one attempt.
const (
	firstRedial    = 50 * time.Millisecond
	maxRedial      = time.Second
	connectTimeout = 5 * time.Second
)

// Connect returns a connection to the plugin at a socket. It does not connect yet: the first call
// connects, and a call after a restart of the plugin connects again. The peer must run as this user
// or root.
func Connect(path string) (*Plugin, error) {
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return nil, err
		}
		u, is := c.(*net.UnixConn)
		if !is {
			return nil, errors.Join(fmt.Errorf("%s is not a unix socket", path), c.Close())
		}
		if err := socket.CheckPeer(u); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return c, nil
	}
	conn, err := grpc.NewClient("passthrough:///storage", append(cstring.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: firstRedial, Multiplier: 2, MaxDelay: maxRedial}, MinConnectTimeout: connectTimeout}))...)
	if err != nil {
		return nil, fmt.Errorf("storage plugin at %s: %w", path, err)
	}
	return &Plugin{conn, spec.NewIdentityClient(conn), spec.NewNodeClient(conn), spec.NewControllerClient(conn)}, nil
}

// Close closes the connection. Calls in flight return an error.
func (p *Plugin) Close() error { return p.conn.Close() }

// Probe returns why the plugin is not ready, or nil.
func (p *Plugin) Probe(ctx context.Context) error {
	answer, err := p.identity.Probe(ctx, &spec.ProbeRequest{})
	switch {
	case err != nil:
		return inWords("Probe", err)
	case answer.GetReady() != nil && !answer.GetReady().GetValue(): // a missing field means ready
		return errors.New("Probe: the plugin says that it is not ready")
	}
	return nil
}

// Describe requests the name, version and capabilities of the plugin. t is the type in the job.
func (p *Plugin) Describe(ctx context.Context, t cluster.PluginType) (*cluster.StoragePlugin, error) {
	info, err := p.identity.GetPluginInfo(ctx, &spec.GetPluginInfoRequest{})
	if err != nil {
		return nil, inWords("GetPluginInfo", err)
	}
	found := &cluster.StoragePlugin{Type: t, Provider: info.GetName(), Version: info.GetVendorVersion()}
	if t.Node() {
		if err := p.describeNode(ctx, found); err != nil {
			return nil, err
		}
	}
	if t.Controller() {
		if err := p.describeController(ctx, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (p *Plugin) describeNode(ctx context.Context, found *cluster.StoragePlugin) error {
	can, err := p.node.NodeGetCapabilities(ctx, &spec.NodeGetCapabilitiesRequest{})
	if err != nil {
		return inWords("NodeGetCapabilities", err)
	}
	for _, c := range can.GetCapabilities() {
		if c.GetRpc().GetType() == spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME {
			found.Stages = true
		}
	}
	info, err := p.node.NodeGetInfo(ctx, &spec.NodeGetInfoRequest{})
	if err != nil {
		return inWords("NodeGetInfo", err)
	}
	found.NodeID, found.MaxVolumes = info.GetNodeId(), max(0, info.GetMaxVolumesPerNode())
	if segments := info.GetAccessibleTopology().GetSegments(); len(segments) > 0 {
		found.Topology = cluster.Topology{Segments: segments}
	}
	return nil
}

func (p *Plugin) describeController(ctx context.Context, found *cluster.StoragePlugin) error {
	can, err := p.controller.ControllerGetCapabilities(ctx, &spec.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return inWords("ControllerGetCapabilities", err)
	}
	for _, c := range can.GetCapabilities() {
		switch c.GetRpc().GetType() {
		case spec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME:
			found.Attaches = true
		case spec.ControllerServiceCapability_RPC_PUBLISH_READONLY:
			found.ReadOnlyAttaches = true
		default: // the client does not use it
		}
	}
	return nil
}

// inWords adds the name of the call to an error.
func inWords(call string, err error) error {
	if s, is := status.FromError(err); is {
		return fmt.Errorf("%s: %s: %s", call, s.Code(), s.Message())
	}
	return fmt.Errorf("%s: %w", call, err)
}

// classify returns an error of a call with its class.
func classify(call string, err error) error {
	if err == nil {
		return nil
	}
	class := storage.Transient
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.OutOfRange, codes.PermissionDenied, codes.Unauthenticated:
		class = storage.Refused
	case codes.Unimplemented:
		class = storage.Unimplemented
	default: // a retry may succeed, for example after Aborted
	}
	return &storage.Error{Class: class, Err: inWords(call, err)}
}
