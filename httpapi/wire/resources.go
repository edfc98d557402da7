package wire

import (
	"fmt"
	"math"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// NodeResources are a node's resources.
type NodeResources struct {
	Cpu      NodeCPU
	Memory   Memory
	Disk     Disk
	Networks []*NetworkResource
	Devices  []*NodeDevices
	// MinDynamicPort and MaxDynamicPort are the range of dynamic ports, with both ends. They are zero for a node
	// without networks.
	MinDynamicPort int
	MaxDynamicPort int
	// GPU is in thousandths of a device. Ours.
	GPU int64 `json:",omitempty"`
}

// NodeCPU are a node's processors. A share is a thousandth of a core.
type NodeCPU struct {
	CpuShares int64
	// ReservableCpuCores are the cores that tasks can have for themselves.
	ReservableCpuCores []uint16
	TotalCpuCores      uint16
}

// Memory is an amount in mebibytes.
type Memory struct{ MemoryMB int64 }

// Disk is an amount in mebibytes.
type Disk struct{ DiskMB int64 }

// ReservedResources are the part of a node's resources that allocations cannot use.
type ReservedResources struct {
	Cpu      ReservedCPU
	Memory   Memory
	Disk     Disk
	Networks ReservedNetworks
	// GPU is in thousandths of a device. Ours.
	GPU int64 `json:",omitempty"`
}

// ReservedCPU is the part of a node's processors that allocations cannot use.
type ReservedCPU struct {
	CpuShares        int64
	ReservedCpuCores []uint16
}

// ReservedNetworks are the ports that are not for allocations, such as "22,8000-8010".
type ReservedNetworks struct{ ReservedHostPorts string }

func newNodeResources(n *cluster.Node) *NodeResources {
	r := n.Resources
	cores := uint16(max(0, min(r.CPU/1000, math.MaxUint16)))
	w := &NodeResources{
		Cpu: NodeCPU{CpuShares: r.CPU, ReservableCpuCores: newCores(n.Cores), TotalCpuCores: cores}, Memory: Memory{r.MemoryMB}, Disk: Disk{r.DiskMB}, GPU: r.GPU,
		Devices: newNodeDevices(n.Devices), Networks: newNodeNetworks(n.Network),
	}
	if n.Network != nil {
		w.MinDynamicPort, w.MaxDynamicPort = n.Network.MinDynamicPort, n.Network.MaxDynamicPort
	}
	return w
}

// newCores returns the numbers of cores, or nil.
func newCores(cores cluster.Cores) (list []uint16) {
	for _, core := range cores {
		list = append(list, uint16(core))
	}
	return list
}

func coresOf(list []uint16) (cores cluster.Cores) {
	for _, core := range list {
		cores = append(cores, int(core))
	}
	return cores
}

func (w *NodeResources) cores() cluster.Cores {
	if w == nil {
		return nil
	}
	return coresOf(w.Cpu.ReservableCpuCores)
}

func (w *NodeResources) devices() []*cluster.DeviceGroup {
	if w == nil {
		return nil
	}
	return deviceGroups(w.Devices)
}

func (w *NodeResources) resources() cluster.Resources {
	if w == nil {
		return cluster.Resources{}
	}
	return cluster.Resources{CPU: w.Cpu.CpuShares, MemoryMB: w.Memory.MemoryMB, DiskMB: w.Disk.DiskMB, GPU: w.GPU}
}

func newReservedResources(n *cluster.Node) *ReservedResources {
	r := n.Reserved
	w := &ReservedResources{Cpu: ReservedCPU{CpuShares: r.CPU}, Memory: Memory{r.MemoryMB}, Disk: Disk{r.DiskMB}, GPU: r.GPU}
	if n.Network != nil {
		w.Networks.ReservedHostPorts = n.Network.Reserved.String()
	}
	return w
}

func (w *ReservedResources) resources() cluster.Resources {
	if w == nil {
		return cluster.Resources{}
	}
	return cluster.Resources{CPU: w.Cpu.CpuShares, MemoryMB: w.Memory.MemoryMB, DiskMB: w.Disk.DiskMB, GPU: w.GPU}
}

// Resources are the needs of an allocation or a task. In a job, a nil field is zero.
type Resources struct {
	// CPU is in thousandths of a core.
	CPU      *int64
	MemoryMB *int64
	DiskMB   *int64
	// Cores is the number of cores that a task of a job has for itself. It replaces CPU.
	Cores *int64
	// MemoryMaxMB is the most memory that a task of a job may use. Zero is MemoryMB, and -1 is no limit.
	MemoryMaxMB *int64
	// SecretsMB and IOPS are not read, and zero in an answer.
	SecretsMB *int64
	IOPS      *int64
	// Devices are what a task of a job requests. Those of a task without a driver are counted as thousandths
	// of GPUs.
	Devices []DeviceRequest `json:",omitempty"`
	// Networks has the ports that a task of a job requests.
	Networks []*NetworkResource `json:",omitempty"`
	// GPU is in thousandths of a device. Ours.
	GPU int64 `json:",omitempty"`
}

func newResources(r cluster.Resources) *Resources {
	return &Resources{
		CPU: new(r.CPU), MemoryMB: new(r.MemoryMB), DiskMB: new(r.DiskMB), GPU: r.GPU,
		Cores: new(int64(0)), MemoryMaxMB: new(int64(0)), SecretsMB: new(int64(0)), IOPS: new(int64(0)),
	}
}

// resources are the needs without the devices.
func (w *Resources) resources() cluster.Resources {
	if w == nil {
		return cluster.Resources{}
	}
	return cluster.Resources{CPU: orZero(w.CPU), MemoryMB: orZero(w.MemoryMB), DiskMB: orZero(w.DiskMB), GPU: w.GPU}
}

// counted are the needs of a task without a driver. Simulated clients run it: its devices are thousandths
// of GPUs. It returns an error if a count is invalid.
func (w *Resources) counted() (cluster.Resources, error) {
	r := w.resources()
	if w == nil {
		return r, nil
	}
	for _, d := range w.Devices {
		if !d.gpu() {
			return cluster.Resources{}, fmt.Errorf("device %q is not supported: only devices of type gpu are counted for a task without a driver", d.Name)
		}
		if len(d.Constraints)+len(d.Affinities) > 0 {
			return cluster.Resources{}, fmt.Errorf("device %q: constraints and affinities need a task with a driver", d.Name)
		}
		count := uint64(1)
		if d.Count != nil {
			count = *d.Count
		}
		if count > uint64(math.MaxInt64-max(r.GPU, 0))/1000 {
			return cluster.Resources{}, fmt.Errorf("device %q: invalid count %d", d.Name, count)
		}
		r.GPU += int64(count) * 1000
	}
	return r, nil
}

// gpu reports whether the request's type is gpu.
func (d DeviceRequest) gpu() bool {
	parts := strings.Split(d.Name, "/")
	return parts[min(len(parts)-1, 1)] == "gpu"
}
