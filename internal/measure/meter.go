package measure

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"syscall"
	"time"
)

// Cost is what a piece of work took.
type Cost struct {
	// CPU is the process's CPU without GC, which is what collecting the garbage took
	// afterwards, or in pauses; zero if there was next to none.
	CPU, GC time.Duration
	// Bytes is what was allocated.
	Bytes uint64
}

// collectAt is how much may be allocated before a pause collects it.
const collectAt = 1 << 30

// worthwhile is the part of what is live that garbage has to come to before it is collected
// between measurements: for less, a heap of gigabytes is not gone through. In a process that
// did nothing else this much would be as small a part of one collection.
const worthwhile = 1.0 / 32

// memoryLimit is how much memory there may be before the collector runs although
// something is measured.
const memoryLimit = 12 << 30

// Meter measures a piece of work while it runs, except in the pauses that the work asks
// for.
type Meter struct {
	cost Cost
	// cpu and bytes are where the process stood when the meter was last set going.
	cpu   time.Duration
	bytes uint64
	// heap is where the process's garbage stands, shared by meters that run by turns; or
	// nil: the collector runs as it does.
	heap *heap
	// handOver lets the other side of a pair have its turn, or is nil: there is none. It
	// does when a slice is over, which began when the cost was sliceAt.
	handOver func()
	sliceAt  time.Duration
	// labels are what a profile knows measured work by, or nil: none is taken.
	labels context.Context
}

// heap is the process's, as meters see it.
type heap struct {
	// collected is what was allocated in all when garbage was last collected.
	collected uint64
}

// toCollect reports whether there may be garbage that is worth collecting.
func (h *heap) toCollect() bool {
	live := [...]metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live[:])
	return float64(allocated()-h.collected) > worthwhile*float64(live[0].Value.Uint64())
}

// collect collects what garbage there is.
func (h *heap) collect() {
	runtime.GC()
	h.collected = allocated()
}

// clean collects what there may be, before something is measured.
func (h *heap) clean() {
	if h.toCollect() {
		h.collect()
	}
}

// Measure runs work and returns what it took. The garbage collector does not run while
// it is measured; see [Cost].
func Measure(work func(*Meter)) Cost {
	m := &Meter{heap: new(heap)}
	m.heap.collect()
	return m.measure(work)
}

// measure is Measure where the heap is clean.
func (m *Meter) measure(work func(*Meter)) Cost {
	defer withoutCollector()()
	m.run(work)
	m.collectRest()
	return m.cost
}

// withoutCollector has the collector not run until what it returns is called.
func withoutCollector() (end func()) {
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(memoryLimit)
	return func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}
}

// run measures work, and leaves its garbage.
func (m *Meter) run(work func(*Meter)) {
	m.Resume()
	work(m)
	m.endTurn()
}

// collectRest collects what was left when all had run.
func (m *Meter) collectRest() {
	if m.heap.toCollect() {
		m.collect()
	}
}

// Pause has what follows not measured, until Resume. By turns the other side of the pair may
// run before it returns, on the goroutine on which work was called.
func (m *Meter) Pause() {
	m.endTurn()
	if m.handOver != nil && m.cost.CPU-m.sliceAt >= slice {
		m.sliceAt = m.cost.CPU
		m.handOver()
	}
}

// endTurn counts what was used since Resume.
func (m *Meter) endTurn() {
	m.cost.CPU += processCPU() - m.cpu
	now := allocated()
	m.cost.Bytes += now - m.bytes
	if m.heap != nil && now-m.heap.collected > collectAt {
		m.collect()
	}
	if m.labels != nil {
		pprof.SetGoroutineLabels(context.Background())
	}
}

// Resume ends a pause. The CPU is read last, as it is read first when the next begins:
// what reading the rest takes is nobody's.
func (m *Meter) Resume() {
	if m.labels != nil {
		pprof.SetGoroutineLabels(m.labels)
	}
	m.bytes = allocated()
	m.cpu = processCPU()
}

func (m *Meter) collect() {
	before := processCPU()
	m.heap.collect()
	m.cost.GC += processCPU() - before
}

// Bytes returns what work allocates, to the byte. It stops the world before and after,
// and so does not suit work that is measured many times a second.
func Bytes(work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// processCPU is what the process has used, in user and system mode.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// allocated is what was ever allocated.
func allocated() uint64 {
	sample := [...]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64()
}
