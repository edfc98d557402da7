package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// oddsOfRealClients is the probability that the nodes of a small world run the real client. It costs
// more time than the simulated one.
const oddsOfRealClients = 0.125

// oddsOfRealFaults is the least probability that a world with real clients has one of their faults.
const oddsOfRealFaults = 0.5

// oddsOfDevices is the probability that the nodes of a world with real clients have devices. The other
// worlds draw what they drew without devices.
const oddsOfDevices = 0.4

// drawRealClients draws whether the nodes run the real client.
func (m *draft) drawRealClients(size Size) {
	if size == Small && m.dice("real").odds(oddsOfRealClients) {
		m.s.Cluster.Clients = scenario.RealClients
		m.equipped = m.dice("devices/any").odds(oddsOfDevices)
		m.stored = m.dice("volumes/any").odds(oddsOfVolumes)
		m.moving = m.dice("data/any").odds(oddsOfData)
	}
}

// oddsOfData is the probability that groups of a world with real clients move their data. The other worlds draw what
// they drew without.
const oddsOfData = 0.25

// drawDisks lets groups move their data. Some have less room than a few allocations write.
func drawDisks(m *population) {
	if !m.draft.moving {
		return
	}
	d := m.draft.dice("data")
	m.draft.s.Cluster.Retention = d.span(2*time.Minute, 20*time.Minute)
	for _, g := range m.draft.s.EachGroup() {
		if g.Plugin || !d.odds(0.7) {
			continue
		}
		g.Migrate, g.Sticky, g.WritesMB = true, d.odds(0.3), int64(d.between(1, 100))
		if d.odds(0.5) {
			g.DiskMB = g.WritesMB * int64(d.between(1, 4))
		}
	}
}

// oddsOfLongest is the probability that groups of a world with real clients have a longest run. The other worlds draw
// what they drew without.
const oddsOfLongest = 0.25

// drawLongest draws how long allocations may run. The run goes on, because the time of some ends after the last drain.
func drawLongest(m *population) {
	d := m.draft.dice("longest")
	if !m.draft.real() || !d.odds(oddsOfLongest) {
		return
	}
	for _, g := range m.draft.s.EachGroup() {
		if !g.Plugin && d.odds(0.4) {
			g.MaxRun = d.span(20*time.Second, 5*time.Minute)
			m.draft.lasting = true
		}
	}
}

// oddsOfContainers is the probability that drivers of a world with real clients keep tasks in
// containers.
const oddsOfContainers = 0.2

// drawContainers draws the nodes whose drivers keep tasks in containers. The other worlds draw what
// they drew without containers.
func drawContainers(m *population) {
	if d := m.draft.dice("containers"); m.draft.real() && d.odds(oddsOfContainers) {
		for i := range m.draft.s.Nodes {
			m.draft.s.Nodes[i].Containers = d.odds(0.6)
		}
	}
}

// real reports whether the nodes run the real client.
func (m *draft) real() bool { return m.s.Cluster.Clients == scenario.RealClients }

// drawLifecycles adds tasks to groups of a world with real clients.
func (m *population) drawLifecycles() {
	if !m.draft.real() {
		return
	}
	d := m.draft.dice("real/lifecycles")
	for j, g := range m.draft.s.EachGroup() {
		if d.odds(0.3) {
			g.GroupShutdown = d.span(100*time.Millisecond, 10*time.Second)
		}
		if away := m.draft.dice("real/away/" + string(j.Key.ID) + "." + g.Name); away.odds(0.25) {
			g.StopAway = away.span(3*time.Second, 2*time.Minute)
		}
		g.Prestart, g.Poststart, g.Sidecar, g.Poststop = d.odds(0.25), d.odds(0.2), d.odds(0.3), d.odds(0.2)
	}
}
