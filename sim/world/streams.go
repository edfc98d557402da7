package world

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
)

// streams are generators of chance, one for each name, all from one seed: what is
// drawn from one shifts no other.
type streams struct {
	seed  uint64
	named map[string]*rand.Rand
}

func newStreams(seed uint64) streams { return streams{seed: seed, named: map[string]*rand.Rand{}} }

// of returns the stream of that name.
func (s *streams) of(name string) *rand.Rand {
	r := s.named[name]
	if r == nil {
		r = Stream(s.seed, name)
		s.named[name] = r
	}
	return r
}

// Stream returns the stream of a name: equal seeds and names make equal ones.
func Stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // a hash takes all
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// draw draws a time from a range: the least if nothing is drawn.
func (w *World) draw(name string, from scenario.Range) time.Duration {
	if w.options.Seed == 0 {
		return from.Min
	}
	return setting.Draw(w.streams.of(name), from)
}
