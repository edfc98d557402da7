package wire

// HostStats are the resources of a node that are in use.
type HostStats struct {
	// Memory is never nil in an answer: the reference's command reads through it.
	Memory *HostMemoryStats
	CPU    []*HostCPUStats
	// DiskStats are the mounted disks, AllocDirStats the one with the folders of the allocations, or nil.
	DiskStats     []*HostDiskStats
	AllocDirStats *HostDiskStats
	// DeviceStats are of the devices of plugins.
	DeviceStats []*DeviceGroupStats
	// Uptime is in seconds.
	Uptime uint64
	// CPUTicksConsumed is in MHz.
	CPUTicksConsumed float64
}

// HostMemoryStats are in bytes.
type HostMemoryStats struct{ Total, Available, Used, Free uint64 }

// HostCPUStats are of one core, in percent.
type HostCPUStats struct {
	CPU                string
	User, System, Idle float64
}

// HostDiskStats are of one disk, in bytes and percent.
type HostDiskStats struct {
	Device, Mountpoint             string
	Size, Used, Available          uint64
	UsedPercent, InodesUsedPercent float64
}

// AllocStats are the resources that an allocation uses.
type AllocStats struct {
	// ResourceUsage is the sum of the tasks.
	ResourceUsage *ResourceUsage
	Tasks         map[string]*TaskStats
	// Timestamp is in Unix nanoseconds.
	Timestamp int64
}

// TaskStats are the resources that a task uses.
type TaskStats struct {
	ResourceUsage *ResourceUsage
	// Timestamp is in Unix nanoseconds.
	Timestamp int64
	// Pids are the processes of the task, by their id.
	Pids map[string]*ResourceUsage
}

// ResourceUsage is a use of resources. A nil part is not measured.
type ResourceUsage struct {
	MemoryStats *MemoryStats
	CpuStats    *CPUStats
	// DeviceStats are of the devices of the task.
	DeviceStats []*DeviceGroupStats
}

// MemoryStats are in bytes. Measured names the fields that the driver measures.
type MemoryStats struct {
	RSS, Cache, Swap, Usage, MaxUsage, KernelUsage, KernelMaxUsage uint64
	Measured                                                       []string
}

// CPUStats are in percent of a core, TotalTicks in MHz. Measured names the fields that the driver
// measures.
type CPUStats struct {
	SystemMode, UserMode, TotalTicks float64
	ThrottledPeriods, ThrottledTime  uint64
	Percent                          float64
	Measured                         []string
}
