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
}

// publisher reports the plugins of the node to the servers.
type publisher struct {
	core *Core
	// unpublished: the newest facts are not published. publishAt is the earliest time to publish
	// them.
	unpublished bool
	publishAt   time.Duration
	// published: the facts were published at least once. The first time waits for all plugins until
	// firstBy, so that a new node registers with all its plugins.
	published bool
	firstBy   time.Duration
}

// firstPublish is the longest wait for the first fingerprints of all plugins.
const firstPublish = 10 * time.Second

func (p *publisher) facts() NodeFacts {
	c := p.core
	return NodeFacts{Drivers: c.drivers.infos(), Devices: c.devices.reportedGroups(), DeviceProblems: c.devices.problems()}
}

// note marks the facts as changed, so that the next step publishes them.
func (p *publisher) note() { p.unpublished = true }

func (p *publisher) step() {
	c := p.core
	if p.firstBy == 0 {
		p.firstBy = c.now.Boot + firstPublish
	}
	if !p.published && !(c.drivers.allKnown() && c.devices.allKnown()) && !c.reached(p.firstBy) {
		return
	}
	if p.unpublished && c.reached(p.publishAt) {
		p.unpublished, p.published = false, true
		p.publishAt = c.now.Boot + c.options.PublishInterval
		c.options.Shell.Publish(p.facts())
	}
}
