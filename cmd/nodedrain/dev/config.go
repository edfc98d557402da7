package dev

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// Config configures a [Cluster].
type Config struct {
	// Dir is the directory of the cluster. Empty is [DefaultDir].
	Dir string
	// Addr is the "host:port" of the HTTP API, on the loopback interface. Empty is [DefaultAddr]. Port 0
	// is any free port.
	Addr string
	// Simulated makes the tasks simulated, by the driver mock: they have no processes.
	Simulated bool
	// Nodes is the number of nodes. Zero is [DefaultNodes].
	Nodes int
	// User is the name or the id of the user that runs the example tasks if this process runs as root.
	// Empty is [DefaultUser].
	User string
	// LogKeeper are the arguments with which this program keeps the log of a task.
	LogKeeper []string
	// Version is the version of server and clients.
	Version string
	// Progress gets lines with what the start and the end wait for. Nil is none.
	Progress io.Writer
}

// Defaults and bounds of [Config].
const (
	DefaultAddr  = "127.0.0.1:4646"
	DefaultNodes = 2
	MaxNodes     = 16
	// DefaultUser is the id of the user without rights of Linux.
	DefaultUser = "65534"
)

// DefaultDir is the directory of this user's cluster.
func DefaultDir() string {
	return filepath.Join(os.TempDir(), "nodedrain-dev-"+strconv.Itoa(os.Geteuid()))
}

// withDefaults returns c with defaults in place of zero values. The error names an invalid value.
func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		c.Dir = DefaultDir()
	}
	if c.Addr == "" {
		c.Addr = DefaultAddr
	}
	if c.Nodes == 0 {
		c.Nodes = DefaultNodes
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, fmt.Errorf("the directory: %w", err)
	}
	if c.Nodes < 1 || c.Nodes > MaxNodes {
		return c, fmt.Errorf("the number of nodes is %d and must be 1 to %d", c.Nodes, MaxNodes)
	}
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return c, fmt.Errorf("the address: %w", err)
	}
	if c.Simulated && c.User != "" {
		return c, errors.New("simulated tasks have no processes, so no user can run them")
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return c, fmt.Errorf("the address is %q and must be one of the loopback interface, such as %s", c.Addr, DefaultAddr)
	}
	return c, c.chooseUser()
}

// chooseUser leaves User empty if tasks run as the user of this process.
func (c *Config) chooseUser() error {
	configured := c.User != ""
	if os.Geteuid() != 0 {
		if configured {
			return errors.New("only root can run tasks as another user")
		}
		return nil
	}
	if !configured {
		c.User = DefaultUser
	}
	found, err := user.Lookup(c.User)
	if err != nil {
		found, err = user.LookupId(c.User)
	}
	switch {
	case err == nil:
		c.User = found.Username
	case configured:
		return fmt.Errorf("the user of tasks: there is no user %q", c.User)
	default:
		c.User = ""
	}
	return nil
}
