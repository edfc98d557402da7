package swarm

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// edits draws changes of jobs and allocations, and events between plan and apply.
type edits struct{ *story }

// drawEdits draws new versions of jobs.
func (m *edits) drawEdits() {
	d := m.dice("edits")
	services := m.services()
	for _, kind := range []struct {
		is   trait
		draw func(dice, *group) *scenario.Edit
	}{{jobEdit, m.drawLimit}, {jobScale, m.drawScale}, {jobGroups, m.drawRegroup}} {
		for range m.often(d, kind.is) {
			if g := m.touched(d, services); g != nil {
				m.happens(m.moment(d), kind.draw(d, g))
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
	count := m.specOf(g).Count
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
	if len(m.jobOf(g).Groups) > 1 && d.odds(0.8) {
		e.Group = g.key.Name
	}
	return &e
}

func (m *edits) drawRegroup(d dice, g *group) *scenario.Edit {
	e := &scenario.Edit{Job: g.key.Job, Group: g.key.Name}
	if len(m.jobOf(g).Groups) > 1 && d.odds(0.6) {
		e.Remove = true
	} else {
		e.Rename = fmt.Sprintf("%s-%d", g.key.Name, d.between(2, 3))
	}
	return e
}

// drawEnds draws jobs that are stopped, purged or registered again.
func (m *edits) drawEnds() {
	d := m.dice("ends")
	for _, purge := range []bool{false, true} {
		is := jobStop
		if purge {
			is = jobPurge
		}
		for range m.often(d, is) {
			g := m.touched(d, m.groups)
			if g == nil {
				return
			}
			at := m.moment(d)
			m.happens(at, &scenario.Stop{Job: g.key.Job, Purge: purge})
			if d.odds(0.4) {
				m.happens(at+d.span(100*time.Millisecond, time.Minute), &scenario.Register{Job: g.key.Job})
			}
		}
	}
	for i := range m.s.Jobs {
		if j := &m.s.Jobs[i]; j.Unregistered {
			m.happens(m.moment(d), &scenario.Register{Job: j.Key})
		}
	}
	for range m.often(d, jobRegister) {
		if g := m.touched(d, m.groups); g != nil {
			m.happens(m.moment(d), &scenario.Register{Job: g.key.Job})
		}
	}
}

// drawExits draws allocations that end by themselves or are stopped.
func (m *edits) drawExits() {
	d := m.dice("exits")
	for range m.often(d, allocExit) * m.shape.several {
		if g := m.touched(d, m.groups); g != nil {
			m.happens(m.moment(d), &scenario.Exit{Alloc: m.drawName(d, g), Failed: d.odds(0.7)})
		}
	}
	for range m.often(d, allocStop) {
		if g := m.touched(d, m.groups); g != nil {
			m.happens(m.moment(d), &scenario.StopAlloc{Alloc: m.drawName(d, g)})
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
	d := m.dice("places")
	for range m.often(d, allocPlace) {
		if op := m.drawPlace(d); op != nil {
			m.happens(m.moment(d), op)
		}
	}
}

// drawPlace draws one more allocation of a group. Most such groups get a larger count. It returns nil
// if there is no group.
func (m *edits) drawPlace(d dice) *scenario.Place {
	g := m.touched(d, m.groups)
	if g == nil || len(m.specOf(g).Volumes) > 0 { // a plan that claims a volume needs the scheduler
		return nil
	}
	op := &scenario.Place{Alloc: scenario.Alloc{
		Group: g.key, Indexes: scenario.Indexes{First: g.next, Count: 1}, On: ids(m.drained(d)),
		Health: one(d, "none", "none", "good"), Age: d.span(time.Second, 10*time.Second),
	}}
	if d.odds(0.3) {
		op.Alloc.Client = "pending"
		op.Alloc.Health = "none"
	}
	if t := m.jobOf(g).Type; !t.EveryNode() && d.odds(0.7) {
		op.Count = ref(m.specOf(g).Count + 1)
	}
	g.next++
	return op
}
