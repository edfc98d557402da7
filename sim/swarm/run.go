package swarm

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Options are how a swarm is played. The zero value of each is its default.
type Options struct {
	// First is the first seed, Seeds how many there are. Zero is [DefaultFirst] and
	// [DefaultSeeds].
	First uint64
	Seeds int
	// Size is how large the clusters are. Zero is [Small].
	Size Size
	// Workers is how many seeds are played at once. Zero is as many as there are
	// processors.
	Workers int
	// Twice is the share of seeds that are played twice, to come to the same. Zero is
	// [DefaultTwice], below zero none.
	Twice float64
	// Metamorphic is the share of seeds whose story is also told steadily, and otherwise
	// by one of [Relations], to come to the same facts. Zero is [DefaultMetamorphic],
	// below zero none.
	Metamorphic float64
	// Keep is how many failures are kept. Zero is [DefaultKeep].
	Keep int
	// Play plays a scenario; nil is [sim.Play]. Workers call it at the same time.
	Play func(*scenario.Scenario, sim.Options) (*sim.Result, error)
	// Each is called with every run, in the order of seeds and one after the other; nil
	// does nothing.
	Each func(Run)
}

// Defaults of [Options].
const (
	DefaultFirst       = 1
	DefaultSeeds       = 1000
	DefaultTwice       = 0.01
	DefaultMetamorphic = 0.01
	DefaultKeep        = 10
)

func (o Options) withDefaults() Options {
	setDefault(&o.First, DefaultFirst)
	setDefault(&o.Seeds, DefaultSeeds)
	setDefault(&o.Workers, runtime.GOMAXPROCS(0))
	setDefault(&o.Twice, DefaultTwice)
	setDefault(&o.Metamorphic, DefaultMetamorphic)
	setDefault(&o.Keep, DefaultKeep)
	if o.Play == nil {
		o.Play = sim.Play
	}
	return o
}

// check says what of the options makes no sense.
func (o Options) check() error {
	if o.Seeds < 0 {
		return fmt.Errorf("%d seeds: there is none to play", o.Seeds)
	}
	if last := o.First + uint64(o.Seeds) - 1; last < o.First && o.Seeds > 0 {
		return fmt.Errorf("%d seeds from %d on: the last one there is is %d", o.Seeds, o.First, uint64(math.MaxUint64))
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Play plays the seeds. Each is played by one goroutine alone, and what comes of it
// does not depend on how many there are. The error says that there are no such seeds, and
// then none is played: ask for others. When the context ends no other seed is begun, and
// those that are being played are given up; the report is then of those before the first
// that was not played to its end, and the error the context's. The report is never nil.
//
// While it plays, the garbage of the whole process is collected later than usual: what
// a run has made is garbage when it ends, and little of it before.
func Play(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return &Report{Size: o.Size, First: o.First, Workers: o.Workers}, err
	}
	o.Play = until(ctx, o.Play)
	defer debug.SetGCPercent(debug.SetGCPercent(o.Size.garbage()))
	began := time.Now()
	report := &Report{Size: o.Size, First: o.First, Workers: o.Workers}
	order := sequence{next: 0, done: map[int]Run{}, deliver: func(run Run) {
		report.add(run, o.Keep)
		if o.isTwice(run.Seed) {
			report.Twice++
		}
		if o.isRetold(run.Seed) {
			report.Retold++
		}
		if o.Each != nil {
			o.Each(run)
		}
	}}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range o.Workers {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= o.Seeds {
					return
				}
				run := o.run(o.First + uint64(i))
				if ctx.Err() != nil {
					return // it may have been cut short
				}
				order.put(i, run)
			}
		})
	}
	workers.Wait()
	report.Took = time.Since(began)
	report.Short = report.Tally.Short(o.Size)
	if report.Seeds < o.Seeds {
		return report, context.Cause(ctx)
	}
	return report, nil
}

// until has a play stop when the context ends: a large seed takes seconds.
func until(ctx context.Context, play func(*scenario.Scenario, sim.Options) (*sim.Result, error)) func(*scenario.Scenario, sim.Options) (*sim.Result, error) {
	return func(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
		o.Stop = func() error { return context.Cause(ctx) }
		return play(s, o)
	}
}

// sequence delivers results in the order of the seeds.
type sequence struct {
	mu   sync.Mutex
	next int         // the next result to deliver; guarded by mu
	done map[int]Run // what came before its turn; guarded by mu
	// deliver is called with one after the other, under mu.
	deliver func(Run)
}

// put takes a run, and delivers what has its turn.
func (s *sequence) put(i int, run Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[i] = run
	for {
		run, is := s.done[s.next]
		if !is {
			return
		}
		delete(s.done, s.next)
		s.next++
		s.deliver(run)
	}
}
