package swarm

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// edits draws changes of jobs and allocations, and events between plan and apply.
type edits struct {
	draft      *draft
	population *population
	story      *story
}

// drawEdits draws new versions of jobs.
func (m *edits) drawEdits() {
	d := m.draft.dice("edits")
	services := m.population.services()
	for _, kind := range []struct {
		is   trait
		draw func(dice, *group) *scenario.Edit
	}{{jobEdit, m.drawLimit}, {jobScale, m.drawScale}, {jobGroups, m.drawRegroup}} {
		for range m.draft.often(d, kind.is) {
			if g := m.story.touched(d, services); g != nil {
				m.draft.happens(m.story.moment(d), kind.draw(d, g))
			}
		}
	}
}

func (m *edits) drawLimit(d dice, g *group) *scenario.Edit {
	limit := d.between(1, 3)
	if d.odds(0.2) {
		limit = 0
	}
	return m.edit(d, g, scenario.Edit{MaxParallel: &limit})
}

func (m *edits) drawScale(d dice, g *group) *scenario.Edit {
	count := m.population.specOf(g).Count
	switch draw := d.between(1, 10); {
	case draw <= 1:
		count = 0
	case draw <= 5:
		count = max(0, count-d.between(1, max(1, count/2)))
	default:
		count += d.between(1, 3)
	}
	return m.edit(d, g, scenario.Edit{Count: &count})
}

// edit returns an edit of the group or of all groups of its job.
func (m *edits) edit(d dice, g *group, e scenario.Edit) *scenario.Edit {
	e.Job = g.key.Job
	if len(m.population.jobOf(g).Groups) > 1 && d.odds(0.8) {
		e.Group = g.key.Name
	}
	return &e
}

func (m *edits) drawRegroup(d dice, g *group) *scenario.Edit {
	e := &scenario.Edit{Job: g.key.Job, Group: g.key.Name}
	if len(m.population.jobOf(g).Groups) > 1 && d.odds(0.6) {
		e.Remove = true
	} else {
		e.Rename = fmt.Sprintf("%s-%d", g.key.Name, d.between(2, 3))
	}
	return e
}

// drawEnds draws jobs that are stopped, purged or registered again.
func (m *edits) drawEnds() {
	d := m.draft.dice("ends")
	for _, purge := range []bool{false, true} {
		is := jobStop
		if purge {
			is = jobPurge
		}
		for range m.draft.often(d, is) {
			g := m.story.touched(d, m.population.groups)
			if g == nil {
				return
			}
			at := m.story.moment(d)
			m.draft.happens(at, &scenario.Stop{Job: g.key.Job, Purge: purge})
			if d.odds(0.4) {
				m.draft.happens(at+d.span(100*time.Millisecond, time.Minute), &scenario.Register{Job: g.key.Job})
			}
		}
	}
	for i := range m.draft.s.Jobs {
		if j := &m.draft.s.Jobs[i]; j.Unregistered {
			m.draft.happens(m.story.moment(d), &scenario.Register{Job: j.Key})
		}
	}
	for range m.draft.often(d, jobRegister) {
		if g := m.story.touched(d, m.population.groups); g != nil {
			m.draft.happens(m.story.moment(d), &scenario.Register{Job: g.key.Job})
		}
	}
}

// drawExits draws allocations that end by themselves or are stopped.
func (m *edits) drawExits() {
	d := m.draft.dice("exits")
	for range m.draft.often(d, allocExit) * m.draft.shape.several {
		if g := m.story.touched(d, m.population.groups); g != nil {
			m.draft.happens(m.story.moment(d), &scenario.Exit{Alloc: m.drawName(d, g), Failed: d.odds(0.7)})
		}
	}
	for range m.draft.often(d, allocStop) {
		if g := m.story.touched(d, m.population.groups); g != nil {
			m.draft.happens(m.story.moment(d), &scenario.StopAlloc{Alloc: m.drawName(d, g)})
		}
	}
}

// oddsOfLastFailures is the probability that a group has allocations that have failed ten times in a row.
const oddsOfLastFailures = 0.06

// drawLastFailures draws allocations whose predecessors failed, and which fail too. The scheduler places
// no other ones. The other worlds draw what they drew without them.
func (m *edits) drawLastFailures() {
	d := m.draft.dice("last-failures")
	if len(m.population.nodes) > manyNodes || !d.odds(oddsOfLastFailures) {
		return
	}
	g := m.story.touched(d, m.population.services())
	if g == nil || len(m.population.specOf(g).Volumes) > 0 { // the claims of the failed ones would still be there
		return
	}
	for i := range m.draft.s.Allocs {
		a := &m.draft.s.Allocs[i]
		if a.Group != g.key || a.Canary || a.Replaces != nil || a.Desired != "" || a.Client != "" {
			continue
		}
		a.Failures = one(d, 9, 10, 10)
		name := scenario.AllocName{Group: g.key, Index: a.Indexes.First}
		for range d.between(1, 2) {
			m.draft.happens(m.story.moment(d), &scenario.Exit{Alloc: name, Failed: true})
		}
	}
}

// oddsOfVersions is the probability that jobs get other tasks.
const oddsOfVersions = 0.2

// drawVersions draws new versions of jobs whose tasks are others, and how fast they come. The other worlds
// draw what they drew without them.
func (m *edits) drawVersions() {
	d := m.draft.dice("versions")
	if !d.odds(oddsOfVersions) {
		return
	}
	for range d.between(1, 4) {
		g := m.story.touched(d, m.population.groups)
		if g == nil {
			return
		}
		if spec := m.population.specOf(g); d.odds(0.7) && !m.population.jobOf(g).Type.ToCompletion() {
			spec.Update = new(one(d, 0, 1, 2, 2, 3, max(1, spec.Count)))
		}
		version := d.between(2, 4)
		at := m.story.moment(d)
		m.draft.happens(at, m.edit(d, g, scenario.Edit{Version: &version}))
		if d.odds(0.3) {
			next := version%4 + 1
			m.draft.happens(at+d.span(100*time.Millisecond, 2*time.Minute), &scenario.Edit{Job: g.key.Job, Version: &next})
		}
	}
}

// oddsOfPolicies is the probability that groups have reschedule policies.
const oddsOfPolicies = 0.2

// drawPolicies draws groups with reschedule policies, and allocations of them that fail. The other worlds draw
// what they drew without them.
func (m *edits) drawPolicies() {
	d := m.draft.dice("policies")
	if !d.odds(oddsOfPolicies) {
		return
	}
	for range d.between(1, 3) {
		g := m.story.touched(d, m.population.groups)
		if g == nil {
			return
		}
		if m.population.jobOf(g).Type.EveryNode() {
			continue
		}
		m.population.specOf(g).Reschedule = drawPolicy(d)
		for range d.between(1, 6) {
			m.draft.happens(m.story.moment(d), &scenario.Exit{Alloc: m.drawName(d, g), Failed: d.odds(0.9)})
		}
	}
}

func drawPolicy(d dice) *cluster.ReschedulePolicy {
	if d.odds(0.1) {
		return &cluster.ReschedulePolicy{}
	}
	p := &cluster.ReschedulePolicy{Delay: d.span(cluster.MinRescheduleDelay, time.Minute), DelayFunction: cluster.DelayConstant}
	if d.odds(0.6) {
		p.DelayFunction = one(d, cluster.DelayExponential, cluster.DelayFibonacci)
		p.MaxDelay = max(p.Delay, d.span(cluster.MinRescheduleDelay, 3*time.Minute))
	}
	if p.Unlimited = d.odds(0.5); !p.Unlimited {
		p.Attempts = d.between(1, 4)
		p.Interval = d.span(time.Duration(p.Attempts)*max(p.Delay, p.MaxDelay)+cluster.MinRescheduleInterval, time.Hour)
	}
	return p
}

// oddsOfIntervals is the probability that an allocation of a group fails again and again, and its failures leave the
// interval of the policy.
const oddsOfIntervals = 0.12

// drawIntervals draws a group whose policy permits few attempts within a short interval, and failures of one allocation.
// Some come within the interval and some after it. The run goes on, because a group that stays short shows itself late. The
// other worlds draw what they drew without them.
func (m *edits) drawIntervals() {
	d := m.draft.dice("intervals")
	g := m.story.touched(d, slices.DeleteFunc(slices.Clone(m.population.groups), func(g *group) bool {
		return m.population.jobOf(g).Type.EveryNode() || m.population.specOf(g).Count == 0 || m.population.specOf(g).Reschedule != nil
	}))
	if g == nil || !d.odds(oddsOfIntervals) {
		return
	}
	p := &cluster.ReschedulePolicy{Attempts: d.between(1, 2), Delay: d.span(cluster.MinRescheduleDelay, 7*time.Second), DelayFunction: cluster.DelayConstant}
	p.Interval = d.span(max(cluster.MinRescheduleInterval, time.Duration(p.Attempts)*p.Delay), 30*time.Second)
	m.population.specOf(g).Reschedule = p
	m.draft.lasting = m.draft.lasting || !m.draft.real() // tasks of a real client would cost too much
	name := scenario.AllocName{Group: g.key, Index: d.IntN(g.next)}
	for at := d.at(0, m.draft.calm/4); at < m.draft.calm; at += p.Delay {
		m.draft.happens(at, &scenario.Exit{Alloc: name, Failed: true})
		if at += d.span(2*time.Second, p.Interval/2); d.odds(0.7) {
			at += p.Interval
		}
	}
}

// drawName draws an allocation of the group, with or without the node on which it began.
func (m *edits) drawName(d dice, g *group) scenario.AllocName {
	index := d.IntN(g.next)
	name := scenario.AllocName{Group: g.key, Index: index}
	if index < len(g.on) && d.odds(0.3) {
		name.Node = g.on[index]
	}
	return name
}

// drawPlaces draws late placements on draining nodes.
func (m *edits) drawPlaces() {
	d := m.draft.dice("places")
	for range m.draft.often(d, allocPlace) {
		if op := m.drawPlace(d); op != nil {
			m.draft.happens(m.story.moment(d), op)
		}
	}
}

// drawPlace draws one more allocation of a group. Most such groups get a larger count. It returns nil
// if there is no group.
func (m *edits) drawPlace(d dice) *scenario.Place {
	g := m.story.touched(d, m.population.groups)
	if g == nil || len(m.population.specOf(g).Volumes) > 0 { // a plan that claims a volume needs the scheduler
		return nil
	}
	op := &scenario.Place{Alloc: scenario.Alloc{
		Group: g.key, Indexes: scenario.Indexes{First: g.next, Count: 1}, On: ids(m.story.drained(d)),
		Health: one(d, "none", "none", "good"), Age: d.span(time.Second, 10*time.Second),
	}}
	if d.odds(0.3) {
		op.Alloc.Client = "pending"
		op.Alloc.Health = "none"
	}
	if t := m.population.jobOf(g).Type; !t.EveryNode() && d.odds(0.7) {
		op.Count = new(m.population.specOf(g).Count + 1)
	}
	g.next++
	return op
}
