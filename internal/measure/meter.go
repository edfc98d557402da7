package measure

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

// Cost is the cost of a piece of work.
type Cost struct {
	// CPU is the CPU time of the process without GC. GC is the CPU time to collect the garbage
	// afterwards or in pauses. It is zero if there was too little garbage to collect.
	CPU, GC time.Duration
	// Bytes is the size of all allocations.
	Bytes uint64
}

// collectAt is the size of allocations after which a pause collects garbage.
const collectAt = 1 << 30

// worthwhile is the smallest garbage that is collected between measurements, as a part of the live
// heap. To collect less, the collector would walk a heap of gigabytes.
const worthwhile = 1.0 / 32

// memoryLimit is the heap size above which the collector runs even during a measurement.
const memoryLimit = 12 << 30

// Meter measures a piece of work, without the pauses that the work requests.
type Meter struct {
	cost Cost
	// cpu and bytes are the process's totals at the last start of the meter.
	cpu   time.Duration
	bytes uint64
	// heap is shared by the meters of a pair. If it is nil, pauses collect nothing.
	heap *heap
	// handOver runs the other side of a pair for one slice, or is nil. sliceAt is the CPU time
	// at which the current slice began.
	handOver func()
	sliceAt  time.Duration
}

// heap tracks the garbage of the process.
type heap struct {
	// collected is the size of all allocations until the last collection.
	collected uint64
}

// toCollect reports whether there may be enough garbage to collect.
func (h *heap) toCollect() bool {
	live := [...]metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live[:])
	return float64(allocated()-h.collected) > worthwhile*float64(live[0].Value.Uint64())
}

// collect runs the collector.
func (h *heap) collect() {
	runtime.GC()
	h.collected = allocated()
}

// clean runs the collector before a measurement if there may be enough garbage.
func (h *heap) clean() {
	if h.toCollect() {
		h.collect()
	}
}

// Measure runs work and returns its cost. The collector is off meanwhile.
func Measure(work func(*Meter)) Cost {
	m := &Meter{heap: new(heap)}
	m.heap.collect()
	return m.measure(work)
}

// measure is Measure on a clean heap.
func (m *Meter) measure(work func(*Meter)) Cost {
	defer withoutCollector()()
	m.run(work)
	m.collectRest()
	return m.cost
}

// withoutCollector turns the collector off until the caller calls end.
func withoutCollector() (end func()) {
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(memoryLimit)
	return func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}
}

// run measures work and does not collect its garbage at the end.
func (m *Meter) run(work func(*Meter)) {
	m.Resume()
	work(m)
	m.endTurn()
}

// collectRest collects the garbage that is left at the end.
func (m *Meter) collectRest() {
	if m.heap.toCollect() {
		m.collect()
	}
}

// Pause stops the measurement until Resume. In a sliced comparison the other side of the pair may
// run before Pause returns.
func (m *Meter) Pause() {
	m.endTurn()
	if m.handOver != nil && m.cost.CPU-m.sliceAt >= slice {
		m.sliceAt = m.cost.CPU
		m.handOver()
	}
}

// endTurn adds the cost since Resume.
func (m *Meter) endTurn() {
	m.cost.CPU += processCPU() - m.cpu
	now := allocated()
	m.cost.Bytes += now - m.bytes
	if m.heap != nil && now-m.heap.collected > collectAt {
		m.collect()
	}
}

// Resume ends a pause. It reads the CPU time last, and endTurn reads it first, so that the time to
// read the other numbers does not count.
func (m *Meter) Resume() {
	m.bytes = allocated()
	m.cpu = processCPU()
}

func (m *Meter) collect() {
	before := processCPU()
	m.heap.collect()
	m.cost.GC += processCPU() - before
}

// Bytes returns the exact size of the allocations of the process while work runs. It stops the world twice and is too
// slow for work that is measured many times a second.
func Bytes(work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// CPU returns the CPU time of the process while work runs, with that of the collector, which runs as the process has
// set it. It is for bounds on a time, where the collector counts.
func CPU(work func()) time.Duration {
	runtime.GC()
	before := processCPU()
	work()
	return processCPU() - before
}

// processCPU returns the CPU time of the process, in user and system mode.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// allocated returns the size of all allocations of the process.
func allocated() uint64 {
	sample := [...]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample[:])
	return sample[0].Value.Uint64()
}
