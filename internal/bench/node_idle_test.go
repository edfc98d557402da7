package main

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// figureNodeIdle: a client whose allocations run only sends heartbeats and one blocking query. Its memory grows little with each allocation.
func figureNodeIdle(b *testing.B) {
	const settle = 15 * time.Second // longer than the minimum healthy time
	allocs, window := 100, 4*time.Second
	if measure.SizeOf(b) == measure.Full {
		allocs, window = 500, time.Minute
	}
	n := newTestNode(b)
	pid := n.client.Process.Pid
	<-time.After(time.Second)
	empty, emptyDrivers := memoryOf(b, pid), n.memoryOfDrivers()
	n.register(n.mocks(allocs))
	n.running(allocs)
	<-time.After(settle)
	steps := n.logged(stepLine)
	var cpu, memory []float64
	for range measure.PairsOf(b) {
		before, began := cpuOf(b, pid), time.Now()
		<-time.After(window)
		cpu = append(cpu, float64(cpuOf(b, pid)-before)/float64(time.Since(began)))
		memory = append(memory, (memoryOf(b, pid)-empty)/float64(allocs)/(64<<10))
	}
	measure.Count(b, n.logged(stepLine)-steps, "steps")
	measure.RatioOf(cpu).ReportAs(b, "cpu-"+measure.UnitRatio)
	measure.RatioOf(memory).ReportAs(b, "memory-"+measure.UnitRatio)
	measure.Count(b, empty/(1<<20), "empty-MiB")
	measure.Count(b, memoryOf(b, pid)/(1<<20), "MiB")
	measure.Count(b, (n.memoryOfDrivers()-emptyDrivers)/float64(allocs)/(1<<10), "driver-KiB/alloc")
	measure.Count(b, allocs, "allocations")
	n.reportLoad()
}

// memoryOfDrivers is the resident memory of the drivers in bytes.
func (n *testNode) memoryOfDrivers() (sum float64) {
	for pid := range n.processesOf("nodedrain", "plugin") {
		sum += memoryOf(n.b, pid)
	}
	return sum
}
