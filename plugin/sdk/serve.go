package sdk

import (
	"context"
	"errors"
	"math"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/seed-f9cf0b39/nodedrain/plugin"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
)

// Serve serves the driver to the host that started this process, until the host ends it. It owns
// stdout: the driver must not print there, and logs to stderr.
func Serve(d Driver) {
	unignoreSignals()
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: plugin.Handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{plugin.ProtocolVersion: {
			plugin.BaseName:   served{register: func(s *grpc.Server) { base.RegisterBasePluginServer(s, &baseServer{driver: d}) }},
			plugin.DriverName: served{register: func(s *grpc.Server) { pb.RegisterDriverServer(s, &server{driver: d}) }},
		}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(math.MaxInt32), grpc.MaxSendMsgSize(math.MaxInt32))...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, JSONFormat: true}),
	})
}

// Register adds the services of a driver to a gRPC server: for tests in one process.
func Register(s *grpc.Server, d Driver) {
	base.RegisterBasePluginServer(s, &baseServer{driver: d})
	pb.RegisterDriverServer(s, &server{driver: d})
}

// served is the server's half of a plugin of go-plugin.
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

// baseServer serves what each plugin answers.
type baseServer struct {
	base.UnimplementedBasePluginServer
	driver Driver
}

func (s *baseServer) PluginInfo(context.Context, *base.PluginInfoRequest) (*base.PluginInfoResponse, error) {
	info := s.driver.Info()
	return &base.PluginInfoResponse{
		Type:              base.PluginType_DRIVER,
		PluginApiVersions: []string{plugin.APIVersion},
		PluginVersion:     info.Version,
		Name:              info.Name,
	}, nil
}

func (s *baseServer) ConfigSchema(context.Context, *base.ConfigSchemaRequest) (*base.ConfigSchemaResponse, error) {
	return &base.ConfigSchemaResponse{Spec: orEmpty(s.driver.Info().ConfigSchema)}, nil
}

func (s *baseServer) SetConfig(_ context.Context, req *base.SetConfigRequest) (*base.SetConfigResponse, error) {
	if err := s.driver.Configure(req.GetMsgpackConfig()); err != nil {
		return nil, toStatus(err)
	}
	return &base.SetConfigResponse{}, nil
}
