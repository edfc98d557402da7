package live

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// chance is streams of chance by name, all from one seed. Who draws first is not
// determined, so equal seeds make runs that are alike and not equal.
type chance struct {
	seed  uint64
	mu    sync.Mutex
	named map[string]*rand.Rand // guarded by mu
}

func newChance(seed uint64) *chance { return &chance{seed: seed, named: map[string]*rand.Rand{}} }

// of returns the stream of that name. The caller holds mu.
func (c *chance) of(name string) *rand.Rand {
	if c.named[name] == nil {
		c.named[name] = world.Stream(c.seed, name)
	}
	return c.named[name]
}

// draw draws a time from a range: the least if nothing is drawn.
func (c *chance) draw(name string, from scenario.Range) time.Duration {
	if c.seed == 0 || from.Max <= from.Min {
		return from.Min
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return setting.Draw(c.of(name), from)
}

// likely draws something of that probability.
func (c *chance) likely(name string, probability float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of(name).Float64() < probability
}

// pick draws a number from zero to below n.
func (c *chance) pick(name string, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of(name).IntN(n)
}

// operation is what a fault has done at an opportunity, with what it needs drawn.
func (c *chance) operation(p setting.Provocation) scenario.Op {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.Op(c.of("operation/" + string(p.Fault)))
}

// ids makes ids for whoever asks, and counts the keys of requests that come again.
type ids struct{ allocs, evals, drains, keys atomic.Int64 }

func (i *ids) alloc() cluster.AllocID {
	return cluster.AllocID(fmt.Sprintf("a%06d", i.allocs.Add(1)))
}

func (i *ids) eval() cluster.EvalID { return cluster.EvalID(fmt.Sprintf("e%06d", i.evals.Add(1))) }

func (i *ids) drain() cluster.DrainID { return cluster.DrainID(fmt.Sprintf("d%06d", i.drains.Add(1))) }
