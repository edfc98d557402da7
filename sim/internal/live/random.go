package live

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// random holds named streams of random numbers, all from one seed. The goroutines draw from them
// in an order that differs between plays. So two plays of one seed are similar, not equal.
type random struct {
	seed    uint64
	mu      sync.Mutex
	streams map[string]*rand.Rand // guarded by mu
}

func newRandom(seed uint64) *random { return &random{seed: seed, streams: map[string]*rand.Rand{}} }

// stream returns the stream of a name. The caller holds mu.
func (r *random) stream(name string) *rand.Rand {
	if r.streams[name] == nil {
		r.streams[name] = world.Stream(r.seed, name)
	}
	return r.streams[name]
}

// duration draws from a range. With seed zero it returns the minimum.
func (r *random) duration(name string, from scenario.Range) time.Duration {
	if r.seed == 0 || from.Max <= from.Min {
		return from.Min
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return setting.Draw(r.stream(name), from)
}

// likely returns true with the given probability.
func (r *random) likely(name string, probability float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stream(name).Float64() < probability
}

// below draws a number from zero to n-1.
func (r *random) below(name string, n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stream(name).IntN(n)
}

// operation returns the operation that a fault performs. It draws the operation's parameters.
func (r *random) operation(p setting.Opportunity) scenario.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.Op(r.stream("operation/" + string(p.Fault)))
}

// ids makes ids, and counts the keys of repeated requests.
type ids struct{ allocs, evals, drains, keys atomic.Int64 }

func (i *ids) alloc() cluster.AllocID {
	return cluster.AllocID(fmt.Sprintf("a%06d", i.allocs.Add(1)))
}

func (i *ids) eval() cluster.EvalID { return cluster.EvalID(fmt.Sprintf("e%06d", i.evals.Add(1))) }

func (i *ids) drain() cluster.DrainID { return cluster.DrainID(fmt.Sprintf("d%06d", i.drains.Add(1))) }
