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

	"github.com/seed-f9cf0b39/nodedrain/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/telemetry"
)

// Config configures an [Agent]. Its zero value is a server in memory that listens on the loopback
// interface and is in no cluster: set Voters, BootstrapExpect or Join.
type Config struct {
	// Name names the server among its peers, for good. Empty is the name in the
	// data directory, or a new UUID.
	Name string
	// DataDir is where the server keeps its log and snapshots; it is made if it
	// does not exist. Empty keeps them in memory, and a restart forgets them.
	DataDir string
	// Logger receives what an operator may want to know. Nil discards it.
	Logger hclog.Logger

	// HTTPAddr is where the HTTP API listens, "host:port". Empty is
	// [DefaultHTTPAddr]; port 0 is any free one.
	HTTPAddr string
	// HTTPTLS makes that HTTPS, or nil.
	HTTPTLS *tls.Config
	// ServerAddr is where the server listens for its peers, "host:port". Empty is
	// [DefaultServerAddr]; port 0 is any free one.
	ServerAddr string
	// Advertise is the "host:port" at which peers reach ServerAddr. Empty is the address at which
	// it listens; required if that is unspecified.
	Advertise string
	// ServerTLS is used in both directions between servers, and must demand a certificate of every
	// client; or nil for no TLS.
	ServerTLS *tls.Config
	// AllowInsecure lets the agent listen beyond the loopback interface without access control:
	// HTTPAddr without Access and without an HTTPTLS that demands certificates of clients,
	// ServerAddr without ServerTLS. Every host that reaches it then controls it.
	AllowInsecure bool
	// Access identifies callers of the API; nil gives every caller both rights.
	Access httpapi.Access

	// Voters are the servers of a new cluster, this one included by its Name and
	// advertised address; all of them are given the same. Or nil.
	Voters []raft.Server
	// BootstrapExpect is the number of servers that begin a new cluster together, once they have
	// found each other: the same number for all. Servers that Join another one tell it to the
	// others. 1 begins a cluster alone, zero none. A server that is in a cluster ignores it.
	BootstrapExpect int
	// Join are addresses of servers: the other servers of a new cluster, or some servers of a
	// running one, which this server joins. Its own address may be among them.
	Join []string
	// LeaveOnStop has [Agent.Stop] take the server out of the cluster. Without it
	// the cluster expects it back.
	LeaveOnStop bool

	// LeaderWait is how long a request that only the leader can answer waits while
	// there is none. Zero is [DefaultLeaderWait].
	LeaderWait time.Duration
	// StopTimeout is how long [Agent.Stop] waits for requests under way, and as
	// long again for leaving. Zero is [DefaultStopTimeout].
	StopTimeout time.Duration

	// Heartbeats set the time between heartbeats of clients.
	Heartbeats heartbeat.Options
	// Raft are raft's settings, or nil for its defaults. LocalID, Logger and
	// ShutdownOnRemove are set by the agent.
	Raft *raft.Config
	// Drainer and Scheduler are as in [server.Config].
	Drainer   drainer.NodeDrainerConfig
	Scheduler scheduler.Config

	// API configures the HTTP API. The agent sets its Logger.
	API httpapi.Options
	// Metrics counts what the agent does, and answers GET /v1/metrics; or nil. Its owner
	// closes it after [Agent.Stop].
	Metrics *telemetry.Telemetry
	// Around wraps the API's handler, to serve more to clients, such as metrics; or nil.
	Around func(api http.Handler) http.Handler
	// OnApply is called after each entry, in the order of the log; or nil. Raft
	// waits for it.
	OnApply func(shims.Applied)
	// Dial connects to a peer; nil is a [net.Dialer]. The agent adds TLS.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Defaults of [Config].
const (
	DefaultHTTPAddr    = "127.0.0.1:4646"
	DefaultServerAddr  = "127.0.0.1:4647"
	DefaultLeaderWait  = 5 * time.Second
	DefaultStopTimeout = 5 * time.Second
)

// withDefaults returns c with its zero values filled in. The error names a field that cannot work.
func (c Config) withDefaults() (Config, error) {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	setDefault(&c.HTTPAddr, DefaultHTTPAddr)
	setDefault(&c.ServerAddr, DefaultServerAddr)
	setDefault(&c.LeaderWait, DefaultLeaderWait)
	setDefault(&c.StopTimeout, DefaultStopTimeout)
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
	settings.ShutdownOnRemove = false // the agent decides when it stops
	c.Raft = settings
	if err := c.validate(); err != nil {
		return c, fmt.Errorf("agent: %w", err)
	}
	return c, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate names the first field that cannot work, or returns nil. Call it after withDefaults.
func (c *Config) validate() error {
	switch {
	case c.BootstrapExpect < 0:
		return fmt.Errorf("Config.BootstrapExpect is %d and must be at least 0", c.BootstrapExpect)
	case c.BootstrapExpect > 0 && c.Voters != nil:
		return errors.New("Config.BootstrapExpect and Config.Voters exclude each other: set one of them")
	case c.Voters != nil && c.Name == "":
		return errors.New("Config.Name is required with Config.Voters: which of them is this server?")
	case c.LeaderWait < 0:
		return fmt.Errorf("Config.LeaderWait is %s and must be above 0", c.LeaderWait)
	case c.StopTimeout < 0:
		return fmt.Errorf("Config.StopTimeout is %s and must be above 0", c.StopTimeout)
	case c.ServerTLS != nil && c.ServerTLS.ClientAuth != tls.RequireAndVerifyClientCert:
		return errors.New("Config.ServerTLS must have ClientAuth RequireAndVerifyClientCert: servers trust every server that connects")
	}
	if err := c.Heartbeats.Validate(); err != nil {
		return fmt.Errorf("Config.Heartbeats: %w", err)
	}
	return c.validateAddresses()
}

// validateAddresses refuses addresses that cannot work, or that nothing guards.
func (c *Config) validateAddresses() error {
	httpInside, err := loopback(c.HTTPAddr)
	if err != nil {
		return fmt.Errorf("Config.HTTPAddr: %w", err)
	}
	serverInside, err := loopback(c.ServerAddr)
	if err != nil {
		return fmt.Errorf("Config.ServerAddr: %w", err)
	}
	switch {
	case c.AllowInsecure:
	case !httpInside && c.Access == nil && (c.HTTPTLS == nil || c.HTTPTLS.ClientAuth != tls.RequireAndVerifyClientCert):
		return fmt.Errorf("every host could drain nodes at %s: set Config.Access, or a Config.HTTPTLS that demands certificates, or Config.AllowInsecure if you want that", c.HTTPAddr)
	case !serverInside && c.ServerTLS == nil:
		return fmt.Errorf("every host could join as a server at %s: set Config.ServerTLS, or Config.AllowInsecure if you want that", c.ServerAddr)
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

// warn logs settings that work and are not safe.
func (c *Config) warn() {
	inside, err := loopback(c.HTTPAddr)
	if err == nil && !inside && c.Access != nil && c.HTTPTLS == nil {
		c.Logger.Warn("tokens are sent without TLS: every host on the path can read and use them", "address", c.HTTPAddr)
	}
}

// loopback reports whether only this machine can reach the address.
func loopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}
