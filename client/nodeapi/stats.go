package nodeapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/hoststats"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

const (
	// measureTime bounds the measurement of an allocation.
	measureTime = 5 * time.Second
	// maxMeasured bounds the tasks of an allocation that are measured at the same time.
	maxMeasured = 16
)

// The answers, in the form of the wire.
type (
	allocUsage struct {
		ResourceUsage resourceUsage
		Tasks         map[string]taskUsage
		// Timestamp is in nanoseconds since 1970.
		Timestamp int64
	}
	taskUsage struct {
		ResourceUsage resourceUsage
		Timestamp     int64
	}
	resourceUsage struct {
		MemoryStats memoryStats
		CPUStats    cpuStats `json:"CpuStats"`
		// DeviceStats are of the devices that a task has.
		DeviceStats []*deviceGroup
	}
	memoryStats struct {
		RSS uint64
		// Measured names the fields that have a meaning.
		Measured []string
	}
	cpuStats struct {
		// Percent is of one core, and TotalTicks is in thousandths of a core, as resources are.
		Percent, TotalTicks float64
		Measured            []string
	}
)

func usageOf(rss uint64, percent float64) resourceUsage {
	return resourceUsage{
		MemoryStats: memoryStats{RSS: rss, Measured: []string{"RSS"}},
		CPUStats:    cpuStats{Percent: percent, TotalTicks: percent * 10, Measured: []string{"Percent"}},
	}
}

// usage answers with what the running tasks of an allocation use. A task that cannot be measured is left
// out.
func (h *reader) usage(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if q.err != nil {
		return q.err
	}
	alloc, tasks, _, err := h.allocation(r)
	if err != nil {
		return err
	}
	if name := q.text("task"); name != "" {
		only, err := stateOf(alloc, tasks, name)
		if err != nil {
			return err
		}
		if !only.Running {
			return refuse(http.StatusBadRequest, fmt.Sprintf("task %q does not run", name))
		}
		tasks = []TaskState{only}
	}
	answer := allocUsage{Tasks: make(map[string]taskUsage)}
	var rss uint64
	var percent float64
	used, devices := h.measure(r.Context(), alloc, tasks), h.devicesOf(r.Context(), tasks)
	for _, m := range used {
		if m.err != nil {
			h.options.Logger.Debug("a task was not measured", "alloc", alloc, "task", m.task.Name, "error", m.err)
			continue
		}
		at := m.usage.Time.UnixNano()
		one := taskUsage{ResourceUsage: usageOf(m.usage.RSS, m.usage.CPUPercent), Timestamp: at}
		one.ResourceUsage.DeviceStats = deviceStatsOf(devices, m.task.has)
		answer.Tasks[m.task.Name] = one
		rss += m.usage.RSS
		percent += m.usage.CPUPercent
		answer.Timestamp = max(answer.Timestamp, at)
	}
	answer.ResourceUsage = usageOf(rss, percent)
	answer.ResourceUsage.DeviceStats = deviceStatsOf(devices, func(kind cluster.DeviceKind, id string) bool {
		return slices.ContainsFunc(tasks, func(t TaskState) bool { return t.Running && t.has(kind, id) })
	})
	return answerJSON(w, answer)
}

// devicesOf measures the devices of the node, if a task that runs has one.
func (h *reader) devicesOf(ctx context.Context, tasks []TaskState) []device.GroupStats {
	if !slices.ContainsFunc(tasks, func(t TaskState) bool { return t.Running && len(t.Devices) > 0 }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	return h.options.Devices(ctx)
}

// measured is the usage of one task.
type measured struct {
	task  TaskState
	usage driver.Usage
	err   error
}

// measure measures the tasks that run.
func (h *reader) measure(ctx context.Context, alloc string, tasks []TaskState) []measured {
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	var all []measured
	for _, t := range tasks {
		if t.Running {
			all = append(all, measured{task: t})
		}
	}
	var running sync.WaitGroup
	room := make(chan struct{}, maxMeasured)
	for i := range all {
		room <- struct{}{}
		running.Go(func() {
			all[i].usage, all[i].err = h.options.Roster.Usage(ctx, alloc, all[i].task.Name)
			<-room
		})
	}
	running.Wait()
	return all
}

// hostStats is the answer about the machine, in the form of the wire.
type hostStats struct {
	Memory        hoststats.Memory
	CPU           []hoststats.CPU
	DiskStats     []hoststats.Disk
	AllocDirStats hoststats.Disk
	DeviceStats   []*deviceGroup
	// Uptime is in seconds.
	Uptime uint64
	// CPUTicksConsumed is in thousandths of a core, as resources are.
	CPUTicksConsumed float64
	// Timestamp is in nanoseconds since 1970.
	Timestamp int64
}

// host answers with the use of the machine and its devices.
func (h *reader) host(w http.ResponseWriter, r *http.Request) error {
	s, err := h.options.Host(r.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), measureTime)
	defer cancel()
	answer := hostStatsOf(s)
	answer.DeviceStats = deviceStatsOf(h.options.Devices(ctx), anyDevice)
	return answerJSON(w, answer)
}

func hostStatsOf(s *hoststats.Sample) hostStats {
	answer := hostStats{
		Memory: s.Memory, CPU: append([]hoststats.CPU{}, s.CPUs...), DiskStats: []hoststats.Disk{s.Disk}, AllocDirStats: s.Disk,
		Uptime: uint64(s.Uptime / time.Second), Timestamp: s.Time.UnixNano(),
	}
	for _, c := range s.CPUs {
		answer.CPUTicksConsumed += (c.User + c.System) * 10
	}
	return answer
}
