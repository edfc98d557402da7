package cluster

import "math"

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
