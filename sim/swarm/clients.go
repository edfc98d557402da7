package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// drawClients draws how allocations fare: all at first, then those that fare
// otherwise.
func (m *maker) drawClients() {
	d := m.dice("clients")
	slow := time.Second
	if m.has(slowClients) {
		slow = one(d, 5*time.Second, 20*time.Second)
	}
	start := d.ranging(50*time.Millisecond, 2*slow)
	stop := d.ranging(50*time.Millisecond, 3*slow)
	all := scenario.Client{Start: &start, Stop: &stop}
	if m.has(disks) {
		all.Copy = ref(d.ranging(100*time.Millisecond, 10*slow))
	}
	m.s.Clients = append(m.s.Clients, all)
	m.drawRuns()
	m.drawTail()
	m.drawNeverGood()
	m.drawNeverStop()
}

// drawRuns draws how long batch work runs.
func (m *maker) drawRuns() {
	d := m.dice("clients/run")
	for i := range m.s.Jobs {
		if j := &m.s.Jobs[i]; j.Type.ToCompletion() {
			m.s.Clients = append(m.s.Clients, scenario.Client{
				Match: scenario.Selector{Job: j.Key}, Run: ref(d.ranging(5*time.Second, 10*time.Minute)),
			})
		}
	}
}

// drawTail draws what is far slower than all the rest.
func (m *maker) drawTail() {
	if !m.has(heavyTail) {
		return
	}
	d := m.dice("clients/tail")
	for _, g := range some(d, m.times(d, heavyTail), m.groups) {
		c := scenario.Client{Match: m.selects(g)}
		if d.odds(0.5) {
			c.Match.Indexes = scenario.Indexes{First: d.between(0, g.next-1), Count: d.between(1, 3)}
		}
		c.Stop = ref(d.ranging(10*time.Second, 4*time.Minute))
		if d.odds(0.5) {
			c.Start = ref(d.ranging(5*time.Second, time.Minute))
		}
		m.s.Clients = append(m.s.Clients, c)
	}
	for _, n := range some(d, m.times(d, heavyTail), m.nodes) {
		m.s.Clients = append(m.s.Clients, scenario.Client{
			Match: scenario.Selector{Node: n.id}, Stop: ref(d.ranging(5*time.Second, 2*time.Minute)),
		})
	}
}

// drawNeverGood draws replacements that are judged unhealthy, or not at all.
func (m *maker) drawNeverGood() {
	if !m.has(neverGood) {
		return
	}
	d := m.dice("clients/never-good")
	for _, g := range some(d, m.times(d, neverGood), m.services()) {
		c := scenario.Client{Match: m.selects(g)}
		c.Match.Replacement = true
		if d.odds(0.4) {
			c.Verdict = ref(scenario.Range{Min: scenario.Never, Max: scenario.Never})
		} else {
			c.Unhealthy = ref(d.share(20, 100))
		}
		m.s.Clients = append(m.s.Clients, c)
	}
	if d.odds(0.5) {
		all := scenario.Client{Match: scenario.Selector{Replacement: true}, Unhealthy: ref(d.share(1, 10))}
		m.s.Clients = append(m.s.Clients, all)
	}
}

// drawNeverStop draws what does not stop, whatever it is told.
func (m *maker) drawNeverStop() {
	if !m.has(neverStop) {
		return
	}
	d := m.dice("clients/never-stop")
	for _, g := range some(d, m.times(d, neverStop), m.groups) {
		c := scenario.Client{Match: m.selects(g), Stop: ref(scenario.Range{Min: scenario.Never, Max: scenario.Never})}
		c.Match.Indexes = scenario.Indexes{First: d.between(0, g.next-1), Count: 1}
		m.s.Clients = append(m.s.Clients, c)
	}
}

func (m *maker) selects(g *group) scenario.Selector {
	return scenario.Selector{Job: g.key.Job, Group: g.key.Name}
}

// services are the groups of service jobs.
func (m *maker) services() []*group {
	var groups []*group
	for _, g := range m.groups {
		if t := m.jobOf(g).Type; t == "" || t == cluster.JobService {
			groups = append(groups, g)
		}
	}
	return groups
}
