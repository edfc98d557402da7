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

// afterwards is how long a scenario goes on after its faults have ended: far longer
// than anything takes that ends at all.
const afterwards = 2 * time.Hour

// oddsOfGoingOn is how likely a scenario goes on when its last drain has ended: what a
// drainer does with nothing to drain is soon seen, and seldom anything.
const oddsOfGoingOn = 0.1

// Generate makes the scenario of a seed: equal seeds and sizes make equal scenarios,
// on every machine. Everything that happens is written out in it; its seed is for what
// ranges and probabilities leave open.
func Generate(seed uint64, size Size) *scenario.Scenario {
	m := &maker{
		seed: seed, shape: size.shape(), character: character{},
		s: &scenario.Scenario{
			Name: fmt.Sprintf("%s-%d", size, seed),
			Seed: max(1, seed), // none draws nothing
		},
	}
	m.drawCharacter()
	m.s.Prose = m.prose(size)
	m.calm = m.dice("calm").at(m.shape.calm[0], m.shape.calm[1])
	m.drawServers(size)
	m.drawDrainer()
	m.drawNodes()
	m.drawJobs()
	m.drawCapacity()
	m.drawDrains()
	m.drawClients()
	m.drawStory()
	m.drawFaults()
	slices.SortStableFunc(m.s.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	m.s.Run = scenario.Run{
		Calm: m.calm, For: m.calm + afterwards, Drained: !m.dice("drained").odds(oddsOfGoingOn), Brief: size == Large,
	}
	m.drawOutside()
	return m.s
}

// maker makes one scenario. Each part of it draws from streams of its own, so that
// one part's draw does not shift another's.
type maker struct {
	seed      uint64
	shape     shape
	character character
	s         *scenario.Scenario
	calm      time.Duration

	nodes []*node
	// spare are nodes that register later, or never.
	spare []cluster.NodeID
	// groups are those with allocations.
	groups []*group
	// allocs is how many allocations there are.
	allocs int
	// everywhere is how many jobs run on every node.
	everywhere int
	// drains are the drains that begin, in no order.
	drains []*episode
	// restored is whether a snapshot is restored at a time of its own.
	restored bool
	// anchors are times at which something of weight happens.
	anchors []time.Duration
}

// dice are those of a part.
func (m *maker) dice(part string) dice { return dice{world.Stream(m.seed, "swarm/"+part)} }

// node is a node that is there from the beginning.
type node struct {
	id    cluster.NodeID
	class string
	// load is how many allocations it begins with.
	load int
	// cpu is what they ask for.
	cpu int64
}

// group is a group of a job.
type group struct {
	key cluster.GroupKey
	// job is which of the scenario's jobs it is of, at which of the job's groups.
	job, at int
	// next is the first index that is free.
	next int
	// on are the nodes of those that it begins with, by index.
	on []cluster.NodeID
}

// jobOf is the group's job as it is declared, specOf the group.
func (m *maker) jobOf(g *group) *scenario.Job    { return &m.s.Jobs[g.job] }
func (m *maker) specOf(g *group) *scenario.Group { return &m.jobOf(g).Groups[g.at] }

// happens adds an event.
func (m *maker) happens(at time.Duration, op scenario.Op) { m.happensBefore(at, "", op) }

// happensBefore adds an event that comes just before an entry. Nothing happens when
// all is to be calm.
func (m *maker) happensBefore(at time.Duration, kind scenario.EntryKind, op scenario.Op) {
	if at < m.calm {
		m.s.Events = append(m.s.Events, scenario.Event{At: at, Before: kind, Op: op})
	}
}
