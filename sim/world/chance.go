package world

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// chance holds one stream of random numbers for each name, all from one seed. A draw from one
// stream does not change the others.
type chance struct {
	seed    uint64
	streams map[string]*rand.Rand
}

func newChance(seed uint64) chance { return chance{seed: seed, streams: map[string]*rand.Rand{}} }

// stream returns the stream of a name.
func (c *chance) stream(name string) *rand.Rand {
	r := c.streams[name]
	if r == nil {
		r = Stream(c.seed, name)
		c.streams[name] = r
	}
	return r
}

// draw draws a duration from a range. Without a seed it is the minimum.
func (c *chance) draw(name string, from scenario.Range) time.Duration {
	if c.seed == 0 {
		return from.Min
	}
	return setting.Draw(c.stream(name), from)
}

// Stream returns a new stream of random numbers. Equal seeds and names give equal streams.
func Stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // a hash accepts every write
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
