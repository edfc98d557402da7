package demo

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/server"
)

// Config is what a run is made of. Its zero value is the default demonstration.
type Config struct {
	// Dir is a folder with the lists of a real cluster (package openb), or empty
	// for a generated one.
	Dir string
	// Nodes is the size of a generated cluster. Zero is [DefaultNodes]; with Dir
	// it must be zero.
	Nodes int
	// Drains is how many nodes are drained at once, half of them at most: the
	// others have to take what those run. Zero is a twentieth of a cluster from
	// Dir and a sixth of a generated one.
	Drains int
	// Deadline is the deadline of the drains that have one, in simulated time.
	// Zero is [DefaultDeadline].
	Deadline time.Duration
	// Seed is the seed of the generated cluster and of the choice of nodes.
	Seed uint64
	// TimeScale is how many simulated seconds pass in a real one. What is
	// simulated goes that much faster: how long tasks take to start, to prove
	// their health, to run and to stop, and the deadlines and margins that are
	// measured by them. Raft and the network are real and are not scaled, so a
	// very large scale makes them look slow. Zero is [DefaultTimeScale].
	TimeScale float64
	// Servers is how many there are: three at least, to lose one. Zero is
	// [server.DefaultServers].
	Servers int
	// Loopback has the servers talk over TCP rather than in memory.
	Loopback bool
	// Timeout is when the run gives up, in real time. Zero is [DefaultTimeout].
	Timeout time.Duration

	// Progress is shown how the run goes, and closed at its end; nil shows nothing.
	Progress Progress
	// Logger receives what the servers log; nil discards it.
	Logger hclog.Logger
}

// Defaults of [Config].
const (
	DefaultNodes     = 50
	DefaultDeadline  = 10 * time.Minute
	DefaultTimeScale = 30
	DefaultTimeout   = 5 * time.Minute
)

// maxTimeScale keeps simulated times above what timers can tell apart.
const maxTimeScale = 1000

// withDefaults returns c with its zero values filled in, or what cannot work.
func (c Config) withDefaults() (Config, error) {
	if c.Dir != "" && c.Nodes != 0 {
		return c, errors.New("a loaded cluster has its own number of nodes")
	}
	setDefault(&c.Nodes, DefaultNodes)
	setDefault(&c.Deadline, DefaultDeadline)
	setDefault(&c.TimeScale, DefaultTimeScale)
	setDefault(&c.Servers, server.DefaultServers)
	setDefault(&c.Timeout, DefaultTimeout)
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	switch {
	case c.Nodes < 2:
		return c, fmt.Errorf("there are %d nodes, and it takes 2 to move anything", c.Nodes)
	case c.Drains < 0:
		return c, fmt.Errorf("the number of drains is %d and must be above 0", c.Drains)
	case c.Deadline < 0:
		return c, fmt.Errorf("the deadline is %s and must be above 0", c.Deadline)
	case !(c.TimeScale > 0 && c.TimeScale <= maxTimeScale):
		return c, fmt.Errorf("the time scale is %v and must be above 0, and %d at most", c.TimeScale, maxTimeScale)
	case c.Servers < server.DefaultServers:
		return c, fmt.Errorf("there are %d servers, and it takes %d to lose one", c.Servers, server.DefaultServers)
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

// drains is how many nodes to drain of that many.
func (c *Config) drains(nodes int) (int, error) {
	n := c.Drains
	switch {
	case n > nodes/2:
		return 0, fmt.Errorf("%d of %d nodes are to be drained, and half of them is the most: the others have to take what those run", n, nodes)
	case n > 0:
		return n, nil
	case c.Dir != "":
		return max(1, nodes/20), nil
	}
	return max(1, nodes/6), nil
}
