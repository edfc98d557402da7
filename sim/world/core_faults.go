package world

import (
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/transfer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// notify passes a change of the node to the observers.
func (n *coreNode) notify(change NodeChange) {
	if change == ClientDies || change == ClientFreezes || change == MachineHalts {
		n.cores.fleet.world.controllers.cut(n.id)
	}
	n.cores.fleet.world.observer.NodeChanged(n.id, change)
}

func (n *coreNode) target() target { return target{Words: []string{string(n.id)}} }

// leastRestart is the shortest time from the death of a client to the start of the next one.
const leastRestart = 100 * time.Millisecond

// effect is an opportunity of client/crash. It returns false if the client dies.
func (n *coreNode) effect(string, bool) bool {
	faults := n.cores.fleet.world.Faults
	if len(faults.armed) == 0 {
		return true
	}
	delay, strikes := faults.strike(scenario.ClientCrash, n.target())
	if !strikes {
		return true
	}
	n.notify(ClientDies)
	faults.undoAfter(max(delay, leastRestart), n.restart)
	return false
}

// restart starts the client of a machine that runs and is not cut off by a crash.
func (n *coreNode) restart() error {
	if n.machine.Running() || n.cores.fleet.silent[n.id] != nil {
		return nil
	}
	n.notify(ClientStarts)
	n.registration.begin()
	return n.start()
}

// fault is an opportunity of the faults of drivers.
func (n *coreNode) fault(name string, c scripted.Call) scripted.Fault {
	w := n.cores.fleet.world
	if s := n.allocs[allocOf(c)]; c.Name == scripted.CallWait && s != nil && s.lie == neverAnswers {
		return scripted.Fault{Action: scripted.Hang}
	}
	if len(w.Faults.armed) == 0 {
		return scripted.Fault{}
	}
	if delay, strikes := w.Faults.strike(scenario.ShimKill, n.target()); strikes {
		w.Faults.after(delay, func() error { return n.killShims(c) })
	}
	return n.pluginFault(plugin{
		hangs: scenario.DriverHang, crashes: scenario.DriverCrash, stream: "driver/", dies: DriverDies,
		hang: func(d time.Duration) { n.machine.HangDriver(name, d) },
		kill: func() { n.machine.KillDriver(name) },
	})
}

// plugin is a driver or a device plugin of a node, with its faults.
type plugin struct {
	hangs, crashes scenario.FaultName
	// stream is the prefix of the stream that draws how it dies.
	stream string
	dies   NodeChange
	hang   func(time.Duration)
	kill   func()
}

// pluginFault is an opportunity of the faults with which a plugin hangs or dies. It dies before or
// after the call takes effect, or later.
func (n *coreNode) pluginFault(p plugin) scripted.Fault {
	w := n.cores.fleet.world
	if delay, strikes := w.Faults.strike(p.hangs, n.target()); strikes {
		p.hang(delay)
		n.killAtEnd(delay, p.hang, p.kill)
		return scripted.Fault{Delay: delay}
	}
	delay, strikes := w.Faults.strike(p.crashes, n.target())
	if !strikes {
		return scripted.Fault{}
	}
	ways := []scripted.Action{scripted.Crash, scripted.CrashAfter}
	if way := w.chance.stream(p.stream + string(n.id)).IntN(3); delay == 0 || way < len(ways) {
		n.notify(p.dies)
		return scripted.Fault{Action: ways[way%len(ways)]}
	}
	w.Faults.after(delay, func() error {
		n.notify(p.dies)
		return n.disturb(p.kill)
	})
	return scripted.Fault{}
}

// killAtEnd kills a plugin at the end of all faults, if it would hang longer.
func (n *coreNode) killAtEnd(d time.Duration, hang func(time.Duration), kill func()) {
	w := n.cores.fleet.world
	until := w.now.Add(d)
	w.Faults.undoAfter(d, func() error {
		if !w.now.Before(until) {
			return nil
		}
		return n.disturb(func() {
			hang(0)
			kill()
		})
	})
}

// requestData passes a request for data to the servers. It is an opportunity of data/twice.
func (n *coreNode) requestData(r *machine.Copy) {
	w := n.cores.fleet.world
	n.cores.transfers.Request(n.id, r)
	if delay, strikes := w.Faults.strike(scenario.DataTwice, n.target()); strikes {
		w.Faults.after(delay, func() error {
			n.cores.transfers.Newer(r.Alloc.ID)
			return nil
		})
	}
}

// transferFault is an opportunity of the faults of a copy to the node.
func (n *coreNode) transferFault() (f transfer.Fault) {
	faults := n.cores.fleet.world.Faults
	f.CutAfter, f.Cut = faults.strike(scenario.DataCut, n.target())
	f.SlowFor, _ = faults.strike(scenario.DataSlow, n.target())
	return f
}

// disturb advances the machine to the present time and calls do.
func (n *coreNode) disturb(do func()) error {
	if err := n.advance(); err != nil {
		return err
	}
	do()
	n.cores.wake(n)
	return nil
}

// killShims kills the shims of the allocation that a call was for.
func (n *coreNode) killShims(c scripted.Call) error {
	return n.disturb(func() { n.machine.KillShims(allocOf(c)) })
}

// allocOf returns the allocation of the task that a call is for.
func allocOf(c scripted.Call) cluster.AllocID {
	id, _, _ := strings.Cut(string(c.Task), "/")
	return cluster.AllocID(id)
}

// fails starts the outage of a machine or of its client.
func (c *cores) fails(id cluster.NodeID, by scenario.FaultName) {
	n := c.node(id)
	if n == nil || by == scenario.NodeDisconnect {
		return
	}
	switch by {
	case scenario.NodeReboot:
		n.notify(MachineHalts)
		n.machine.Halt()
		n.off = true
	case scenario.NodeFreeze:
		n.notify(ClientFreezes)
		machine.Freeze(n.machine)
	default:
		n.notify(ClientDies)
		n.machine.KillClient()
	}
	c.wake(n)
}

// returns ends the outage of a node.
func (c *cores) returns(id cluster.NodeID) error {
	n := c.node(id)
	if n == nil {
		return nil
	}
	if err := n.advance(); err != nil {
		return err
	}
	if n.off {
		n.notify(MachineStarts)
		n.off = false
		n.machine.Boot()
	}
	if n.machine.Running() {
		if !machine.Works(n.machine) {
			n.notify(ClientContinues)
			machine.Thaw(n.machine)
			c.wake(n)
		}
		return nil
	}
	n.cores.fleet.world.Faults.undoAfter(leastRestart, n.restart)
	return nil
}

// fillDisk makes the disk of a node full for the fault's delay.
func (f *fleet) fillDisk(by *fault) {
	w := f.world
	id, found := f.pickNode(by)
	n := f.real.node(id)
	if !found || n == nil || !w.Faults.drawStrike(by, target{}) {
		return
	}
	full := w.Faults.recordStrike(by, n.target())
	n.machine.FillDisk(true)
	w.Faults.undoAfter(full, func() error {
		n.machine.FillDisk(false)
		return nil
	})
}

// loseRecords damages one record of a node that has records, or all of them, and restarts its client.
// Without a record the client does not find a container.
func (f *fleet) loseRecords(by *fault) {
	w := f.world
	var nodes []*coreNode
	for _, n := range f.real.nodes {
		if !n.containers && f.silent[n.id] == nil && n.machine.Running() && len(n.machine.Records()) > 0 && (by.On == "" || by.On == string(n.id)) {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 || !w.Faults.drawStrike(by, target{}) {
		return
	}
	draws := w.chance.stream("fault/" + string(by.Name))
	n := nodes[draws.IntN(len(nodes))]
	if by.Name == scenario.DiskWipe {
		n.notify(DiskIsWiped)
		n.notify(ClientDies)
		machine.WipeDisk(n.machine)
	} else {
		records := n.machine.Records()
		lost := records[draws.IntN(len(records))].Alloc.ID
		n.notify(RecordIsLost)
		n.notify(ClientDies)
		n.machine.LoseRecord(lost)
		n.machine.KillClient()
	}
	w.Faults.undoAfter(max(w.Faults.recordStrike(by, n.target()), leastRestart), n.restart)
}
