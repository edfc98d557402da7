package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Facts are the final facts of a state, whoever came to it: how each drain ended and
// what is left on its node, by node and in the order of the drains, and how each group
// stands. They hold no times and no ids, which two runs of a scenario may differ in.
func Facts(state *statestore.Snapshot) []string {
	drains := slices.Collect(state.Drains())
	for n := range state.DrainingNodes() {
		drains = append(drains, n.Drain)
	}
	slices.SortFunc(drains, func(a, b *cluster.Drain) int {
		return cmp.Or(cmp.Compare(a.NodeID, b.NodeID), cmp.Compare(a.CreateIndex, b.CreateIndex))
	})
	var facts []string
	for _, d := range drains {
		facts = append(facts, drainFact(state, d))
	}
	for j := range state.Jobs() {
		for _, g := range j.TaskGroups {
			facts = append(facts, sim.Standing(state, cluster.GroupKey{Job: j.Key(), Name: g.Name}, g.Count))
		}
	}
	return facts
}

func drainFact(state *statestore.Snapshot, d *cluster.Drain) string {
	fact := fmt.Sprintf("%s %s", d.NodeID, cmp.Or(string(d.Outcome), "drains"))
	if d.StillStopping > 0 {
		fact += fmt.Sprintf(", %d still stopping", d.StillStopping)
	}
	if d.PurgedRunning > 0 {
		fact += fmt.Sprintf(", %d purged while running", d.PurgedRunning)
	}
	var left []string
	for a := range state.LiveAllocsByNode(d.NodeID) {
		if d.EndIndex == 0 || a.CreateIndex < d.EndIndex {
			left = append(left, a.Name)
		}
	}
	if slices.Sort(left); len(left) > 0 {
		fact += ", left: " + strings.Join(left, " ")
	}
	return fact
}
