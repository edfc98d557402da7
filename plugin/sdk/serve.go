package sdk

import (
	"context"
	"errors"
	"math"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/seed-f9cf0b39/nodedrain/plugin"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	devicepb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
)

// Serve serves the driver to the host that started this process, until the host stops it. It owns
// stdout: the driver must not print there, and must log to stderr.
func Serve(d Driver) {
	unignoreSignals()
	serve(plugin.DriverName, func(s *grpc.Server) { Register(s, d) })
}

// closeTimeout is the time that a host gives a plugin to exit, minus the time that the server
// needs.
const closeTimeout = 1500 * time.Millisecond

// ServeDevice serves the device plugin to the host that started this process, until the host stops
// it. It owns stdout: the plugin must not print there, and must log to stderr.
func ServeDevice(d Device) {
	serve(plugin.DeviceName, func(s *grpc.Server) { RegisterDevice(s, d) })
	if c, ok := d.(Closer); ok {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			logger().Warn("the plugin did not close cleanly", "error", err)
		}
	}
}

// serve serves the services of a plugin. The name is a label: one connection serves all of them.
func serve(name string, register func(*grpc.Server)) {
	keep := keepStderr()
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: plugin.Handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{plugin.ProtocolVersion: {
			name: served{register: register},
		}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			options = append(options, grpc.UnaryInterceptor(keep))
			return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32))...)
		},
		Logger: logger(),
	})
}

// keepStderr returns an interceptor that restores os.Stdout and os.Stderr at the first call.
// go-plugin replaces them by pipes to the host. While no host reads these pipes, output is lost and
// a write blocks the plugin. A host makes unary calls before streaming calls, so a unary
// interceptor is enough.
func keepStderr() grpc.UnaryServerInterceptor {
	stderr := os.Stderr
	var once sync.Once
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		once.Do(func() { os.Stdout, os.Stderr = stderr, stderr })
		return handler(ctx, req)
	}
}

// logger writes the messages of this package and of go-plugin to the log of the plugin.
func logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, JSONFormat: true})
}

// Register adds the services of a driver to a gRPC server, for tests in one process.
func Register(s *grpc.Server, d Driver) {
	base.RegisterBasePluginServer(s, &baseServer{plugin: d, kind: base.PluginType_DRIVER})
	pb.RegisterDriverServer(s, &server{driver: d})
}

// RegisterDevice adds the services of a device plugin to a gRPC server, for tests in one process.
func RegisterDevice(s *grpc.Server, d Device) {
	base.RegisterBasePluginServer(s, &baseServer{plugin: d, kind: base.PluginType_DEVICE})
	devicepb.RegisterDevicePluginServer(s, &deviceServer{device: d})
}

// served is the server side of a go-plugin plugin.
type served struct {
	goplugin.NetRPCUnsupportedPlugin
	register func(*grpc.Server)
}

func (p served) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	p.register(s)
	return nil
}

func (served) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this is the server's half of the plugin")
}

// baseServer serves the calls that all plugins have.
type baseServer struct {
	base.UnimplementedBasePluginServer
	plugin interface {
		Info() Info
		Configure(config []byte) error
	}
	kind base.PluginType
}

func (s *baseServer) PluginInfo(context.Context, *base.PluginInfoRequest) (*base.PluginInfoResponse, error) {
	info := s.plugin.Info()
	return &base.PluginInfoResponse{
		Type:              s.kind,
		PluginApiVersions: []string{plugin.APIVersion},
		PluginVersion:     info.Version,
		Name:              info.Name,
	}, nil
}

func (s *baseServer) ConfigSchema(context.Context, *base.ConfigSchemaRequest) (*base.ConfigSchemaResponse, error) {
	return &base.ConfigSchemaResponse{Spec: orEmpty(s.plugin.Info().ConfigSchema)}, nil
}

func (s *baseServer) SetConfig(_ context.Context, req *base.SetConfigRequest) (*base.SetConfigResponse, error) {
	if err := s.plugin.Configure(req.GetMsgpackConfig()); err != nil {
		return nil, toStatus(err)
	}
	return &base.SetConfigResponse{}, nil
}
