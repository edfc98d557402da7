package swarm

import (
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// oddsOfServices is the probability that groups of a world have services. The other worlds draw what they drew without.
const oddsOfServices = 0.25

// oddsOfServiceEdits is the probability that a world with services has new versions of them.
const oddsOfServiceEdits = 0.4

// drawServices lets groups have services, and with real clients checks whose targets fail. Only a real client restarts a
// task. With simulated clients a check lets their verdicts decide about the instances.
func (m *story) drawServices() {
	d := m.draft.dice("services")
	if len(m.population.nodes) > manyNodes || !d.odds(oddsOfServices) {
		return
	}
	var served, checked []*group
	for _, g := range m.population.groups {
		spec := m.population.specOf(g)
		if spec.Plugin || !d.odds(0.7) {
			continue
		}
		spec.Service = true
		served = append(served, g)
		if !m.population.jobOf(g).Type.ToCompletion() && d.odds(0.7) {
			spec.Check = m.drawCheck(d)
			checked = append(checked, g)
		}
	}
	if len(served) > 0 && d.odds(oddsOfServiceEdits) {
		m.drawServiceEdits(d, served)
	}
	if len(checked) > 0 && m.draft.real() {
		m.drawTargets(d, checked)
	}
}

// drawServiceEdits draws new versions of services. Some have other tasks too.
func (m *story) drawServiceEdits(d dice, served []*group) {
	changes := &edits{m.draft, m.population, m}
	for range d.between(1, 3) {
		e := scenario.Edit{Service: new(d.between(2, 4))}
		if d.odds(0.2) {
			e.Version = new(d.between(2, 4))
		}
		m.draft.happens(m.moment(d), changes.edit(d, m.touched(d, served), e))
	}
}

func (m *story) drawCheck(d dice) *scenario.Check {
	c := &scenario.Check{Interval: d.span(time.Second, 15*time.Second), Timeout: d.span(time.Second, 10*time.Second), Ignored: d.odds(0.15)}
	if d.odds(0.5) {
		c.Limit, c.Grace = d.between(1, 4), one(d, 0, d.span(time.Second, 30*time.Second))
	}
	return c
}

// drawTargets draws targets that fail or hang. Most pass again soon, and some others never do.
func (m *story) drawTargets(d dice, checked []*group) {
	for range d.between(1, 4) {
		g := m.touched(d, checked)
		match := scenario.Selector{Job: g.key.Job, Group: g.key.Name, Replacement: d.odds(0.3)}
		if d.odds(0.4) {
			match.Node = one(d, m.population.nodes...).id
		}
		at := m.moment(d)
		m.draft.happens(at, &scenario.TargetChange{Match: match, Change: one(d, scenario.TargetFails, scenario.TargetHangs)})
		if d.odds(0.8) {
			m.draft.happens(at+d.span(2*time.Second, 2*time.Minute), &scenario.TargetChange{Match: match, Change: scenario.TargetPasses})
		}
	}
}

// gives reports whether a registration gives the services of a new version to an allocation that runs.
func gives(a shims.Applied, m *shims.JobRegister) bool {
	for row := range a.After.AllocsByJob(m.Job.Key()) {
		if before := a.Before.Alloc(row.ID); before != nil && before.Job != row.Job {
			return true
		}
	}
	return false
}

// checked counts what checks do, and the allocations that have run for their longest time.
func (o *Observer) checked(a shims.Applied, m *shims.AllocClientUpdate) {
	for _, r := range m.Reports {
		if r.TaskStates == nil {
			continue
		}
		for _, t := range r.TaskStates.Tasks {
			for _, e := range t.Events {
				o.count("alloc/expired", e.Type == "Expired")
				if !strings.HasPrefix(e.Message, "The check ") {
					continue
				}
				o.count("check/unhealthy", e.Type == "Alloc Unhealthy" && draining(a.After) > 0)
				o.count("check/restart", e.Type != "Alloc Unhealthy")
			}
		}
	}
}
