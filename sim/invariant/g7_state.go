package invariant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G7 from state: a new leader, or a drainer that has lost all it remembered,
// reaches the same end from the state alone. At a quiet point it wants nothing
// that the running one has neither planned nor in flight. And a story that is told
// again with drainers that forget comes to the same facts.

// checkFresh finds what a drainer wants that remembers nothing and the running one
// has neither planned nor in flight. Of a group it is the number that counts: which
// of equal candidates go may depend on what was planned before.
func (j *progressJudge) checkFreshWants(m *snapshot, t *term, w Wants, planned map[cluster.AllocID]bool) {
	if j.options.MinInterval > 0 && m.at.Before(t.lastWrite.Add(j.options.MinInterval)) {
		return // a fresh drainer has no round behind it that it had to wait for
	}
	waiting := map[cluster.GroupKey]bool{}
	for _, n := range m.draining {
		if j.coalesces(m, n) {
			for _, a := range n.live {
				waiting[a.group.key] = true
			}
		}
	}
	wanted, has := map[cluster.GroupKey]int{}, map[cluster.GroupKey]int{}
	for id := range planned {
		if a := m.allocs[id]; a != nil {
			has[a.group.key]++
		}
	}
	for _, mark := range w.Marks {
		if j.waits(t, m.at, refusedItem{mark.Drain, mark.Alloc}) {
			continue
		}
		wanted[mark.Group]++
		about := Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group}
		switch {
		case planned[mark.Alloc] || t.marks[mark.Alloc] > 0:
		case waiting[mark.Group]:
		case withNode(mark.Class) || mark.Class == cluster.MarkGone:
			j.find(Forgotten, about, "a fresh drainer would mark it %s", mark.Class)
		case wanted[mark.Group] > has[mark.Group]:
			j.find(Forgotten, about, "a fresh drainer would mark %d of the group, and %d are planned", wanted[mark.Group], has[mark.Group])
		}
	}
	if t.inFlight > 0 {
		// A round is on its way, and what has become due since is gathered for the
		// next. Reports show which marks are; the rest is judged when the round is
		// over, by [Judge.checkProgress] too.
		return
	}
	for _, c := range w.Completions {
		if t.ends[c.Node] == 0 && !j.waits(t, m.at, refusedItem{drain: c.Drain}) && !t.failures.waits(&j.options, m.at) && !j.coalesces(m, m.node(c.Node)) {
			j.find(Forgotten, Violation{Drain: c.Drain, Node: c.Node}, "a fresh drainer would end the drain")
		}
	}
	for _, key := range w.Reevaluate {
		if !j.reevaluates(t, m.at, key) && !t.failures.waits(&j.options, m.at) {
			j.find(Forgotten, Violation{Group: key}, "a fresh drainer would have the group evaluated again")
		}
	}
}

// SameFacts finds that another run of the same story, with drainers that forget,
// say, came to another end. Both are the [Facts] of the last state.
func (j *Judge) SameFacts(now time.Time, want, got []string) {
	j.now = now
	for i := range max(len(want), len(got)) {
		w, g := "nothing", "nothing"
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			j.find(OtherEnd, Violation{}, "%q instead of %q", g, w)
			return
		}
	}
}

// Facts are what a run has come to, in an order of their own: how each drain
// ended, what it left behind on its node, and how the groups of the jobs stand.
// They name allocations by what they are and not by ids, which another run draws
// otherwise, and hold no times.
func Facts(s *statestore.Snapshot) []string {
	b := tablesOf(s)
	var facts []string
	for _, n := range b.draining {
		facts = append(facts, fmt.Sprintf("node %s drain %s runs%s", n.id, n.drain().ID, leftOn(n)))
	}
	for id, d := range b.records {
		fact := fmt.Sprintf("node %s drain %s ended %q", d.NodeID, id, d.Outcome)
		if d.StillStopping > 0 {
			fact += fmt.Sprintf(", %d left", d.StillStopping)
		}
		if d.PurgedRunning > 0 {
			fact += fmt.Sprintf(", %d purged while they ran", d.PurgedRunning)
		}
		facts = append(facts, fact)
	}
	for _, j := range b.jobs { //lint:order sorted below
		if j.row == nil {
			continue
		}
		for _, g := range j.row.TaskGroups {
			if g != nil {
				facts = append(facts, standing(b.group(cluster.GroupKey{Job: j.key, Name: g.Name}), g.Count))
			}
		}
	}
	slices.Sort(facts)
	return facts
}

// leftOn names what is live on a node.
func leftOn(n *node) string {
	if len(n.live) == 0 {
		return ""
	}
	var names []string
	for _, a := range n.live {
		names = append(names, a.row.Name)
	}
	slices.Sort(names)
	return ", left: " + strings.Join(names, " ")
}

// standing is how many of a group are as its owner wants them.
func standing(g *group, count int) string {
	running, healthy := 0, 0
	for _, a := range g.members {
		if a.row.DesiredStatus != "run" || a.row.ClientStatus != "running" {
			continue
		}
		running++
		if ok, _ := opinion.Verdict(a.row); ok {
			healthy++
		}
	}
	return fmt.Sprintf("group %s runs %d of %d, %d healthy", g.key, running, count, healthy)
}

// MarkFacts are the marks that are in the state, by drain, class and what they are
// on: more than [Facts], and the same only of runs that chose alike.
func MarkFacts(s *statestore.Snapshot) []string {
	var facts []string
	for a := range s.Allocs() {
		if t := a.DesiredTransition; t.Migrate && t.Drain != "" {
			facts = append(facts, fmt.Sprintf("drain %s marked %s %s/%s", t.Drain, t.Class, a.Namespace, a.Name))
		}
	}
	slices.Sort(facts)
	return facts
}
