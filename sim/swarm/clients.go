package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// clients draws the behaviour of allocations.
type clients struct {
	draft      *draft
	population *population
	story      *story
}

// drawClients draws the behaviour of all allocations, then the exceptions.
func (m *clients) drawClients() {
	d := m.draft.dice("clients")
	slow := time.Second
	if m.draft.has(slowClients) {
		slow = one(d, 5*time.Second, 20*time.Second)
	}
	all := scenario.Client{
		Start: m.usually(d, 50*time.Millisecond, 2*slow),
		Stop:  m.usually(d, 50*time.Millisecond, 3*slow),
	}
	if m.draft.has(disks) || m.draft.moving {
		all.Copy = m.usually(d, 100*time.Millisecond, 10*slow)
	}
	m.draft.s.Clients = append(m.draft.s.Clients, all)
	m.drawRuns()
	m.drawTail()
	m.drawNeverGood()
	m.drawNeverStop()
	m.drawChangingHealth()
	m.drawCrashLoops()
}

// usually draws how long something takes for all allocations. In a large world it is one time: an
// allocation with a time of its own costs an entry of its own.
func (m *clients) usually(d dice, least, most time.Duration) *scenario.Range {
	r := d.ranging(least, most)
	if len(m.population.nodes) > manyNodes {
		r.Max = r.Min
	}
	return &r
}

const manyNodes = 500

// drawRuns draws how long batch work runs. Some of it, and batch work on draining nodes, ends while
// faults last. The rest never ends.
func (m *clients) drawRuns() {
	d := m.draft.dice("clients/run")
	batch := false
	for i := range m.draft.s.Jobs {
		j := &m.draft.s.Jobs[i]
		if !j.Type.ToCompletion() {
			continue
		}
		batch = true
		run := never()
		if len(m.population.nodes) <= fewNodes && d.odds(0.25) {
			run = new(d.ranging(shortRun, longRun))
		}
		m.draft.s.Clients = append(m.draft.s.Clients, scenario.Client{Match: scenario.Selector{Job: j.Key}, Run: run})
	}
	for _, e := range m.story.drains {
		if batch && d.odds(0.8) {
			m.draft.s.Clients = append(m.draft.s.Clients, scenario.Client{
				Match: scenario.Selector{Node: e.node}, Run: new(d.ranging(shortRun, longRun)),
			})
		}
	}
}

// Bounds of how long batch work runs that ends.
const (
	shortRun = 5 * time.Second
	longRun  = 8 * time.Minute
)

func never() *scenario.Range { return &scenario.Range{Min: scenario.Never, Max: scenario.Never} }

// drawTail draws groups and nodes that are far slower than the others.
func (m *clients) drawTail() {
	if !m.draft.has(heavyTail) {
		return
	}
	d := m.draft.dice("clients/tail")
	for _, g := range some(d, m.draft.times(d, heavyTail), m.population.groups) {
		c := scenario.Client{Match: m.population.selects(g)}
		if d.odds(0.5) {
			c.Match.Indexes = scenario.Indexes{First: d.between(0, g.next-1), Count: d.between(1, 3)}
		}
		c.Stop = new(d.ranging(10*time.Second, 4*time.Minute))
		if d.odds(0.5) {
			c.Start = new(d.ranging(5*time.Second, time.Minute))
		}
		m.draft.s.Clients = append(m.draft.s.Clients, c)
	}
	for _, n := range some(d, m.draft.times(d, heavyTail), m.population.nodes) {
		m.draft.s.Clients = append(m.draft.s.Clients, scenario.Client{
			Match: scenario.Selector{Node: n.id}, Stop: new(d.ranging(5*time.Second, 2*time.Minute)),
		})
	}
}

// drawNeverGood draws replacements that are judged unhealthy, or not at all.
func (m *clients) drawNeverGood() {
	if !m.draft.has(neverGood) {
		return
	}
	d := m.draft.dice("clients/never-good")
	for _, g := range some(d, m.draft.times(d, neverGood), m.population.services()) {
		c := scenario.Client{Match: m.population.selects(g)}
		c.Match.Replacement = true
		if d.odds(0.4) {
			c.Verdict = never()
		} else {
			c.Unhealthy = new(d.share(20, 100))
		}
		m.draft.s.Clients = append(m.draft.s.Clients, c)
	}
	if d.odds(0.5) {
		all := scenario.Client{Match: scenario.Selector{Replacement: true}, Unhealthy: new(d.share(1, 10))}
		m.draft.s.Clients = append(m.draft.s.Clients, all)
	}
}

// drawNeverStop draws allocations that never stop.
func (m *clients) drawNeverStop() {
	if !m.draft.has(neverStop) {
		return
	}
	d := m.draft.dice("clients/never-stop")
	for _, g := range some(d, m.draft.times(d, neverStop), m.population.groups) {
		c := scenario.Client{Match: m.population.selects(g), Stop: never()}
		c.Match.Indexes = scenario.Indexes{First: d.between(0, g.next-1), Count: 1}
		m.draft.s.Clients = append(m.draft.s.Clients, c)
	}
}

// oddsOfChangingHealth is the probability that verdicts change.
const oddsOfChangingHealth = 0.1

// drawChangingHealth draws groups whose allocations become unhealthy, most of them only for a time.
// Allocations with a verdict at the beginning count from then, so some change while nodes drain.
func (m *clients) drawChangingHealth() {
	d := m.draft.dice("clients/changing-health")
	if !d.odds(oddsOfChangingHealth) {
		return
	}
	for _, g := range some(d, d.between(1, 2), m.population.services()) {
		c := scenario.Client{Match: m.population.selects(g), Worsen: new(d.ranging(time.Second, time.Minute))}
		if d.odds(0.8) {
			c.Recover = new(d.ranging(500*time.Millisecond, time.Minute))
		}
		m.draft.s.Clients = append(m.draft.s.Clients, c)
	}
}

// The probabilities that tasks crash again and again, in worlds with simulated and with real clients.
const (
	oddsOfCrashLoops     = 0.08
	oddsOfRealCrashLoops = 0.3
)

// drawCrashLoops draws a group whose tasks crash again and again, on all nodes or on one. Half of them
// restart without a limit. The other worlds draw what they drew without crashes.
func (m *clients) drawCrashLoops() {
	d := m.draft.dice("clients/crash-loops")
	odds := oddsOfCrashLoops
	if m.draft.real() {
		odds = oddsOfRealCrashLoops
	}
	if len(m.population.nodes) > manyNodes || !d.odds(odds) {
		return
	}
	for _, g := range some(d, 1, m.population.services()) {
		c := scenario.Client{Match: m.population.selects(g), Crash: new(d.ranging(3*time.Second, 40*time.Second))}
		if d.odds(0.5) {
			c.Match.Node = m.population.nodes[d.between(0, len(m.population.nodes)-1)].id
		}
		m.draft.s.Clients = append(m.draft.s.Clients, c)
		restart := d.span(time.Second, 15*time.Second)
		if !d.odds(0.5) {
			continue
		}
		for j, declared := range m.draft.s.EachGroup() {
			if j.Key == g.key.Job && declared.Name == g.key.Name {
				declared.Restart = restart
			}
		}
	}
}

func (m *population) selects(g *group) scenario.Selector {
	return scenario.Selector{Job: g.key.Job, Group: g.key.Name}
}

// services are the groups of service jobs.
func (m *population) services() []*group {
	var groups []*group
	for _, g := range m.groups {
		if t := m.jobOf(g).Type; t == "" || t == cluster.JobService {
			groups = append(groups, g)
		}
	}
	return groups
}
