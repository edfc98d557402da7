package scenario

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// Scenario describes one simulation: a cluster at the beginning, events with their times, and the
// expected result.
type Scenario struct {
	// Name is the file's name without its ending, or empty.
	Name string
	// Prose is the comment at the beginning of the file, without the # signs. It states why the
	// scenario exists.
	Prose []string

	// Seed decides all draws: times from ranges, strikes of faults, and the order of events with
	// equal times. Zero draws nothing: a range gives its least time, and the order is that of
	// the file.
	Seed    uint64
	Cluster Cluster
	// Drainer is the configuration of the drainer, without the log, the functions and the
	// components. A zero value is the default.
	Drainer drainer.NodeDrainerConfig
	Nodes   []Node
	Volumes []Volume
	Jobs    []Job
	Allocs  []Alloc
	Clients []Client
	// Events are in the order of the file. Without a seed, events with equal times happen in this
	// order.
	Events []Event
	Run    Run

	// Story and End are the expected transcript and the expected final facts, without a newline
	// at the end. If both are empty, the scenario only expects that no guarantee is broken.
	Story, End string
}

// Range is a range of times, from which the run draws one. With equal ends it is one time.
type Range struct{ Min, Max time.Duration }

// Never is a time that does not come. A [Range] of a [Client] may have it as both ends.
const Never = simclient.Never

// Cluster describes the servers and the delays between them. A zero range is no delay.
type Cluster struct {
	// Servers is the number of servers. Zero is one, which succeeds itself.
	Servers int `drain:"servers"`
	// Replicas makes each server apply the log to its own store. Otherwise all servers share one
	// store.
	Replicas bool `drain:"replicas"`
	// Commit is the time from the proposal of a write to its apply. Late is the delay of a write
	// that a fault makes late; zero is [DefaultLate].
	Commit Range `drain:"commit"`
	Late   Range `drain:"late"`
	// Establish is the time from an election to the first step of the new leader's drainer.
	Establish Range `drain:"establish"`
	// Wake is the time from a wake-up to the step of the drainer, Schedule to the step of the
	// scheduler.
	Wake     Range `drain:"wake"`
	Schedule Range `drain:"schedule"`
	// Gather makes clients collect their reports and send them at its multiples. Zero sends each
	// report at once.
	Gather time.Duration `drain:"gather"`
	// Collect is the age at which the leader deletes ended allocations, evaluations and stopped
	// jobs, and the time between two searches for them. Zero deletes nothing.
	Collect time.Duration `drain:"collect"`
	// Clients is the kind of clients that the nodes have: [RealClients], or empty for simulated ones.
	Clients string `drain:"clients,=real"`
	// Hold is how long a real client holds a storage plugin that must stop, and the end of an allocation,
	// for volumes. Zero is the client's own default.
	Hold time.Duration `drain:"hold"`
	// Retention is how long a real client keeps the data of an ended allocation for a replacement. Zero is the
	// client's own default.
	Retention time.Duration `drain:"retention"`
}

// RealClients is the value of [Cluster].Clients for nodes that run the real client over scripted
// drivers.
const RealClients = "real"

// DefaultLate is the default of [Cluster].Late.
const DefaultLate = 3 * time.Second

// Run is when a scenario ends, and the form of its story.
type Run struct {
	// For is when the scenario ends. With zero it ends when nothing is left to do.
	For time.Duration `drain:"for"`
	// Calm is when all faults end. From then on drains must end within their bounds. With zero
	// this holds as soon as no fault is active.
	Calm time.Duration `drain:"calm"`
	// CutServers and CutNodes stay broken after Calm. The servers, counted from 1, stand still and
	// never lead. They are a minority. The clients of the nodes stay silent. Both are nil without
	// Calm.
	CutServers []int            `drain:"cut-servers"`
	CutNodes   []cluster.NodeID `drain:"cut-nodes"`
	// Drained ends the scenario soon after the last drain has ended, if no later event begins
	// another.
	Drained bool `drain:"drained"`
	// Brief makes the story give numbers of nodes and allocations instead of their names.
	Brief bool `drain:"brief"`
}
