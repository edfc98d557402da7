package client

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// NodeFacts are what the servers are told about the node, beside its allocations.
type NodeFacts struct {
	// Drivers are the health and the attributes of the drivers by name.
	Drivers map[string]*cluster.DriverInfo
	// Devices are in the order of their kinds.
	Devices []*cluster.DeviceGroup
}

// publisher tells the servers about the plugins of the node.
type publisher struct {
	core *Core
	// unpublished: the servers do not know the newest facts. publishAt is when they may be published.
	unpublished bool
	publishAt   time.Duration
	// published: the servers were told once. The first time waits for all plugins until firstBy, so
	// that a new node is complete at once.
	published bool
	firstBy   time.Duration
}

// firstPublish bounds the wait for the first fingerprints of all plugins.
const firstPublish = 10 * time.Second

// note notes a change that the servers must learn.
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
		c.options.Shell.Publish(NodeFacts{Drivers: c.drivers.infos(), Devices: c.devices.groups()})
	}
}
