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

// Options configure a swarm. A zero field has its default.
type Options struct {
	// First is the first seed, Seeds the number of seeds. The defaults are [DefaultFirst] and
	// [DefaultSeeds].
	First uint64
	Seeds int
	// Size is the size of the clusters. Zero is [Small].
	Size Size
	// Workers is the number of goroutines that play seeds. The default is the number of processors.
	Workers int
	// Twice is the share of seeds that are played twice. Both runs must be equal. Zero is
	// [DefaultTwice], below zero is none.
	Twice float64
	// Keep is how many failures the report holds. Zero is [DefaultKeep].
	Keep int
	// Play plays a scenario; nil is [sim.Play]. Workers call it at the same time.
	Play func(*scenario.Scenario, sim.Options) (*sim.Result, error)
	// Each is called with every run in the order of seeds, never concurrently, or nil.
	Each func(Run)
}

// Defaults of [Options].
const (
	DefaultFirst = 1
	DefaultSeeds = 1000
	DefaultTwice = 0.01
	DefaultKeep  = 10
)

func (o Options) withDefaults() Options {
	setDefault(&o.First, DefaultFirst)
	setDefault(&o.Seeds, DefaultSeeds)
	setDefault(&o.Workers, runtime.GOMAXPROCS(0))
	setDefault(&o.Twice, DefaultTwice)
	setDefault(&o.Keep, DefaultKeep)
	if o.Play == nil {
		o.Play = sim.Play
	}
	return o
}

// check returns an error if there are no such seeds.
func (o Options) check() error {
	if o.Seeds < 0 {
		return fmt.Errorf("%d seeds: the number is negative", o.Seeds)
	}
	if last := o.First + uint64(o.Seeds) - 1; last < o.First && o.Seeds > 0 {
		return fmt.Errorf("%d seeds from %d on: the last possible seed is %d", o.Seeds, o.First, uint64(math.MaxUint64))
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Play plays the seeds. One goroutine plays each seed, and the results do not depend on the number of
// workers. If there are no such seeds, Play returns an error and plays none. When the context ends,
// Play aborts the seeds that run and begins no other. It then returns the error of the context, and
// the report ends before the first seed that is not finished. The report is never nil.
//
// Play delays the garbage collection of the process, because most objects of a run live until its end.
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
					return // the run may be aborted
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

// until aborts a play when the context ends. A large seed takes seconds.
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
	done map[int]Run // runs that wait for earlier ones; guarded by mu
	// deliver is called under mu.
	deliver func(Run)
}

// put adds a run and delivers all runs whose turn has come.
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
