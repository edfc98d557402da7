package cluster

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

// Usage is the need of a node's allocations that are not client-terminal. The zero value is that
// of a node without any.
type Usage struct {
	// Live counts these allocations.
	Live      int
	Resources Resources
}

// Plus returns r + o.
func (r Resources) Plus(o Resources) Resources {
	return Resources{CPU: r.CPU + o.CPU, MemoryMB: r.MemoryMB + o.MemoryMB, DiskMB: r.DiskMB + o.DiskMB, GPU: r.GPU + o.GPU}
}

// Minus returns r - o; amounts may become negative.
func (r Resources) Minus(o Resources) Resources {
	return Resources{CPU: r.CPU - o.CPU, MemoryMB: r.MemoryMB - o.MemoryMB, DiskMB: r.DiskMB - o.DiskMB, GPU: r.GPU - o.GPU}
}

// Fits reports whether r is at most room in every amount.
func (r Resources) Fits(room Resources) bool {
	return r.CPU <= room.CPU && r.MemoryMB <= room.MemoryMB && r.DiskMB <= room.DiskMB && r.GPU <= room.GPU
}
