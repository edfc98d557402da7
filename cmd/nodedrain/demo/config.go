package demo

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/server"
)

// Config configures a run. Its zero value is the default demonstration.
type Config struct {
	// Dir is a folder with the lists of a real cluster (package openb), or empty
	// for a generated one.
	Dir string
	// Nodes is the size of a generated cluster. Zero is [DefaultNodes]. With Dir it must be zero.
	Nodes int
	// Drains is how many nodes are drained at once, at most half of them: the others take
	// their allocations. Zero is a twentieth of a cluster from Dir and a sixth of a generated
	// one.
	Drains int
	// Deadline is the deadline of the drains that have one, in simulated time.
	// Zero is [DefaultDeadline].
	Deadline time.Duration
	// Seed is the seed of the generated cluster and of the choice of nodes.
	Seed uint64
	// TimeScale is how many simulated seconds pass in a real one. It shortens how long tasks
	// take to start, to become healthy, to run and to stop, and the deadlines and margins.
	// Raft and the network are not scaled, so a very large scale makes them look slow. Zero
	// is [DefaultTimeScale].
	TimeScale float64
	// Servers is the number of servers, at least three: one of them is killed. Zero is
	// [server.DefaultServers].
	Servers int
	// Loopback connects the servers by TCP instead of memory.
	Loopback bool
	// Timeout ends the run, in real time. Zero is [DefaultTimeout].
	Timeout time.Duration

	// Progress receives the progress as lines of text. Nil discards it. Errors of writes are ignored.
	Progress io.Writer
	// Logger receives the servers' log; nil discards it.
	Logger hclog.Logger
}

// Defaults of [Config].
const (
	DefaultNodes     = 50
	DefaultDeadline  = 10 * time.Minute
	DefaultTimeScale = 30
	DefaultTimeout   = 5 * time.Minute
)

// maxTimeScale keeps simulated times longer than the resolution of timers.
const maxTimeScale = 1000

// withDefaults returns c with its zero values filled in. The error names what cannot work.
func (c Config) withDefaults() (Config, error) {
	if c.Dir != "" && c.Nodes != 0 {
		return c, errors.New("a loaded cluster has its own number of nodes")
	}
	setDefault(&c.Nodes, DefaultNodes)
	setDefault(&c.Deadline, DefaultDeadline)
	setDefault(&c.TimeScale, DefaultTimeScale)
	setDefault(&c.Servers, server.DefaultServers)
	setDefault(&c.Timeout, DefaultTimeout)
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	switch {
	case c.Nodes < 2:
		return c, fmt.Errorf("there are %d nodes, and a drain needs at least 2", c.Nodes)
	case c.Drains < 0:
		return c, fmt.Errorf("the number of drains is %d and must be above 0", c.Drains)
	case c.Deadline < 0:
		return c, fmt.Errorf("the deadline is %s and must be above 0", c.Deadline)
	case !(c.TimeScale > 0 && c.TimeScale <= maxTimeScale):
		return c, fmt.Errorf("the time scale is %v and must be above 0, and %d at most", c.TimeScale, maxTimeScale)
	case c.Servers < server.DefaultServers:
		return c, fmt.Errorf("there are %d servers, and at least %d are needed: one is killed", c.Servers, server.DefaultServers)
	case c.Timeout < 0:
		return c, fmt.Errorf("the timeout is %s and must be above 0", c.Timeout)
	}
	return c, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// drains is the number of nodes to drain, of that many.
func (c *Config) drains(nodes int) (int, error) {
	n := c.Drains
	switch {
	case n > nodes/2:
		return 0, fmt.Errorf("cannot drain %d of %d nodes: at most half, because the others take their allocations", n, nodes)
	case n > 0:
		return n, nil
	case c.Dir != "":
		return max(1, nodes/20), nil
	}
	return max(1, nodes/6), nil
}
