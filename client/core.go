package client

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Core makes all decisions for one node. Only its owner calls Step. The other methods post events:
// they return at once, take effect in the next step, and are safe for concurrent use.
type Core struct {
	options  Options
	inbox    *inbox
	now      Time
	wakeAt   time.Duration
	restored bool

	drivers   *drivers
	devices   *devices
	ledger    ledger
	publisher publisher
	reports   reports
	visiting  visiting
	// volumes are the volumes of the node, or nil if the node mounts none.
	volumes *volume.Volumes
	// allocs are sorted by id.
	allocs    []*allocRunner
	agreement agreement
	// version is the cluster version of the newest answer, also of one to an earlier client, or zero.
	version cluster.Version
	// contacted: this core has received an answer of its cluster.
	contacted bool
	// contact is the last heartbeat that the servers have answered.
	contact guard.Contact
	// silence is the longest time without an answered heartbeat that has ended since the last step that
	// took a contact, in nanoseconds.
	silence atomic.Int64
}

// New returns a core that has done nothing yet.
func New(o Options) (*Core, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Core{options: o, inbox: newInbox(), contact: o.LastContact, version: o.Version}
	c.drivers, c.devices = newDrivers(c, o.Drivers), newDevices(c, o.DevicePlugins, o.LastDevices)
	c.ledger, c.publisher, c.reports.core, c.visiting.core = ledger{c}, publisher{core: c, unpublished: true}, c, c
	c.agreement.core = c
	if c.volumes, err = newVolumes(c); err != nil {
		return nil, err
	}
	return c, nil
}

// Facts returns the facts of the node before the first step, for the first registration: no plugin
// has reported yet. The caller owns them. Later facts reach [Shell.Publish].
func (c *Core) Facts() NodeFacts { return c.publisher.facts() }

// Woken receives a value when the core needs a step before the time that the last step returned.
func (c *Core) Woken() <-chan struct{} { return c.inbox.woken }

// Servers posts an answer of the servers. The core owns w.
func (c *Core) Servers(w Changes) {
	if len(w.Allocs)+len(w.Unreadable)+len(w.Nameless) == 0 && !w.Complete {
		c.inbox.keep(noteAnswer, func() { c.receive(w) })
		return
	}
	c.inbox.post(func() { c.receive(w) })
}

// Foreign reports whether the core ignores the servers because they belong to another cluster. The
// caller should then request all allocations of the node from time to time: the node joins the other
// cluster when nothing of its own cluster is left.
func (c *Core) Foreign() bool { return c.agreement.ignoring.Load() }

// Forgotten posts that the servers do not have the node. So they may have none of its allocations, until an
// answer with all allocations lists them. [Shell.Publish] then gets the facts in any case. The caller
// registers the node with these, and requests all allocations.
func (c *Core) Forgotten() {
	c.inbox.post(func() {
		relist(c, Changes{}, nil)
		c.publisher.noteUrgent()
	})
}

// Contact posts that the servers have answered a heartbeat. previous is the contact before, also of an
// earlier client.
func (c *Core) Contact(previous, contact guard.Contact) {
	silence := int64(previous.Silence(contact.Sent))
	for longest := c.silence.Load(); silence > longest && !c.silence.CompareAndSwap(longest, silence); {
		longest = c.silence.Load()
	}
	c.inbox.keep(noteContact, func() {
		silence := time.Duration(c.silence.Swap(0))
		for _, a := range c.allocs {
			// The client was frozen, or the machine was suspended, when the deadline passed.
			if after := stopsAfter(a); after > 0 && silence >= after {
				a.stopCutOff()
			}
		}
		if contact.Sent >= c.contact.Sent {
			c.contact = contact
		}
		c.visiting.all()
	})
}

// StoppedByWatchdog posts that the watchdog of this client has killed tasks of an allocation, which it
// does while the client is frozen. It is no error if the core has taken the same note before.
func (c *Core) StoppedByWatchdog(s guard.Stopped) {
	c.inbox.post(func() {
		if a := c.alloc(s.Alloc); a != nil {
			stoppedByWatchdog(a, &s)
		}
	})
}

// PluginDown posts that the process of a plugin has ended. The text why has the reason, or is empty.
func (c *Core) PluginDown(p Plugin, generation Generation, why string) {
	c.inbox.post(func() {
		if p.Type == DevicePlugin {
			c.devices.down(p.Name, generation, why)
			return
		}
		c.drivers.down(p.Name, generation, why)
	})
}

// Fingerprint posts the health of a driver.
func (c *Core) Fingerprint(name string, generation Generation, f driver.Fingerprint) {
	c.inbox.post(func() { c.drivers.fingerprint(name, generation, f) })
}

// DriverEvent posts an event that a driver reports about a start of a task. The state of the task keeps
// the last three, at most three in ten seconds. The caller should log each event.
func (c *Core) DriverEvent(name string, generation Generation, e driver.Event) {
	c.inbox.post(func() { c.drivers.event(name, generation, e) })
}

// Devices posts a report of a device plugin. The core owns it.
func (c *Core) Devices(plugin string, generation Generation, r DeviceReport) {
	c.inbox.post(func() { c.devices.report(plugin, generation, r) })
}

// Step handles the posted events and starts the effects that are due. It returns the latest time of
// the next call, or [Never]. Additional calls are harmless. Step never blocks.
func (c *Core) Step(now Time) (wakeAt time.Duration) {
	c.now = now
	if !c.restored {
		c.restored = true
		c.restore()
	}
	notes, posts := c.inbox.take()
	for _, act := range notes {
		if act != nil {
			act()
		}
	}
	for _, act := range posts {
		act()
	}
	// A visit of one allocation can mark another allocation, such as its replacement.
	for again := true; again; again = c.visiting.marked {
		c.wakeAt = Never
		c.drivers.step()
		c.devices.step()
		c.visiting.pass()
		c.drivers.sendStarts()
	}
	c.publisher.step()
	c.reports.step()
	c.discard()
	return c.wakeAt
}

// reached reports whether the time is at or after at. If not, the core requests a step at that
// time.
func (c *Core) reached(at time.Duration) bool {
	if at <= c.now.Boot {
		return true
	}
	c.wakeAt = min(c.wakeAt, at)
	return false
}

// later returns the time after some waits. A sum that overflows is [Never], because a job may
// contain waits of centuries.
func later(at time.Duration, waits ...time.Duration) time.Duration {
	for _, wait := range waits {
		if wait > Never-at {
			return Never
		}
		at += wait
	}
	return at
}

// alloc returns the runner of an allocation, or nil.
func (c *Core) alloc(id cluster.AllocID) *allocRunner {
	if i, found := c.find(id); found {
		return c.allocs[i]
	}
	return nil
}

func (c *Core) find(id cluster.AllocID) (int, bool) {
	return slices.BinarySearchFunc(c.allocs, id, func(a *allocRunner, id cluster.AllocID) int {
		return strings.Compare(string(a.id()), string(id))
	})
}

func (c *Core) add(a *allocRunner) {
	i, _ := c.find(a.id())
	c.allocs = slices.Insert(c.allocs, i, a)
	c.visiting.added(a)
}

func (c *Core) remove(a *allocRunner) {
	if i, found := c.find(a.id()); found {
		c.allocs = slices.Delete(c.allocs, i, i+1)
	}
	c.visiting.removed(a)
}

// receive handles an answer of the servers. It ignores an answer of another cluster, and changes that
// are older than the last answer: allocations that must run could be missing in them. An answer with all
// allocations after the first one is of servers that do not have what the client has read or written. So they
// may have an older registration and older reports too, and the client repeats these.
func (c *Core) receive(w Changes) {
	if !c.agreement.accepts(w) {
		return
	}
	switch {
	case !c.contacted:
		c.contacted = true
		c.visiting.all()
	case w.All:
		c.publisher.noteUrgent()
	}
	if w.Version != 0 {
		c.version = w.Version
	}
	for _, alloc := range w.Allocs {
		c.receiveAlloc(alloc, "")
	}
	for _, u := range w.Unreadable {
		receiveUnreadable(c, u)
	}
	for _, why := range w.Nameless {
		c.options.Logger.Error("the client cannot read the id of an allocation; it stops no allocation that is missing from this answer", "why", why)
	}
	if !w.Complete {
		return
	}
	known := make(map[cluster.AllocID]bool, len(w.Known))
	for _, id := range w.Known {
		known[id] = true
	}
	relist(c, w, known)
	if w.All {
		repeat(c, w)
	}
	for _, a := range c.allocs {
		if !known[a.id()] {
			a.stopUnknown()
		}
	}
	c.releaseOld(w, known)
}

// receiveAlloc handles an allocation that the servers have placed or changed. One that is lost and was
// never received gets a runner too, which reports its end. disk is [DiskFound] if the folders of an orphan of the
// allocation stay for it.
func (c *Core) receiveAlloc(alloc *cluster.Allocation, disk DiskLeft) {
	if a := c.alloc(alloc.ID); a != nil {
		a.update(alloc)
		return
	}
	if alloc.NodeID != c.options.Node {
		return
	}
	switch {
	case alloc.ClientStatus == cluster.ClientLost:
		c.releaseLost(alloc)
	case alloc.ClientTerminal() && alloc.DataOut.Kept():
		forsaken(c, alloc, disk)
		return
	case alloc.ClientTerminal():
		return // the client has reported its end, which frees the claims
	}
	a := newAllocRunner(c, &Record{
		Alloc: alloc, ClusterID: c.agreement.cluster, BootID: c.options.BootID, Received: c.now.Boot, ClientStatus: cluster.ClientPending, Disk: disk,
	})
	a.listed = cluster.IsListed(alloc)
	c.add(a)
	c.adoptVolumes(alloc)
	a.received()
}

// discard removes the oldest ended allocations if there are more than KeepEnded, and one after the other while the
// disk has no room for a record. It removes ended orphans at once. An allocation that waits for a predecessor stays,
// and so does one in whose folders the data of another is, or whose data another takes.
func (c *Core) discard() {
	keep := max(0, c.options.KeepEnded)
	over, orphans, full := 0, false, false
	for _, a := range c.allocs {
		full = full || lacksRoom(a)
		if a.over() {
			over, orphans = over+1, orphans || a.orphan()
		}
	}
	if over == 0 || over <= keep && !orphans && !full {
		return // the usual case needs no search
	}
	ended := removable(c)
	for i, a := range ended {
		if i < len(ended)-keep || a.orphan() {
			a.discard()
		}
	}
	if full {
		freeRoom(ended)
	}
}

// removable returns the ended allocations that can be removed, the oldest first.
func removable(c *Core) []*allocRunner {
	sources := map[*allocRunner]bool{}
	for _, a := range c.allocs {
		if a.in.pending() && !a.rec.Ended {
			sources[a.in.source()] = true
		}
		if holder := a.out.holder(); holder != a { // nil is no source
			sources[holder] = true
		}
	}
	ended := slices.DeleteFunc(slices.Clone(c.allocs), func(a *allocRunner) bool { return !a.over() || sources[a] || a.order.predecessor() != nil })
	slices.SortStableFunc(ended, func(a, b *allocRunner) int { return a.rec.EndedAt.Compare(b.rec.EndedAt) })
	return ended
}

// freeRoom removes the first of ended allocations that can be removed, unless a removal runs.
func freeRoom(ended []*allocRunner) {
	for _, a := range ended {
		if a.discarding {
			return
		}
	}
	for _, a := range ended {
		if a.discard(); a.discarding {
			return
		}
	}
}

// roomFreed repeats the writes that had no room.
func roomFreed(c *Core) {
	for _, a := range c.allocs {
		if lacksRoom(a) {
			a.saves.retryAt, a.buildAt, a.in.retryAt = 0, 0, 0
			a.visits.mark()
		}
	}
}

// restore continues with the records of an earlier core.
func (c *Core) restore() {
	if c.contact.Sent == 0 {
		c.contact.Sent = c.now.Boot
	}
	c.agreement.cluster = ClusterOf(c.options.Records)
	for _, rec := range c.options.Records {
		a := newAllocRunner(c, rec)
		c.add(a)
		a.restore()
	}
	for _, s := range c.options.Stopped {
		if a := c.alloc(s.Alloc); a != nil {
			stoppedByWatchdog(a, &s)
		}
	}
	c.options.Records, c.options.Stopped = nil, nil
	c.restoreVolumes()
}
