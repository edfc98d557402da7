package machine

import (
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	devices "github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// Options configure a [Node]. ID, Start, Report and Script are required.
type Options struct {
	ID cluster.NodeID
	// Start is the time at which the machine boots.
	Start time.Time
	// Uptime is how long the machine has already run at Start. It has done nothing.
	Uptime time.Duration
	// Random draws the order of events of one time; nil is the order of their addition.
	Random *rand.Rand
	// Drivers are the names of the node's drivers.
	Drivers []string
	// Containers: the drivers keep each task in a container, which the client cannot kill without
	// the driver, and their tasks end with them. They answer WaitTask too early: see
	// [scripted.Options].EarlyWait.
	Containers bool
	// Script is the behaviour of one start of a task.
	Script func(*driver.TaskConfig) scripted.Script
	// Fault is the fault of one call of a driver; nil is none.
	Fault func(driver string, call scripted.Call) scripted.Fault
	// Launch is what the launch of a plugin's process does; nil is a success at once.
	Launch func(p client.Plugin) scripted.Launch
	// Kernel is the error of a call of the client for the cgroup of a task; nil is none. A call with an
	// error has no effect.
	Kernel func(KernelCall) error
	// DevicePlugins are the node's device plugins, each with another name.
	DevicePlugins []DevicePlugin
	// DeviceFault is the fault of one call of a device plugin; nil is none.
	DeviceFault func(plugin string, call devices.Call) scripted.Fault
	// Storage is the node's storage; nil: the client mounts no volumes.
	Storage *StorageOptions
	// Copy takes requests for the data of ephemeral disks to the servers; nil: no server moves data.
	Copy func(*Copy)
	// Writes returns how many bytes the tasks of an allocation write to its disk; nil is a MiB.
	Writes func(cluster.AllocID) int64
	// Retention is DataRetention of the client's options.
	Retention time.Duration
	// Report takes reports to the servers. It calls reply at most once, later.
	Report func(reports []cluster.AllocReport, reply func(taken bool))
	// Publish takes the facts of the node to the servers; nil drops them.
	Publish func(client.NodeFacts)
	// Reachable reports whether the servers answer heartbeats; nil is always.
	Reachable func() bool
	// TTL is the time until the next heartbeat in the answers of the servers.
	TTL time.Duration
	// Contact returns when the servers last answered a heartbeat of a node that is not Reachable.
	// Nil is the last step of a client that was.
	Contact func() time.Time
	// Effect is called when an effect of the client begins and when it is answered. If it returns
	// false, the client is killed at that point. Nil is never.
	Effect func(name string, begins bool) bool
	// KeepEnded is that of the client's options.
	KeepEnded int
	// Observer observes the node; nil is none.
	Observer Observer
}

// DevicePlugin is a device plugin of a node, with its devices at the beginning.
type DevicePlugin struct {
	Name   string
	Groups []*cluster.DeviceGroup
}

// Observer observes a node.
type Observer interface {
	// Started and Killed: a client of the node starts, or dies.
	Started(n *Node)
	Killed(n *Node)
	// Received: the client gets an answer of the servers.
	Received(n *Node, w client.Changes)
	// Began: the client begins an effect. Subject is the allocation, the task, the plugin or the
	// volume of the effect, or empty.
	Began(n *Node, effect, subject string)
	// Reported: the client sends reports. Taken: the servers have them, and the client may be dead.
	Reported(n *Node, reports []cluster.AllocReport)
	Taken(n *Node, reports []cluster.AllocReport)
	// Saved and Discarded: a record was written to the disk, or was removed from it.
	Saved(n *Node, record *client.Record)
	Discarded(n *Node, alloc cluster.AllocID)
	// DevicesReported: a device plugin reports its devices to the client, or the error with which
	// it stopped reporting.
	DevicesReported(n *Node, plugin string, groups []*cluster.DeviceGroup, err error)
	// Reserves: the client calls Reserve of a running device plugin, for a start of a task.
	Reserves(n *Node, task client.TaskRef, kind cluster.DeviceKind, ids []string)
	// Checked: the client gets the result of a run of a check.
	Checked(n *Node, alloc cluster.AllocID, check string, passed bool)
	// Advanced is called after each event and step of the node.
	Advanced(n *Node)
	// Troubled: a fault that is not a fault of the client has occurred.
	Troubled(n *Node, kind Trouble, subject string)
}

// Trouble is a fault of a machine.
type Trouble uint8

// The faults of a machine.
const (
	// TroubleReboot: the machine has restarted.
	TroubleReboot Trouble = iota
	// TroubleDriver: a driver, which is the subject, has died, hangs, or has answered a call
	// wrongly or not at all.
	TroubleDriver
	// TroubleShim: the shim of a task has died.
	TroubleShim
	// TroubleDisk: the disk is full, or has free space again.
	TroubleDisk
	// TroubleRecord: the record of an allocation, which is the subject, was lost.
	TroubleRecord
	// TroubleStorage: a storage plugin, which is the subject, has died, hangs, or has answered a
	// call wrongly or not at all. An empty subject means the servers, which grant claims.
	TroubleStorage
	// TroubleVolumeRecord: the record of a volume, which is the subject, was lost.
	TroubleVolumeRecord
	// TroubleDevices: a device plugin, which is the subject, has died, hangs, has other devices, or has
	// answered a call wrongly or not at all.
	TroubleDevices
	// TroubleFreeze: the client is frozen, or continues.
	TroubleFreeze
	// TroubleKernel: the kernel has refused a call for a cgroup.
	TroubleKernel
)

// KernelCall is a call for the cgroup of a task.
type KernelCall uint8

// The calls for a cgroup: its processes get SIGKILL, it becomes empty, it is removed.
const (
	KillGroup KernelCall = iota
	AwaitGroup
	RemoveGroup
	KernelCallCount
)

// Times of the machine.
const (
	saveTime   = 2 * time.Millisecond
	folderTime = time.Millisecond
	// killTime is the longest time until a kill is answered.
	killTime = time.Second
	// callTimeout is the timeout of calls without another timeout.
	callTimeout = 30 * time.Second
)
