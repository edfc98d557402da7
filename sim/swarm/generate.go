package swarm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// afterwards is the time from the end of the faults to the end of the scenario. Every drain that
// can end does so much sooner.
const afterwards = 2 * time.Hour

// lastingFor is the time from the end of the faults to the end of a scenario that goes on after its last drain. It is longer
// than the judges wait for a replacement and for the end of a longest run.
const lastingFor = 20 * time.Minute

// oddsOfGoingOn is the probability that a scenario goes on after its last drain has ended. An idle
// drainer rarely does anything.
const oddsOfGoingOn = 0.1

// Generate returns the scenario of a seed. Equal seeds and sizes give equal scenarios on every
// machine. The scenario names every event; its own seed decides ranges and probabilities.
func Generate(seed uint64, size Size) *scenario.Scenario {
	m := &draft{
		seed: seed, shape: size.shape(), character: character{},
		s: &scenario.Scenario{
			Name: fmt.Sprintf("%s-%d", size, seed),
			Seed: max(1, seed), // zero draws nothing
		},
	}
	m.drawRealClients(size)
	m.drawCharacter()
	m.s.Prose = m.prose(size)
	m.calm = m.dice("calm").at(m.shape.calm[0], m.shape.calm[1])
	m.drawServers(size)
	m.drawDrainer()
	begin := &population{draft: m}
	begin.drawNodes()
	begin.drawJobs()
	begin.drawStorage()
	begin.drawLifecycles()
	begin.drawCapacity()
	drawContainers(begin)
	begin.drawDevices()
	drawPorts(begin)
	drawCores(begin)
	begin.drawVolumes()
	drawDisks(begin)
	drawLongest(begin)
	drawSurge(begin)
	events := &story{draft: m, population: begin}
	events.drawDrains()
	(&clients{m, begin, events}).drawClients()
	events.drawStory()
	events.drawFaults()
	slices.SortStableFunc(m.s.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	m.s.Run = scenario.Run{
		Calm: m.calm, For: m.calm + afterwards, Drained: !m.dice("drained").odds(oddsOfGoingOn), Brief: size == Large,
	}
	if m.lasting {
		m.s.Run.For, m.s.Run.Drained = m.calm+lastingFor, false
	}
	events.drawOutside()
	return m.s
}

// draft is a scenario in the making. Each part of it draws from streams of its own, so that
// the draws of one part do not shift those of another.
type draft struct {
	seed      uint64
	shape     shape
	character character
	s         *scenario.Scenario
	calm      time.Duration
	// equipped: the nodes have devices.
	equipped bool
	// stored: there are volumes.
	stored bool
	// moving: the data of ephemeral disks moves.
	moving bool
	// lasting: the scenario goes on after its last drain.
	lasting bool
}

// population draws the nodes, the jobs and the allocations that a world begins with.
type population struct {
	draft *draft
	nodes []*node
	// spare are nodes that register later, or never.
	spare []cluster.NodeID
	// groups are those with allocations.
	groups []*group
	// allocs counts the allocations.
	allocs int
	// everywhere counts the jobs that run on every node.
	everywhere int
}

// dice returns the dice of a part.
func (m *draft) dice(part string) dice { return dice{world.Stream(m.seed, "swarm/"+part)} }

// node is a node that exists at the beginning.
type node struct {
	id    cluster.NodeID
	class string
	// load counts its first allocations, cpu is the sum of their CPU.
	load int
	cpu  int64
}

// group is a group of a job.
type group struct {
	key cluster.GroupKey
	// job is the index of its job in the scenario, at its own index in the job.
	job, at int
	// next is the lowest free index.
	next int
	// on are the nodes of its first allocations, by index.
	on []cluster.NodeID
}

// jobOf returns the declared job of the group, specOf the declared group.
func (m *population) jobOf(g *group) *scenario.Job    { return &m.draft.s.Jobs[g.job] }
func (m *population) specOf(g *group) *scenario.Group { return &m.jobOf(g).Groups[g.at] }

// happens adds an event.
func (m *draft) happens(at time.Duration, op scenario.Op) { m.happensBefore(at, "", op) }

// happensBefore adds an event that comes just before an entry. It adds none after the calm begins.
func (m *draft) happensBefore(at time.Duration, kind scenario.EntryKind, op scenario.Op) {
	if at < m.calm {
		m.s.Events = append(m.s.Events, scenario.Event{At: at, Before: kind, Op: op})
	}
}
