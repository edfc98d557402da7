package config

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Config is the configuration of a client. [Load] has checked it and set the defaults.
type Config struct {
	// Name is the node's name; the default is the host's name.
	Name       string
	Datacenter string
	Region     string
	// Class may be empty.
	Class string
	Pool  string
	// Meta is the operator's information about the node, or nil.
	Meta map[string]string
	// DataDir is the absolute path of the folder of everything that the client keeps.
	DataDir string
	// PluginDir is the absolute path of the folder of driver plugins, or empty.
	PluginDir string
	// RunDir is the absolute path of the folder of sockets. Empty is one below /run/nodedrain that
	// follows from DataDir.
	RunDir string
	// Resources is the capacity of the node. Each amount that is zero is found out.
	Resources cluster.Resources
	// Reserved is the part of the capacity that no task gets.
	Reserved cluster.Resources
	// ReservedPorts are the ports that no task gets.
	ReservedPorts cluster.PortRanges
	// ReservedCores are the cores that no task has for itself.
	ReservedCores cluster.Cores
	// NetworkInterface is the interface whose address tasks get, or empty: then it is found out.
	NetworkInterface string
	// MinDynamicPort and MaxDynamicPort are the range of dynamic ports. Zero is the default.
	MinDynamicPort, MaxDynamicPort int
	Servers                        Servers
	Limits                         Limits
	Log                            Log
	// Plugins are the plugin blocks, by name.
	Plugins map[string]Plugin
}

// Servers describes how the client reaches the servers.
type Servers struct {
	// Addresses are URLs of servers' APIs; there is at least one. Each begins with https, or names
	// the loopback interface.
	Addresses []string
	// Token registers the node, or is empty. TokenFile is the file that it was read from, or empty.
	Token     string
	TokenFile string
	// CAFile holds the authorities of the servers' certificates. CertFile and KeyFile are the
	// client's own certificate. All may be empty.
	CAFile, CertFile, KeyFile string
	// ServerName is the name in the servers' certificates. Empty is the host of the address.
	ServerName string
}

// Limits are the bounds on the node.
type Limits struct {
	// MaxKillTimeout bounds the kill timeout of each task. The servers place no task with a longer
	// one here.
	MaxKillTimeout time.Duration
	// MaxAllocs bounds the allocations on the node; zero is no bound. A file without the key has
	// [DefaultMaxAllocs].
	MaxAllocs int
	// DriverCalls bounds the short calls in flight of each driver.
	DriverCalls int
	// HoldLimit bounds how long a storage plugin that must stop waits for volumes of the node, and how long
	// the end of an allocation waits for its volumes. Zero is the core's default.
	HoldLimit time.Duration
	// DataRetention is how long the data of an ephemeral disk that migrates is kept for a replacement. Zero is
	// the core's default.
	DataRetention time.Duration
}

// Log states what the client logs.
type Log struct {
	Level slog.Level
	JSON  bool
}

// Plugin is the block of one plugin.
type Plugin struct {
	Name    string
	Enabled bool
	// StartTimeout is how long the driver may take to start a task, or zero for the default of the
	// client's core.
	StartTimeout time.Duration
	// Env are the variables that the process of the plugin has beside those of the client, or nil.
	Env map[string]string
	// Config is the plugin's own configuration, a JSON object, or nil. The plugin's schema decodes it.
	Config json.RawMessage
}

// Defaults.
const (
	DefaultDatacenter     = "dc1"
	DefaultRegion         = "global"
	DefaultMaxKillTimeout = time.Hour
	DefaultDriverCalls    = 64
	DefaultMaxAllocs      = 1000
	DefaultHoldLimit      = 10 * time.Minute
	DefaultDataRetention  = time.Hour
)

// MaxRunDir bounds the path of [Config].RunDir, in bytes: the path of a socket has at most 107.
const MaxRunDir = 40
