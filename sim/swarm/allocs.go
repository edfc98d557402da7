package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// place draws the first allocations of a job.
func (m *population) place(d dice, job int, t cluster.JobType) {
	j := &m.draft.s.Jobs[job]
	for i := range j.Groups {
		spec := &j.Groups[i]
		g := &group{job: job, key: cluster.GroupKey{Job: j.Key, Name: spec.Name}, at: i}
		if t.EveryNode() {
			m.placeEverywhere(d, g, spec)
		} else {
			m.placeCount(d, g, spec, t)
		}
		if len(g.on) > 0 {
			m.groups = append(m.groups, g)
		}
	}
}

// placeEverywhere places one allocation on each node.
func (m *population) placeEverywhere(d dice, g *group, spec *scenario.Group) {
	var on []*node
	for _, n := range m.nodes {
		if fits(spec.Classes, n.class) && !(m.draft.shows(d, missing) && d.odds(0.2)) {
			n.load++
			on = append(on, n)
		}
	}
	m.add(g, spec, on, scenario.Alloc{})
}

// placeCount places as many allocations as the count, or fewer, and then some with unusual properties.
func (m *population) placeCount(d dice, g *group, spec *scenario.Group, t cluster.JobType) {
	left := spec.Count
	if left == 0 && d.odds(0.7) {
		left = d.between(1, 3) // they ran before the count was zero
	}
	if m.draft.shows(d, missing) && d.odds(0.3) {
		left -= d.between(1, max(1, left))
	}
	var odd []scenario.Alloc
	for _, kind := range m.oddAllocs(d, spec, t) {
		for n := d.between(1, 2); n > 0 && left > 0; n-- {
			odd = append(odd, kind)
			left--
		}
	}
	m.add(g, spec, m.spots(d, max(0, left), spec.Classes), scenario.Alloc{})
	for _, kind := range odd {
		m.add(g, spec, m.spots(d, 1, spec.Classes), kind)
	}
	if t == cluster.JobService && m.draft.shows(d, canaries) && d.odds(0.4) {
		canary := scenario.Alloc{Canary: true, Health: one(d, "good", "good", "bad", "none"), Age: d.span(time.Second, 10*time.Minute)}
		m.add(g, spec, m.spots(d, d.between(1, 2), spec.Classes), canary)
	}
	if m.draft.shows(d, ended) && d.odds(0.5) {
		m.addEnded(d, g, spec)
	}
	if m.draft.shows(d, orphans) && d.odds(0.2) && len(m.spare) > 0 {
		m.addOn(g, []cluster.NodeID{one(d, m.spare...)}, scenario.Alloc{})
	}
}

// oddAllocs draws the kinds of odd allocations of a group.
func (m *population) oddAllocs(d dice, spec *scenario.Group, t cluster.JobType) []scenario.Alloc {
	var kinds []scenario.Alloc
	odd := func(is trait, a scenario.Alloc) {
		if m.draft.shows(d, is) && d.odds(0.4) {
			kinds = append(kinds, a)
		}
	}
	if t == cluster.JobService {
		odd(unhealthy, scenario.Alloc{Health: "bad"})
		due := spec.HealthyDeadline
		if due == 0 {
			due = cluster.DefaultHealthyDeadline
		}
		age := d.span(time.Second, due)
		if d.odds(0.3) {
			age = due + d.span(time.Second, time.Minute)
		}
		odd(unjudged, scenario.Alloc{Health: "none", Age: age})
	}
	odd(stopping, scenario.Alloc{Desired: one(d, cluster.DesiredStop, cluster.DesiredStop, cluster.DesiredEvict)})
	odd(othersMarks, scenario.Alloc{Marked: true})
	if d.odds(0.1) {
		odd(unjudged, scenario.Alloc{Client: cluster.ClientPending, Health: "none", Age: d.span(time.Second, time.Minute)})
	}
	return kinds
}

// addEnded adds an ended allocation, and perhaps its recent replacement.
func (m *population) addEnded(d dice, g *group, spec *scenario.Group) {
	gone := scenario.Alloc{Desired: cluster.DesiredStop, Client: one(d, cluster.ClientComplete, cluster.ClientFailed, cluster.ClientLost)}
	index := g.next
	m.add(g, spec, m.spots(d, 1, spec.Classes), gone)
	if g.next == index || d.odds(0.5) {
		return
	}
	m.add(g, spec, m.spots(d, 1, spec.Classes), scenario.Alloc{
		Replaces: new(index), Health: one(d, "good", "bad", "none"), Age: d.span(time.Second, time.Minute),
	})
}

// add adds equal allocations, one on each of the nodes.
func (m *population) add(g *group, spec *scenario.Group, on []*node, like scenario.Alloc) {
	ids := make([]cluster.NodeID, len(on))
	for i, n := range on {
		ids[i] = n.id
		n.cpu += spec.CPU
	}
	m.addOn(g, ids, like)
}

func (m *population) addOn(g *group, on []cluster.NodeID, like scenario.Alloc) {
	if len(on) == 0 {
		return
	}
	like.Group, like.On = g.key, on
	like.Indexes = scenario.Indexes{First: g.next, Count: len(on)}
	m.draft.s.Allocs = append(m.draft.s.Allocs, like)
	g.on = append(g.on, on...)
	g.next += len(on)
	m.allocs += len(on)
}
