package swarm

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// oddsOfSurge is the probability that replacements start before allocations stop. The other worlds draw what they drew
// without surges.
const oddsOfSurge = 0.25

// drawSurge draws the groups with a max_surge.
func drawSurge(m *population) {
	if !m.draft.has(surges) {
		return
	}
	d := m.draft.dice("surge")
	for j, g := range m.draft.s.EachGroup() {
		if j.Type != "" && j.Type != cluster.JobService || stopsFirst(m, g) || !d.odds(0.6) {
			continue
		}
		g.MaxSurge = one(d, 1, 1, 2, max(1, g.Count))
		if d.odds(0.5) {
			g.MaxParallel = new(one(d, 0, 1, 1, 2))
		}
		if d.odds(0.2) && g.Count > 1 && len(g.Volumes) == 0 {
			g.Distinct = true
		}
	}
}

// stopsFirst reports whether no max_surge is possible for a group: its data moves, or a volume has one user.
func stopsFirst(m *population, g *scenario.Group) bool {
	for _, use := range g.Volumes {
		access := m.draft.s.VolumeNamed(use).Access
		if use.PerAlloc || access != cluster.MultiNodeMultiWriter && access != cluster.MultiNodeReader {
			return true
		}
	}
	return g.Migrate
}

// drawMaxSurge draws the max_surge of a drain.
func (m *story) drawMaxSurge() int {
	if d := m.draft.dice(fmt.Sprintf("surge/drain/%d", len(m.draft.s.Events))); m.draft.has(surges) && d.odds(0.3) {
		return one(d, 1, 1, 2, 5)
	}
	return 0
}

// drawSurgeEdits draws jobs that get another max_surge, or lose it, while nodes drain, and allocations that fail. Some of
// these are replacements that stand by: they are on other nodes than the originals.
func (m *edits) drawSurgeEdits() {
	d := m.draft.dice("surge/edits")
	if !m.draft.has(surges) {
		return
	}
	for range d.between(0, 6) {
		if g := m.story.touched(d, m.population.services()); g != nil {
			name := m.drawName(d, g)
			name.Node = one(d, m.population.nodes...).id
			m.draft.happens(m.story.moment(d), &scenario.Exit{Alloc: name, Failed: d.odds(0.8)})
		}
	}
	if !d.odds(0.4) {
		return
	}
	for range d.between(1, 2) {
		if g := m.story.touched(d, m.population.services()); g != nil && !stopsFirst(m.population, m.population.specOf(g)) {
			surge := d.between(0, 2)
			m.draft.happens(m.story.moment(d), &scenario.Edit{Job: g.key.Job, Group: g.key.Name, MaxSurge: &surge})
		}
	}
}

// surgeRates are the rates of the events of surges.
func surgeRates() []Rate {
	return []Rate{
		{"surge/requested", "a drain requests a replacement", in(0.1, 0.1)},
		{"surge/moved", "an allocation is marked when its replacement is healthy", in(0.05, 0.05)},
		{"surge/by-drain", "the max_surge of a drain is above that of the group", in(0.03, 0.03)},
		{"surge/second-replacement", "the replacement beside an allocation has failed before, and another one is healthy", in(0.001, rare)},
		{"surge/withdrawn", "a cancel withdraws a request with its replacement placed", in(0.007, rare)},
		{"surge/standby-ended", "an allocation ends by itself with a replacement beside it", in(0.002, rare)},
		{"surge/standby-marked", "a replacement beside an allocation is on a draining node", in(0.001, rare)},
	}
}

// countRequest counts the events of a request for a replacement.
func countRequest(o *Observer, a shims.Applied, mark rules.Mark) {
	o.count("surge/requested", true)
	n, pace := a.Before.Node(mark.Node), cluster.Pace{}
	if j := a.Before.Job(mark.Group.Job); j != nil {
		pace, _ = cluster.PaceOf(j, mark.Group.Name)
	}
	o.count("surge/by-drain", n.Draining() && n.Drain.Strategy.MaxSurge > pace.MaxSurge)
}

// countReplaced counts the events of a mark with a replacement beside its allocation.
func countReplaced(o *Observer, a shims.Applied, mark rules.Mark) {
	alloc := a.Before.Alloc(mark.Alloc)
	if alloc == nil {
		return
	}
	o.count("surge/standby-marked", alloc.Standby)
	next := a.Before.Alloc(alloc.NextAllocation)
	moved := mark.Class == cluster.MarkPaced && next != nil && next.Standby
	o.count("surge/moved", moved)
	o.count("surge/second-replacement", moved && next.NextAllocation != "")
}

// countWithdrawn counts the cancels that withdraw requests.
func countWithdrawn(o *Observer, a shims.Applied, m *shims.NodeUpdateDrain) {
	n := a.Before.Node(m.Node)
	if m.Spec != nil || !n.Draining() || a.After.Node(m.Node).Draining() {
		return
	}
	for alloc := range a.Before.AllocsByNode(m.Node) {
		if cluster.SurgeRequested(alloc, n) && alloc.NextAllocation != "" && !alloc.ClientTerminal() {
			o.count("surge/withdrawn", true)
			return
		}
	}
}

// countEndedBeside counts the allocations that end by themselves while a replacement stands by.
func countEndedBeside(o *Observer, a shims.Applied, m *shims.AllocClientUpdate) {
	for _, r := range m.Reports {
		before, after := a.Before.Alloc(r.Alloc), a.After.Alloc(r.Alloc)
		if before == nil || after == nil || before.ClientTerminal() || !after.ClientTerminal() || before.Leaving() {
			continue
		}
		next := a.Before.Alloc(before.NextAllocation)
		o.count("surge/standby-ended", next != nil && next.Standby && !before.Standby)
	}
}
