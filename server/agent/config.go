package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Config configures an [Agent]. The zero value keeps its state in memory, listens on the loopback
// interface and is in no cluster. To put the server into a cluster, set Voters, BootstrapExpect or
// Join.
type Config struct {
	// Name is the server's name among its peers. It never changes. Empty is the name that DataDir
	// holds from an earlier start, or else a new UUID.
	Name string
	// DataDir is the directory of the server's log and snapshots. The agent creates it if it does
	// not exist. Empty keeps them in memory, and a restart loses them.
	DataDir string
	// Logger receives messages for operators. Nil discards them.
	Logger hclog.Logger

	// HTTPAddr is the "host:port" at which the HTTP API listens. Empty is [DefaultHTTPAddr]. Port 0
	// is any free port.
	HTTPAddr string
	// HTTPTLS is the TLS configuration of the API. Nil serves plain HTTP.
	HTTPTLS *tls.Config
	// ServerAddr is the "host:port" at which the server listens for its peers. Empty is
	// [DefaultServerAddr]. Port 0 is any free port. Without ServerTLS it must be a loopback address.
	// Without ServerTLS and PeerSecret the server does not listen there: it is the only server of its
	// cluster.
	ServerAddr string
	// Advertise is the "host:port" at which peers reach ServerAddr. Empty is the address at which
	// it listens. Advertise is required if that is an unspecified address such as 0.0.0.0.
	Advertise string
	// ServerTLS is the TLS configuration between servers, for both sides of a connection. It must
	// demand a certificate of every client. Nil is no TLS with certificates.
	ServerTLS *tls.Config
	// PeerSecret authenticates peers without ServerTLS, if all servers run on this machine and use
	// loopback addresses. All of them need the same secret. Nil is no secret. Without ServerTLS and
	// PeerSecret, New refuses Join, other Voters, a BootstrapExpect above 1 and a DataDir of a cluster
	// with other servers, with an error that wraps [ErrPeerAccess].
	PeerSecret *PeerSecret
	// AllowInsecure lets the agent listen at HTTPAddr beyond the loopback interface without Access
	// and without an HTTPTLS that demands certificates of clients. Every host that reaches the agent
	// then controls it.
	AllowInsecure bool
	// Access identifies callers of the API. Nil gives every caller the right to read and to write.
	Access httpapi.Access

	// Voters are the servers of a new cluster, or nil. This server is one of them, with its Name and
	// its advertised address. All servers must have the same Voters.
	Voters []raft.Server
	// BootstrapExpect is the number of servers that bootstrap a new cluster together when they have
	// found each other. All of them must have the same number. With 1 the server bootstraps a
	// cluster of one server. With zero it bootstraps no cluster. A server that is in a cluster
	// ignores the number.
	BootstrapExpect int
	// Join are addresses of servers: servers of a new cluster, or servers of a running cluster that
	// this server joins. The servers of a new cluster need only one address in common: the server
	// there sends each of them the addresses of the others. This server's own address may be among
	// them.
	Join []string
	// LeaveOnStop makes [Agent.Stop] remove the server from the cluster. Without it the stopped
	// server stays a member.
	LeaveOnStop bool

	// Conns bounds the connections of clients to the HTTP API. Zero values are those of
	// [connlimit.Limits.WithDefaults]. The agent derives the bounds of ServerAddr from Conns.All:
	// other servers may have twice as many connections for forwarded requests, and Conns.All from
	// one address. Raft may have a quarter of Conns.All, and so may sessions of nodes, but at least 64.
	// No bound of ServerAddr is below 32.
	Conns connlimit.Limits

	// LeaderWait is the longest time for which a request that only the leader can answer waits for
	// a leader. Zero is [DefaultLeaderWait].
	LeaderWait time.Duration
	// StopTimeout is the longest time for which [Agent.Stop] waits for requests in progress. With
	// LeaveOnStop it waits as long again, at most, until the server has left. Zero is
	// [DefaultStopTimeout].
	StopTimeout time.Duration

	// SnapshotTimeout is the longest time for which [Agent.Stop] waits for its snapshot. With that
	// snapshot the next start is faster. Zero is [DefaultSnapshotTimeout].
	SnapshotTimeout time.Duration

	// CompareInterval is the time between two comparisons of the servers' states. The leader makes
	// them. If the state is large, the leader waits longer: 50 times as long as it took to compute
	// the digest of its own state. Zero is [DefaultCompareInterval].
	CompareInterval time.Duration

	// Heartbeats set the time between heartbeats of clients.
	Heartbeats heartbeat.Options
	// Raft are raft's settings. Nil is raft's default configuration with BatchApplyCh. The agent
	// sets LocalID, Logger and ShutdownOnRemove.
	Raft *raft.Config
	// Drainer and Scheduler are as in [server.Config].
	Drainer   drainer.NodeDrainerConfig
	Scheduler scheduler.Config
	// Collect sets when ended work is deleted. Its zero value means the defaults.
	Collect collect.Options

	// API configures the HTTP API. The agent sets its Logger.
	API httpapi.Options
	// Metrics counts requests, writes and steps, and answers GET /v1/metrics. Nil counts nothing.
	// The caller closes it after [Agent.Stop].
	Metrics *telemetry.Telemetry
	// Around wraps the API's handler, for example to serve other paths to clients. Nil wraps
	// nothing.
	Around func(api http.Handler) http.Handler
	// OnApply is called after each applied entry, in the order of the log, or is nil. Raft waits
	// for its return.
	OnApply func(shims.Applied)
	// Dial connects to a peer. Nil uses a [net.Dialer]. The agent adds TLS.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// searchTime bounds a search for the session of a node. Zero is surveyTimeout. Tests on busy machines
	// have a longer one.
	searchTime time.Duration
}

// Defaults of [Config].
const (
	DefaultHTTPAddr    = "127.0.0.1:4646"
	DefaultServerAddr  = "127.0.0.1:4647"
	DefaultLeaderWait  = 5 * time.Second
	DefaultStopTimeout = 5 * time.Second

	DefaultSnapshotTimeout = 15 * time.Second
	DefaultCompareInterval = time.Minute
)

// withDefaults returns c with defaults in place of zero values. The error names an invalid field.
func (c Config) withDefaults() (Config, error) {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	setDefault(&c.HTTPAddr, DefaultHTTPAddr)
	setDefault(&c.ServerAddr, DefaultServerAddr)
	setDefault(&c.LeaderWait, DefaultLeaderWait)
	setDefault(&c.StopTimeout, DefaultStopTimeout)
	c.Conns = c.Conns.WithDefaults()
	setDefault(&c.SnapshotTimeout, DefaultSnapshotTimeout)
	setDefault(&c.CompareInterval, DefaultCompareInterval)
	if c.Around == nil {
		c.Around = func(api http.Handler) http.Handler { return api }
	}
	c.API.Logger = c.Logger.Named("api")
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	settings := raft.DefaultConfig()
	settings.BatchApplyCh = true
	if c.Raft != nil {
		*settings = *c.Raft
	}
	settings.ShutdownOnRemove = false // only Stop shuts raft down
	c.Raft = settings
	if err := c.validate(); err != nil {
		return c, fmt.Errorf("agent: %w", err)
	}
	return c, nil
}

// InMemory returns the configuration of a single server that keeps its state in memory, and that
// becomes the leader within milliseconds. It has no port for other servers. The fields that concern
// storage, other servers and raft are replaced.
func (c Config) InMemory() Config {
	c.DataDir, c.Voters, c.Join, c.BootstrapExpect, c.LeaveOnStop = "", nil, nil, 1, false
	c.ServerTLS, c.PeerSecret = nil, nil
	c.Raft = raft.DefaultConfig()
	c.Raft.BatchApplyCh = true
	c.Raft.HeartbeatTimeout, c.Raft.ElectionTimeout, c.Raft.LeaderLeaseTimeout = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate returns an error that names the first invalid field, or nil.
func (c *Config) validate() error {
	switch {
	case c.BootstrapExpect < 0:
		return fmt.Errorf("Config.BootstrapExpect is %d and must be at least 0", c.BootstrapExpect)
	case c.BootstrapExpect > 0 && c.Voters != nil:
		return errors.New("Config.BootstrapExpect and Config.Voters exclude each other: set one of them")
	case c.Voters != nil && c.Name == "":
		return errors.New("Config.Name is required with Config.Voters: it names which of them is this server")
	case c.LeaderWait < 0:
		return fmt.Errorf("Config.LeaderWait is %s and must be above 0", c.LeaderWait)
	case c.StopTimeout < 0:
		return fmt.Errorf("Config.StopTimeout is %s and must be above 0", c.StopTimeout)
	case c.SnapshotTimeout < 0:
		return fmt.Errorf("Config.SnapshotTimeout is %s and must be above 0", c.SnapshotTimeout)
	case c.CompareInterval < 0:
		return fmt.Errorf("Config.CompareInterval is %s and must be above 0", c.CompareInterval)
	case c.ServerTLS != nil && c.ServerTLS.ClientAuth != tls.RequireAndVerifyClientCert:
		return errors.New("Config.ServerTLS must have ClientAuth RequireAndVerifyClientCert: servers trust every server that connects")
	case c.ServerTLS != nil && c.PeerSecret != nil:
		return errors.New("Config.ServerTLS and Config.PeerSecret exclude each other: certificates authenticate the peers")
	}
	if err := c.Heartbeats.Validate(); err != nil {
		return fmt.Errorf("Config.Heartbeats: %w", err)
	}
	if err := c.Conns.Validate(); err != nil {
		return fmt.Errorf("Config.Conns: %w", err)
	}
	if err := c.validateAddresses(); err != nil {
		return err
	}
	return c.validatePeers()
}

// validateAddresses returns an error for an invalid address, and for a public address of the API
// without access control.
func (c *Config) validateAddresses() error {
	httpLocal, err := isLoopback(c.HTTPAddr)
	if err != nil {
		return fmt.Errorf("Config.HTTPAddr: %w", err)
	}
	if !httpLocal && !c.AllowInsecure && c.Access == nil && (c.HTTPTLS == nil || c.HTTPTLS.ClientAuth != tls.RequireAndVerifyClientCert) {
		return fmt.Errorf("every host could drain nodes at %s: set Config.Access, or a Config.HTTPTLS that demands certificates, or Config.AllowInsecure to permit that", c.HTTPAddr)
	}
	if _, err := isLoopback(c.ServerAddr); err != nil {
		return fmt.Errorf("Config.ServerAddr: %w", err)
	}
	if c.Advertise == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Advertise)
	if err != nil || host == "" {
		return fmt.Errorf("Config.Advertise is %q and must be host:port", c.Advertise)
	}
	return nil
}

// ErrPeerAccess means that the server must authenticate peers and cannot. Set [Config].ServerTLS on all
// servers of the cluster, or [Config].PeerSecret if all of them run on one machine.
var ErrPeerAccess = errors.New("servers must authenticate each other")

// validatePeers returns an error that wraps ErrPeerAccess if the server could not authenticate its
// peers.
func (c *Config) validatePeers() error {
	if c.ServerTLS != nil {
		return nil
	}
	addresses := append([]string{c.ServerAddr}, c.Join...)
	if c.Advertise != "" {
		addresses = append(addresses, c.Advertise)
	}
	for _, v := range c.Voters {
		addresses = append(addresses, string(v.Address))
	}
	for _, a := range addresses {
		if local, err := isLoopback(a); err != nil || !local {
			return fmt.Errorf("%w: %s is not a loopback address, and this server has no certificates for servers", ErrPeerAccess, a)
		}
	}
	if c.PeerSecret == nil && (c.BootstrapExpect > 1 || len(c.Voters) > 1 || len(c.Join) > 0) {
		return fmt.Errorf("%w: this server has peers, but neither certificates for servers nor a peer secret", ErrPeerAccess)
	}
	return nil
}

// warn logs settings that are valid but risky: bounds on connections that are too high, and tokens
// without TLS.
func (c *Config) warn() {
	c.Conns.Warn(c.Logger)
	local, err := isLoopback(c.HTTPAddr)
	if err == nil && !local && c.Access != nil && c.HTTPTLS == nil {
		c.Logger.Warn("tokens are sent without TLS: every host on the path can read and use them", "address", c.HTTPAddr)
	}
}

// isLoopback reports whether only processes on this host can reach the address.
func isLoopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}
