package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// drawServers draws the servers and the delays between them.
func (m *draft) drawServers(size Size) {
	d := m.dice("servers")
	c := scenario.Cluster{Servers: one(d, 1, 2, 3, 3, 3, 3, 3, 4, 5, 5)}
	// Replicas apply every entry again, each to a store of its own. In a large world this costs too
	// much and finds no more.
	c.Replicas = d.odds(0.05) && size != Large
	if c.Replicas {
		c.Servers = d.between(2, 3) // each catches up at the end, and two differ as well as five
	}
	c.Commit = d.ranging(time.Millisecond, 20*time.Millisecond)
	c.Establish = d.ranging(10*time.Millisecond, time.Second)
	c.Schedule = d.ranging(time.Millisecond, 50*time.Millisecond)
	if d.odds(0.5) {
		c.Wake = d.ranging(time.Millisecond, 5*time.Millisecond)
	}
	if m.has(slowWays) {
		slow := func(r *scenario.Range, least, most time.Duration) {
			if m.shows(d, slowWays) {
				*r = d.ranging(least, most)
			}
		}
		slow(&c.Commit, 20*time.Millisecond, 2*time.Second)
		slow(&c.Establish, time.Second, 20*time.Second)
		slow(&c.Schedule, 100*time.Millisecond, 10*time.Second)
		slow(&c.Wake, 10*time.Millisecond, time.Second)
		slow(&c.Late, time.Second, 30*time.Second)
	}
	c.Clients = m.s.Cluster.Clients
	m.s.Cluster = c
	m.drawGather(size)
	m.drawCollect()
}

// oddsOfCollecting is the probability that the leader deletes ended work.
const oddsOfCollecting = 0.15

// drawCollect draws the age at which the leader deletes ended work. Short ages delete rows while
// drains, plans and replacements still need others of the same job.
func (m *draft) drawCollect() {
	if d := m.dice("collect"); d.odds(oddsOfCollecting) {
		m.s.Cluster.Collect = d.span(500*time.Millisecond, time.Minute)
	}
}

// drawGather draws how long clients gather reports, so that one entry holds several. In a few small
// worlds each report is an entry. Elsewhere reports would be most of the entries.
func (m *draft) drawGather(size Size) {
	d := m.dice("gather")
	switch {
	case size == Large:
		m.s.Cluster.Gather = one(d, 200*time.Millisecond, time.Second, time.Second)
	case size == Medium || !d.odds(0.1):
		m.s.Cluster.Gather = one(d, 200*time.Millisecond, time.Second, 2*time.Second, 2*time.Second)
	}
	if m.real() { // a real client reports each event of each task
		m.s.Cluster.Gather = max(m.s.Cluster.Gather, time.Second)
	}
}

// drawDrainer draws the drainer's configuration.
func (m *draft) drawDrainer() {
	c := &m.s.Drainer
	if m.has(tunedDrainer) {
		m.tune(c, m.dice("drainer"))
	}
	if m.has(policies) {
		m.drawPolicies(&c.Policy, m.dice("policies"))
	}
}

func (m *draft) tune(c *drainer.NodeDrainerConfig, d dice) {
	tuned := func(set func()) {
		if m.shows(d, tunedDrainer) {
			set()
		}
	}
	tuned(func() { c.MaxIDsPerEntry = d.within(m.shape.ids) })
	tuned(func() { c.MaxBytesPerEntry = d.between(4<<10, 8<<10) })
	tuned(func() { c.MaxInFlight = d.between(1, 4) })
	tuned(func() { c.StateQueriesPerSecond = one(d, 0.5, 1, 2, 5, 20) })
	tuned(func() { c.MinWriteInterval = d.span(50*time.Millisecond, 5*time.Second) })
	tuned(func() { c.DeadlineCoalesce = one(d, -1, d.span(100*time.Millisecond, 5*time.Second)) })
	tuned(func() { c.Retry.Base = d.span(10*time.Millisecond, time.Second) })
	tuned(func() { c.Retry.Max = max(time.Second, c.Retry.Base) + d.span(100*time.Millisecond, 30*time.Second) })
}

func (m *draft) drawPolicies(c *rules.Policy, d dice) {
	chosen := func(set func()) {
		if m.shows(d, policies) {
			set()
		}
	}
	chosen(func() { c.HealthGrace = d.span(time.Second, 30*time.Second) })
	chosen(func() { c.StopMargin = d.span(time.Second, 30*time.Second) })
	chosen(func() { c.BelowBudget = rules.BelowBudgetProceed })
	chosen(func() { c.PluginsAfterDeadline = rules.PluginsAfterStop })
	chosen(func() {
		c.Completion = one(d, rules.CompletionReplaced, rules.CompletionMigrated, rules.CompletionMarked)
	})
}
