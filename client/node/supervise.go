package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// instance is one process of a plugin.
type instance interface {
	// Done is closed after the process has ended. EndReason then returns why, or an empty text.
	Done() <-chan struct{}
	EndReason() string
	// Kill kills the process. Detach leaves it running for the next client.
	Kill(context.Context) error
	Detach()
	// Generation returns the number of the process. A later process of the plugin has a greater
	// number.
	Generation() uint64
	// TakenOver reports whether an earlier client has started the process.
	TakenOver() bool
}

// program starts the process of a plugin, or takes over the process of an earlier client.
type program[I instance] interface {
	launch(context.Context) (I, error)
}

// pluginEvents receives events of plugins that no call caused.
type pluginEvents interface {
	PluginDown(p client.Plugin, generation client.Generation, why string)
	Fingerprint(driver string, generation client.Generation, f driver.Fingerprint)
	DriverEvent(driver string, generation client.Generation, e driver.Event)
	Devices(plugin string, generation client.Generation, r client.DeviceReport)
}

// errGenerationEnded is the answer to calls for an earlier process of a plugin.
var errGenerationEnded = errors.New("this generation of the plugin has ended")

// supervised are the plugins of one type. The set does not change.
type supervised[I instance] struct {
	kind   client.PluginType
	all    map[string]*pluginProcess[I]
	events pluginEvents
	logger *slog.Logger
}

// pluginProcess is one plugin, with its present process.
type pluginProcess[I instance] struct {
	name    string
	program program[I]
	// calls holds a value for each short call in flight.
	calls chan struct{}

	mu      sync.Mutex
	runs    bool            // whether present is a process that runs; guarded by mu
	present I               // guarded by mu
	end     func()          // ends the goroutines of the process, or nil; guarded by mu
	running *sync.WaitGroup // the goroutines of the process, or nil; guarded by mu
}

// supervise returns the plugins that the programs run. calls is the largest number of short calls
// in flight for each plugin.
func supervise[I instance](kind client.PluginType, programs map[string]program[I], calls int, e pluginEvents, logger *slog.Logger) supervised[I] {
	s := supervised[I]{kind: kind, all: make(map[string]*pluginProcess[I], len(programs)), events: e, logger: logger}
	for name, p := range programs {
		s.all[name] = &pluginProcess[I]{name: name, program: p, calls: make(chan struct{}, calls)}
	}
	return s
}

func (s *supervised[I]) names() []string { return slices.Sorted(maps.Keys(s.all)) }

// begun is a started process.
type begun[I instance] struct {
	plugin     *pluginProcess[I]
	generation client.Generation
	present    I
	// ctx ends with the process. running are its goroutines, which start after the core has the
	// answer of the launch: it drops the events of any other process.
	ctx     context.Context
	running *sync.WaitGroup
}

// launch starts the next process of a plugin. The caller answers the core, and then calls watch.
func (s *supervised[I]) launch(ctx context.Context, name string) (*begun[I], error) {
	p := s.all[name]
	if p == nil {
		return nil, fmt.Errorf("the node has no %s", client.Plugin{Type: s.kind, Name: name})
	}
	i, err := p.program.launch(ctx)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	b := &begun[I]{plugin: p, generation: client.Generation(i.Generation()), present: i, ctx: ctx, running: new(sync.WaitGroup)}
	p.mu.Lock()
	p.runs, p.present, p.end, p.running = true, i, end, b.running
	p.mu.Unlock()
	return b, nil
}

// watch calls ended and posts the end of a process, when it has ended.
func (s *supervised[I]) watch(b *begun[I], ended func()) {
	select {
	case <-b.ctx.Done():
		return
	case <-b.present.Done():
	}
	b.plugin.mu.Lock()
	end := b.plugin.end
	b.plugin.runs = false
	b.plugin.mu.Unlock()
	end()
	ended()
	s.events.PluginDown(client.Plugin{Type: s.kind, Name: b.plugin.name}, b.generation, b.present.EndReason())
}

// abandon kills a process of a plugin. It has no effect if the process has ended.
func (s *supervised[I]) abandon(ctx context.Context, name string, generation client.Generation) {
	i, err := s.instance("Kill", name, generation)
	if err != nil {
		return
	}
	s.logger.Warn("killing a plugin that does not answer", "plugin", client.Plugin{Type: s.kind, Name: name}.String())
	if err := i.Kill(ctx); err != nil {
		s.logger.Error("a plugin could not be killed", "plugin", client.Plugin{Type: s.kind, Name: name}.String(), "error", err)
	}
}

// current returns the present process of a plugin, or an error of class [driver.Gone].
func (s *supervised[I]) current(call, name string) (i I, err error) {
	if p := s.all[name]; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.runs {
			return p.present, nil
		}
	}
	return i, gone(call)
}

// instance returns the process with this number, or an error of class [driver.Gone].
func (s *supervised[I]) instance(call, name string, generation client.Generation) (i I, err error) {
	present, err := s.current(call, name)
	if err == nil && client.Generation(present.Generation()) != generation {
		return i, gone(call)
	}
	return present, err
}

// gone is the answer to a call for a process that has ended.
func gone(call string) error {
	return &driver.Error{Class: driver.Gone, Call: call, Err: errGenerationEnded}
}

// enter waits until the number of short calls permits another call. It returns the process, and a
// function that must be called after the call. Long calls, which wait for a task, do not count.
func (s *supervised[I]) enter(ctx context.Context, call, name string, generation client.Generation) (i I, leave func(), err error) {
	p := s.all[name]
	if p == nil {
		_, err := s.instance(call, name, generation)
		return i, nil, err
	}
	select {
	case p.calls <- struct{}{}:
	case <-ctx.Done():
		return i, nil, &driver.Error{Class: driver.Deadline, Call: call, Err: context.Cause(ctx)}
	}
	leave = func() { <-p.calls }
	if i, err = s.instance(call, name, generation); err != nil {
		leave()
		return i, nil, err
	}
	return i, leave, nil
}

// allRun reports whether each plugin has a process.
func (s *supervised[I]) allRun() bool {
	for _, p := range s.all {
		p.mu.Lock()
		runs := p.runs
		p.mu.Unlock()
		if !runs {
			return false
		}
	}
	return true
}

// detach leaves all processes running for the next client, and ends the goroutines.
func (s *supervised[I]) detach() {
	for _, name := range s.names() {
		p := s.all[name]
		p.mu.Lock()
		runs, present, end, running := p.runs, p.present, p.end, p.running
		p.runs = false
		p.mu.Unlock()
		if end != nil {
			end()
			running.Wait()
		}
		if runs {
			present.Detach()
		}
	}
}

// The wait before a stream of fingerprints is opened again.
const (
	minReopen = 5 * time.Second
	maxReopen = 2 * time.Minute
)

// keepOpen opens a stream of fingerprints again when it ends, until the context ends.
func keepOpen(ctx context.Context, open func() error, ended func(err error, retryIn time.Duration)) {
	wait := minReopen
	for ctx.Err() == nil {
		opened := time.Now()
		err := open()
		if ctx.Err() != nil {
			return
		}
		if time.Since(opened) > maxReopen {
			wait = minReopen
		}
		ended(err, wait)
		sleep(ctx, wait)
		wait = min(2*wait, maxReopen)
	}
}

// sleep waits, at most until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
