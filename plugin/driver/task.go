package driver

import "math"

// TaskConfig is what a driver gets to start a task.
type TaskConfig struct {
	ID   TaskID
	Name string
	// Config is the answer of [Driver.Encode].
	Config []byte
	// Env is the whole environment of the task. It contains DeviceEnv.
	Env       map[string]string
	DeviceEnv map[string]string
	Resources Resources
	Mounts    []Mount
	Devices   []Device
	// User runs the task; empty is the driver's default.
	User string
	// AllocDir is the folder of the allocation. The task's folder is below it, under Name.
	AllocDir string
	// StdoutPath and StderrPath receive the output: FIFOs with a reader, or files.
	StdoutPath, StderrPath string

	AllocID, GroupName, JobName, JobID, ParentJobID, Namespace, NodeName, NodeID string

	// Network is the network that the allocation has, or nil for the host's.
	Network *Network
}

// Resources are the limits of a task. Zero is no limit.
type Resources struct {
	// CPU is in thousandths of a core.
	CPU int64
	// Cores are the cores of the host that the task has for itself, as a list such as "0-3,8", or empty.
	Cores string
	// MemoryMB is in mebibytes: what the task may use in any case.
	MemoryMB int64
	// MemoryMaxMB is the limit of a task that may use more than MemoryMB while the machine has free memory. Zero
	// is MemoryMB, and -1 is no limit.
	MemoryMaxMB int64
	// Cgroup is the path of the cgroup that the client created for the task, or empty.
	Cgroup string
	// Ports are the ports of the task's group on the host.
	Ports []Port
	// TaskNetwork has the ports of the task's own on the host, or is nil.
	TaskNetwork *TaskNetwork
}

// Port is a port of the host.
type Port struct {
	Label string
	// Number is the port of the host, and To the port in the task to which the driver maps it, or zero.
	Number, To int
	// HostIP is the address of the host on which the port is.
	HostIP string
}

// TaskNetwork are ports of the host that one task has: an older form of ports.
type TaskNetwork struct {
	IP string
	// Static and Dynamic are the ports by label.
	Static, Dynamic []TaskPort
}

// TaskPort is one port of a [TaskNetwork].
type TaskPort struct {
	Label  string
	Number int
}

// MemoryBytes is the limit of the memory in bytes: MemoryMaxMB or else MemoryMB. Zero is no limit. If the bytes
// are too many for an int64, it is the largest one.
func (r Resources) MemoryBytes() int64 {
	if r.MemoryMaxMB != 0 {
		return bytesOf(r.MemoryMaxMB)
	}
	return bytesOf(r.MemoryMB)
}

// MemoryLowBytes is MemoryMB in bytes if the limit is another one, and otherwise zero: a group that never has
// more than its limit needs no protection below it.
func (r Resources) MemoryLowBytes() int64 {
	if r.MemoryMaxMB == 0 || r.MemoryMaxMB == r.MemoryMB {
		return 0
	}
	return bytesOf(r.MemoryMB)
}

// bytesOf converts mebibytes. No limit is zero.
func bytesOf(mebibytes int64) int64 { return min(max(mebibytes, 0), math.MaxInt64>>20) << 20 }

// Mount is a folder or file of the host that the task sees.
type Mount struct {
	TaskPath, HostPath string
	ReadOnly           bool
	Propagation        string
}

// Device is a device file of the host that the task may use.
type Device struct {
	TaskPath, HostPath string
	// Permissions are letters of "rwm".
	Permissions string
}

// Network is the network of an allocation.
type Network struct {
	Mode   NetworkMode
	Path   string
	Labels map[string]string
	// Hostname and Address are the entry for the allocation in its hosts file, or empty.
	Hostname, Address string
}
