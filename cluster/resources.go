package cluster

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Resources is an amount of capacity or need.
type Resources struct {
	// CPU is in thousandths of a core.
	CPU int64
	// MemoryMB and DiskMB are in mebibytes.
	MemoryMB int64
	DiskMB   int64
	// GPU is in thousandths of a device.
	GPU int64
}

// Usage is the need of a node's allocations that are not client-terminal, each [Resources.Bounded]. The zero
// value is that of a node without any.
type Usage struct {
	// Live counts these allocations.
	Live      int
	Resources Resources
}

// maxAmount is the largest amount that placements count. No machine has as much. Sums of four million such
// amounts, and a thousand times such an amount, do not overflow.
const maxAmount = 1 << 40

// Bounded returns r with larger amounts replaced by the largest that placements count. Requests have smaller
// ones, but servers of older releases accepted any.
func (r Resources) Bounded() Resources {
	return Resources{CPU: min(r.CPU, maxAmount), MemoryMB: min(r.MemoryMB, maxAmount), DiskMB: min(r.DiskMB, maxAmount), GPU: min(r.GPU, maxAmount)}
}

// Plus returns r + o. An amount that overflows becomes the largest or the smallest one.
func (r Resources) Plus(o Resources) Resources {
	return Resources{CPU: sum(r.CPU, o.CPU), MemoryMB: sum(r.MemoryMB, o.MemoryMB), DiskMB: sum(r.DiskMB, o.DiskMB), GPU: sum(r.GPU, o.GPU)}
}

// Minus returns r - o; amounts may become negative. An amount that overflows becomes the largest or the
// smallest one.
func (r Resources) Minus(o Resources) Resources {
	return Resources{
		CPU: difference(r.CPU, o.CPU), MemoryMB: difference(r.MemoryMB, o.MemoryMB), DiskMB: difference(r.DiskMB, o.DiskMB), GPU: difference(r.GPU, o.GPU),
	}
}

func sum(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

func difference(a, b int64) int64 {
	switch {
	case b < 0 && a > math.MaxInt64+b:
		return math.MaxInt64
	case b > 0 && a < math.MinInt64+b:
		return math.MinInt64
	}
	return a - b
}

// Fits reports whether r is at most room in every amount.
func (r Resources) Fits(room Resources) bool {
	return r.CPU <= room.CPU && r.MemoryMB <= room.MemoryMB && r.DiskMB <= room.DiskMB && r.GPU <= room.GPU
}

// Bounds on cores.
const (
	// MaxCores bounds the cores of a node and of a task.
	MaxCores = 4096
	// maxCore is the largest number of a core in the API.
	maxCore = math.MaxUint16
	// CPUOfCore is the CPU with which placements count a core.
	CPUOfCore = 1000
)

// Cores are numbers of cores of a node, in their order.
type Cores []int

// ParseCores reads a list of the kernel, such as "0-3,8". Empty is none.
func ParseCores(text string) (all Cores, err error) {
	ranges, err := parseRanges(text, "core", "0 or 2-3", 0, maxCore)
	if err != nil {
		return nil, err
	}
	for _, r := range ranges {
		for core := r.First; core <= r.Last; core++ {
			all = append(all, core)
		}
		if len(all) > MaxCores {
			return nil, fmt.Errorf("there are at most %d cores", MaxCores)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// String returns a list that [ParseCores] reads.
func (c Cores) String() string {
	var parts []string
	for i := 0; i < len(c); {
		last := i
		for last+1 < len(c) && c[last+1] == c[last]+1 {
			last++
		}
		parts = append(parts, PortRange{c[i], c[last]}.String())
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// Without returns the cores that are not in o.
func (c Cores) Without(o Cores) Cores {
	return slices.DeleteFunc(slices.Clone(c), func(core int) bool { return slices.Contains(o, core) })
}

// Check returns what is wrong with the cores of a node, or nil.
func (c Cores) Check() error {
	if len(c) > MaxCores {
		return fmt.Errorf("a node has at most %d cores for tasks but found %d", MaxCores, len(c))
	}
	for i, core := range c {
		if core < 0 || core > maxCore || i > 0 && core <= c[i-1] {
			return fmt.Errorf("the cores of a node must be different numbers within [0, %d] in their order but found %d", maxCore, core)
		}
	}
	return nil
}

// AssignedCores are the cores of an allocation, in the order of its tasks.
type AssignedCores struct{ All []TaskCores }

// TaskCores are the cores of one task.
type TaskCores struct {
	Task  string
	Cores Cores
}

// Of returns the cores of a task, or nil.
func (c *AssignedCores) Of(task string) Cores {
	if c != nil {
		for _, t := range c.All {
			if t.Task == task {
				return t.Cores
			}
		}
	}
	return nil
}

// CoresInUse are the cores of one node that allocations have.
type CoresInUse map[int]*Allocation

// Add adds the cores of an allocation.
func (u CoresInUse) Add(a *Allocation) {
	if a.Cores == nil {
		return
	}
	for _, t := range a.Cores.All {
		for _, core := range t.Cores {
			u[core] = a
		}
	}
}

// Cores is the number of cores that each allocation of the group gets.
func (g *TaskGroup) Cores() (sum int) {
	for _, t := range g.Tasks {
		if t != nil {
			sum += t.Cores
		}
	}
	return sum
}

// validateLimits checks what the task may use of a node.
func (t *Task) validateLimits() error {
	var errs []error
	if most := t.MemoryMaxMB; most < NoMemoryLimit || most > 0 && most < t.Resources.MemoryMB {
		errs = append(errs, fmt.Errorf("MemoryMaxMB must be at least MemoryMB, which is %d, or %d for no limit, but found %d", t.Resources.MemoryMB, NoMemoryLimit, most))
	}
	if t.Cores < 0 || t.Cores > MaxCores {
		errs = append(errs, fmt.Errorf("Cores must be between [0, %d] but found %d", MaxCores, t.Cores))
	}
	return errors.Join(errs...)
}
