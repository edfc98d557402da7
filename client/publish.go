package client

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// NodeFacts are the facts that the client reports about the node, beside its allocations.
type NodeFacts struct {
	// Drivers contains the health and the attributes of the drivers, by name.
	Drivers map[string]*cluster.DriverInfo
	// Devices are sorted by kind.
	Devices []*cluster.DeviceGroup
	// DeviceProblems states by device plugin why it has no devices, or which parts of its report the
	// client ignores. A text may have several lines. A plugin without problems has no text.
	DeviceProblems map[string]string
	// Unlisted are the allocations whose tasks may run and that the servers do not list. After a start of
	// the client these are all, until the first answer of the servers. It is never nil.
	Unlisted *cluster.UnlistedAllocs
}

// publisher reports the plugins of the node to the servers.
type publisher struct {
	core *Core
	// unpublished: the newest facts are not published. publishAt is the earliest time to publish
	// them.
	unpublished bool
	publishAt   time.Duration
	// settled: all plugins have reported, or firstBy has passed. Facts wait for that, so that a new node
	// registers with all its plugins.
	settled bool
	firstBy time.Duration
	// urgent: the servers must have the newest facts before a drain of the node ends, so they do not
	// wait.
	urgent bool
}

// firstPublish is the longest wait for the first fingerprints of all plugins.
const firstPublish = 10 * time.Second

func (p *publisher) facts() NodeFacts {
	c := p.core
	return NodeFacts{
		Drivers: c.drivers.infos(), Devices: c.devices.reportedGroups(), DeviceProblems: c.devices.problems(), Unlisted: c.unlisted(),
	}
}

// note marks the facts as changed, so that a step publishes them when the interval is over.
func (p *publisher) note() { p.unpublished = true }

// noteUrgent marks the facts as changed, so that the next step publishes them.
func (p *publisher) noteUrgent() { p.unpublished, p.urgent = true, true }

func (p *publisher) step() {
	c := p.core
	if p.firstBy == 0 {
		p.firstBy = c.now.Boot + firstPublish
	}
	p.settled = p.settled || c.drivers.allKnown() && c.devices.allKnown() || c.reached(p.firstBy)
	if p.unpublished && (p.urgent || p.settled && c.reached(p.publishAt)) {
		if !p.urgent {
			p.publishAt = c.now.Boot + c.options.PublishInterval
		}
		p.unpublished, p.urgent = false, false
		c.options.Shell.Publish(p.facts())
	}
}

// list records whether the servers list the allocation, and publishes a change at once. Otherwise a drain of
// the node could be complete while tasks run, or unconfirmed although they are listed and have ended.
func (a *allocRunner) list(listed bool) {
	if a.listed != listed && !a.rec.Ended {
		a.core.publisher.noteUrgent()
	}
	a.listed = listed
}

// relist records which allocations a complete answer lists. known are those that are not client-terminal.
// A lost one is listed if the answer contains its row.
func relist(c *Core, w Changes, known map[cluster.AllocID]bool) {
	listed := map[cluster.AllocID]bool{}
	for _, alloc := range w.Allocs {
		listed[alloc.ID] = cluster.IsListed(alloc)
	}
	for _, u := range w.Unreadable {
		listed[u.Alloc.ID] = cluster.IsListed(u.Alloc)
	}
	for _, a := range c.allocs {
		a.list(known[a.id()] || listed[a.id()])
	}
}

// unlisted returns the allocations whose tasks may run and that the servers do not list.
func (c *Core) unlisted() *cluster.UnlistedAllocs {
	var ids []cluster.AllocID
	for _, rec := range c.options.Records { // before the first step
		if !rec.Ended {
			ids = append(ids, rec.Alloc.ID)
		}
	}
	for _, a := range c.allocs {
		if !a.listed && !a.rec.Ended {
			ids = append(ids, a.id())
		}
	}
	return cluster.NewUnlistedAllocs(ids)
}
