package machine

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// watchdog is the process beside the client that stops tasks when the client is dead or frozen. It makes
// the decisions of the real watchdog, without a process of its own. Only its notes remain when the next
// client starts. While the servers answer the client, nothing is planned.
type watchdog struct {
	node  *Node
	watch *guard.Watch
	// notes are on the disk, for the next client.
	notes map[cluster.AllocID]*guard.Stopped
	// cancel cancels the next step.
	cancel func()
}

func newWatchdog(n *Node) *watchdog {
	return &watchdog{node: n, watch: &guard.Watch{}, notes: map[cluster.AllocID]*guard.Stopped{}, cancel: func() {}}
}

// replace starts the watchdog of a new client, with the guards of the records, and returns the
// notes of the earlier one. Like the real client it removes the note of an allocation that has no record or
// has ended: the client starts such an allocation from the beginning, or not at all.
func (d *watchdog) replace() (stopped []guard.Stopped) {
	d.end()
	d.watch.Contact(guard.Contact{Sent: d.node.LastContact().Sub(d.node.machine.BootedAt()), TTL: TTL(d.node)})
	for _, r := range d.node.Records() {
		if !r.Ended {
			d.put(r.Alloc)
		}
	}
	maps.DeleteFunc(d.notes, func(id cluster.AllocID, _ *guard.Stopped) bool {
		r := d.node.Record(id)
		return r == nil || r.Ended
	})
	for _, id := range slices.Sorted(maps.Keys(d.notes)) {
		stopped = append(stopped, d.read(id))
	}
	return stopped
}

// read returns the note on an allocation, which exists.
func (d *watchdog) read(id cluster.AllocID) guard.Stopped {
	note := *d.notes[id]
	note.Signals = maps.Clone(note.Signals)
	return note
}

// end ends the process.
func (d *watchdog) end() {
	d.cancel()
	d.watch, d.cancel = &guard.Watch{}, func() {}
}

// put guards an allocation.
func (d *watchdog) put(a *cluster.Allocation) {
	hold := client.DefaultHoldLimit
	if d.node.volumes != nil {
		hold = d.node.volumes.HoldLimit()
	}
	g, guarded := guard.Of(a, hold)
	if !guarded {
		return
	}
	for i, t := range g.Tasks {
		g.Tasks[i].Group = cgroup(a.ID, t.Name)
	}
	d.watch.Put(g)
}

// remove ends the guard of an allocation that has ended.
func (d *watchdog) remove(id cluster.AllocID) {
	d.watch.Remove(id)
	delete(d.notes, id)
}

// gone notes that the client is dead.
func (d *watchdog) gone() {
	d.watch.Contact(answeredAt(d.node, d.node.contact))
	d.watch.Gone()
	d.step()
}

// beside counts while a client lives whose heartbeats are not answered.
func (d *watchdog) beside() {
	if d.node.run != nil {
		d.watch.Contact(answeredAt(d.node, d.node.contact))
		d.step()
	}
}

// step does what is due, and plans the next step.
func (d *watchdog) step() {
	d.cancel()
	if Works(d.node) && d.node.Reachable() {
		d.cancel = func() {}
		return
	}
	acts, wakeAt := d.watch.Step(d.node.boot())
	for len(acts) > 0 {
		for _, a := range acts {
			d.act(a)
		}
		acts, wakeAt = d.watch.Step(d.node.boot())
	}
	d.cancel = func() {}
	if wakeAt != guard.Never {
		d.cancel = d.node.clock.After(wakeAt-d.node.boot(), d.step)
	}
}

// act signals or kills a task, or removes its empty cgroup.
func (d *watchdog) act(a guard.Act) {
	m := d.node.machine
	if len(m.LivingIn(a.Task.Group)) == 0 {
		if m.RemoveCgroup(a.Task.Group) == nil {
			d.watch.Ended(a.Alloc, a.Task.Name)
		}
		return
	}
	if a.Kill {
		m.KillCgroup(a.Task.Group, scripted.ByWatchdog)
		return
	}
	d.note(a)
	signal, err := scripted.ParseSignal(a.Task.Signal, scripted.SIGINT)
	if err != nil {
		signal = scripted.SIGINT
	}
	for _, p := range m.LivingIn(a.Task.Group) {
		m.Signal(p.Identity, signal, scripted.ByWatchdog)
	}
	watch := d.watch
	m.AwaitEmpty(a.Task.Group, func() {
		if d.watch == watch {
			d.act(a)
			d.step()
		}
	})
}

// note writes for the next client that a task was stopped, unless the disk is full.
func (d *watchdog) note(a guard.Act) {
	if d.node.diskFull {
		return
	}
	s := d.notes[a.Alloc]
	if s == nil {
		s = &guard.Stopped{Alloc: a.Alloc, BootID: d.node.BootID(), After: a.After, Signals: map[string]time.Duration{}}
		d.notes[a.Alloc] = s
	}
	s.Signals[a.Task.Name] = d.node.boot()
}
