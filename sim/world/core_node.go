package world

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// coreNode is one node with a real client.
type coreNode struct {
	cores   *cores
	id      cluster.NodeID
	machine *machine.Node
	// next is when the node must be advanced. Zero means never.
	next time.Time
	// answered is the index of the last answer to the present client.
	answered uint64
	// listed are the allocations that it lists. Nil means that the client gets the next answer
	// in any case.
	listed []cluster.AllocID
	// allocs are the allocations that its clients have received.
	allocs map[cluster.AllocID]*received
	// adopting: the tasks that start now count as started long ago.
	adopting bool
	// cutAt is when the first heartbeat had no answer, or zero.
	cutAt time.Time
	// off: the machine is switched off.
	off bool
	// row is the row of the node in the last state that its client has read. Each step reads it.
	row       *cluster.Node
	state     *statestore.Snapshot
	equipment equipment
	// containers: its driver keeps tasks in containers.
	containers bool
	// registration is the data that the client registers about the node.
	registration registration
}

// received is an allocation that a real client has received, with its behaviour.
type received struct {
	alloc     *cluster.Allocation
	behaviour Behaviour
	// lie is the call that its driver answers wrongly.
	lie lie
}

// lie is a kind of driver/lie.
type lie uint8

const (
	truthful      lie = iota
	liesAtStop        // StopTask answers before the task has stopped
	liesAtWait        // WaitTask returns no result for a stopped task
	cannotRecover     // RecoverTask fails
	neverAnswers      // WaitTask has no answer
	lieCount
)

// newNode creates the machine of a node, with the tasks that run on it.
func (c *cores) newNode(id cluster.NodeID) (*coreNode, error) {
	w := c.fleet.world
	n := &coreNode{cores: c, id: id, allocs: map[cluster.AllocID]*received{}}
	n.equipment.node, n.registration.node = n, n
	n.containers = w.options.Containers != nil && w.options.Containers(id)
	for _, g := range w.Truth().Node(id).Devices {
		n.equipment.has = append(n.equipment.has, g.Copy())
	}
	o := machine.Options{
		ID: id, Start: w.now.Add(-machineAge), Drivers: []string{noDriver}, Containers: n.containers, Script: n.script, Fault: n.fault, Effect: n.effect,
		Reachable: n.reachable, TTL: heartbeat, Storage: n.storage(), Publish: n.registration.publish,
		Contact: func() time.Time { return c.contact(n) }, Copy: n.requestData, Writes: n.writes, Retention: w.options.Retention,
		Report: func(reports []cluster.AllocReport, reply func(bool)) {
			o := outgoing{node: n, reports: reports, reply: reply}
			if n.registration.due {
				n.registration.reports = append(n.registration.reports, o)
			} else {
				c.outbox = append(c.outbox, o)
			}
		},
	}
	if w.options.Seed != 0 {
		o.Random = Stream(w.options.Seed, "machine/"+string(id))
		o.Uptime = time.Duration(Stream(w.options.Seed, "uptime/"+string(id)).Int64N(int64(maxUptime)))
		if Stream(w.options.Seed, "keep/"+string(id)).IntN(4) == 0 {
			o.KeepEnded = -1 // it discards each ended allocation when the servers have its end
		}
	}
	if len(n.equipment.has) > 0 {
		o.DevicePlugins, o.DeviceFault = n.equipment.plugins(), n.equipment.fault
	}
	if w.options.NodeObserver != nil {
		o.Observer = w.options.NodeObserver(id)
	}
	n.machine = machine.New(o)
	if _, err := n.machine.Advance(w.now); err != nil {
		return nil, fmt.Errorf("starting a machine: %w", err)
	}
	var running []*cluster.Allocation
	for a := range w.Truth().WorkView().LiveAllocsByNode(id) {
		if a.ClientStatus != cluster.ClientPending {
			n.receive(a)
			running = append(running, a)
		}
	}
	n.adopting = true
	if err := n.machine.Adopt(clusterID, running); err != nil {
		return nil, fmt.Errorf("starting a machine: %w", err)
	}
	n.adopting = false
	return n, n.start()
}

// reachable reports whether the client of the node reaches the servers.
func (n *coreNode) reachable() bool {
	if state := n.cores.fleet.world.Truth(); state != n.state {
		n.row, n.state = state.Node(n.id), state
	}
	return n.cores.fleet.silent[n.id] == nil && n.row.Reachable()
}

// start starts the client.
func (n *coreNode) start() error {
	if n.machine.Running() {
		return nil
	}
	if err := n.advance(); err != nil {
		return err
	}
	n.answered, n.listed = 0, nil
	n.cores.changed(n.id)
	n.cores.wake(n)
	return n.machine.StartClient()
}

// advance advances the machine to the present time.
func (n *coreNode) advance() error {
	if _, err := n.machine.Advance(n.cores.fleet.world.now); err != nil {
		return fmt.Errorf("advancing a node: %w", err)
	}
	return nil
}

// receive draws the behaviour of an allocation when a client first receives it.
func (n *coreNode) receive(a *cluster.Allocation) {
	if s := n.allocs[a.ID]; s != nil {
		s.alloc = a
		return
	}
	s := &received{alloc: a, behaviour: n.cores.fleet.behaviour(a, nil)}
	n.allocs[a.ID] = s
	for _, c := range n.cores.targets {
		setTarget(n, a, c)
	}
	if _, strikes := n.cores.fleet.world.Faults.strike(scenario.DriverLie, target{Alloc: a}); strikes {
		draws := Stream(n.cores.fleet.world.options.Seed, "lie/"+a.Name+"@"+string(a.NodeID))
		s.lie = liesAtStop + lie(draws.IntN(int(lieCount-liesAtStop)))
	}
}

// setTarget changes the target of the checks of an allocation, if the change matches it.
func setTarget(n *coreNode, a *cluster.Allocation, c scenario.TargetChange) {
	states := map[scenario.TargetVerb]machine.TargetState{
		scenario.TargetPasses: machine.TargetPasses, scenario.TargetFails: machine.TargetFails, scenario.TargetHangs: machine.TargetHangs,
	}
	if c.Match.Matches(a) {
		machine.SetTarget(n.machine, a.ID, setting.CheckName, states[c.Change])
	}
}

// setTargets changes the targets of checks.
func (c *cores) setTargets(change scenario.TargetChange) error {
	c.targets = append(c.targets, change)
	for _, n := range c.nodes {
		if err := n.advance(); err != nil {
			return err
		}
		for _, id := range slices.Sorted(maps.Keys(n.allocs)) {
			setTarget(n, n.allocs[id].alloc, change)
		}
		c.wake(n)
	}
	return nil
}

// writes returns how many bytes the tasks of an allocation write to their disk.
func (n *coreNode) writes(id cluster.AllocID) int64 {
	mb := int64(1)
	if s, of := n.allocs[id], n.cores.fleet.world.options.Writes; s != nil && of != nil {
		mb = of(s.alloc)
	}
	return mb << 20
}

// Behaviours of tasks that the language of scenarios cannot describe.
const (
	shortTask = time.Second // how long a poststart or poststop task runs
	crashing  = time.Second // how long a task runs that exits with 1 again and again
)

// script returns the script of one start of a task.
func (n *coreNode) script(c *driver.TaskConfig) scripted.Script {
	s := n.allocs[cluster.AllocID(c.AllocID)]
	if s == nil {
		return scripted.Script{}
	}
	group := s.alloc.Job.Group(s.alloc.TaskGroup)
	if group == nil {
		return scripted.Script{}
	}
	b := s.behaviour
	script := scripted.Script{StopLies: s.lie == liesAtStop, WaitFailsAfterStop: s.lie == liesAtWait}
	if s.lie == cannotRecover {
		script.RecoverError = "the task is lost"
	}
	prestart := false
	var task *cluster.Task
	for _, t := range group.Tasks {
		prestart = prestart || t.Lifecycle != nil && t.Lifecycle.Hook == cluster.HookPrestart && !t.Lifecycle.Sidecar
		if t.Name == c.Name {
			task = t
		}
	}
	switch {
	case task == nil || task.Sidecar():
		return script
	case !task.Main():
		script.Ends, script.RunFor = true, shortTask
		if task.Lifecycle.Hook == cluster.HookPrestart {
			script.RunFor = b.Start
		}
		return script
	}
	if !prestart && !n.adopting {
		script.StartDelay = b.Start
	}
	switch {
	case s.alloc.JobType().ToCompletion():
		script.Ends, script.RunFor = true, b.Run
	case b.Crash > 0 && b.Crash != Never:
		script.Ends, script.RunFor, script.Exit = true, b.Crash, driver.ExitResult{Code: 1}
	case b.Unhealthy && !s.alloc.HasVerdict():
		script.Ends, script.RunFor, script.Exit = true, crashing, driver.ExitResult{Code: 1}
	}
	if b.Stop == Never && (task.CSIPlugin != nil || n.containers) {
		script.IgnoreSignals = true // in state D it would block calls and the removal of its container for ever
	} else if b.Stop == Never {
		script.IgnoreSignals, script.KillTakes = true, Never
	} else {
		script.StopTakes = max(0, b.Stop-group.ShutdownDelay-task.ShutdownDelay)
	}
	return script
}
