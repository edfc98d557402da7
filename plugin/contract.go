// Package plugin defines the constants of the handshake between hosts and plugins.
package plugin

import goplugin "github.com/hashicorp/go-plugin"

// APIVersion is the version of the plugin API.
const APIVersion = "v0.1.0"

// ProtocolVersion is the version of the protocol below that API: gRPC.
const ProtocolVersion = 2

// Names of the plugin map. They are labels: one connection serves all services.
const (
	DriverName = "driver"
	DeviceName = "device"
)

// Handshake is the environment variable that a plugin checks before it serves. It is not a secret.
// It prevents that a person runs a plugin by mistake.
func Handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		ProtocolVersion:  ProtocolVersion,
		MagicCookieKey:   "NOMAD_PLUGIN_MAGIC_COOKIE",
		MagicCookieValue: "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255",
	}
}
