package main

import (
	"context"
	"errors"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/seed-f9cf0b39/nodedrain/plugin"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
)

// identity is a plugin's description of itself.
type identity struct {
	base.UnimplementedBasePluginServer
	kind          base.PluginType
	name, version string
	schema        *hclspec.Spec
	// register adds the services of the plugin.
	register func(*grpc.Server)
}

// serve serves a plugin until the client ends it.
func serve(i *identity) {
	label := plugin.DriverName
	if i.kind == base.PluginType_DEVICE {
		label = plugin.DeviceName
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: plugin.Handshake(),
		Plugins:         goplugin.PluginSet{label: services{identity: i}},
		GRPCServer:      goplugin.DefaultGRPCServer,
	})
}

type services struct {
	goplugin.NetRPCUnsupportedPlugin
	*identity
}

func (s services) GRPCServer(_ *goplugin.GRPCBroker, server *grpc.Server) error {
	base.RegisterBasePluginServer(server, s.identity)
	s.register(server)
	return nil
}

func (services) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this is the plugin's side")
}

func (i *identity) PluginInfo(context.Context, *base.PluginInfoRequest) (*base.PluginInfoResponse, error) {
	return &base.PluginInfoResponse{Type: i.kind, PluginApiVersions: []string{plugin.APIVersion}, PluginVersion: i.version, Name: i.name}, nil
}

func (i *identity) ConfigSchema(context.Context, *base.ConfigSchemaRequest) (*base.ConfigSchemaResponse, error) {
	return &base.ConfigSchemaResponse{Spec: i.schema}, nil
}

// SetConfig accepts every config: a client checks it against the schema.
func (*identity) SetConfig(context.Context, *base.SetConfigRequest) (*base.SetConfigResponse, error) {
	return &base.SetConfigResponse{}, nil
}
