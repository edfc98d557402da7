package timeline

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

// picture is the common part of all pictures of a run.
type picture struct {
	run *Recorder
	// last is the time of the last change.
	last time.Duration
	// nodes and groups have lanes. hiddenNodes and hiddenGroups have none.
	nodes, hiddenNodes   []*node
	groups, hiddenGroups []*group
}

// picture chooses the lanes and the scale. width is the width of a lane. breaks is the width of a
// break in the scale.
func (r *Recorder) picture(width, breaks int) (picture, drawing.Scale) {
	times := r.times()
	p := picture{run: r, last: slices.Max(times)}
	p.nodes, p.hiddenNodes = r.shownNodes()
	p.groups, p.hiddenGroups = r.shownGroups()
	return p, drawing.NewScale(r.window(p.last), width, times, breaks)
}

// nodeNames are the names of the nodes with lanes.
func (p picture) nodeNames() (names []string) {
	for _, n := range p.nodes {
		names = append(names, string(n.id))
	}
	return names
}

// groupNames are the names of the groups with lanes.
func (p picture) groupNames() (names []string) {
	for _, g := range p.groups {
		names = append(names, g.name())
	}
	return names
}

// verdict returns "OK", or "FAILED" with the violated guarantees.
func (p picture) verdict() (text string, well bool) {
	if len(p.run.violations) == 0 {
		return "OK", true
	}
	broken := make(map[string]bool)
	for _, v := range p.run.violations {
		broken[v.Guarantee] = true
	}
	return "FAILED " + strings.Join(slices.SortedFunc(maps.Keys(broken), natural), ", "), false
}

// facts are short facts about the run.
func (p picture) facts() []string {
	r := p.run
	var facts []string
	if r.options.Seed != 0 {
		facts = append(facts, fmt.Sprintf("seed %d", r.options.Seed))
	}
	end := max(r.end, r.last)
	length := scenario.DurationText(end.Round(time.Millisecond)) + " virtual"
	if p.last < end-end/8 {
		length += ", no change after " + drawing.Rounded(p.last)
	}
	facts = append(facts, length)
	if r.options.Servers > 0 {
		facts = append(facts, counted(r.options.Servers, "server"))
	}
	if r.applied == 1 {
		facts = append(facts, "1 entry")
	} else {
		facts = append(facts, fmt.Sprintf("%d entries", r.applied))
	}
	drains := 0
	for _, n := range r.nodeOrder {
		drains += len(n.drains)
	}
	return append(facts, counted(drains, "drain"))
}

// leftOutNodes counts the outcomes of the nodes without a lane.
func (p picture) leftOutNodes() string {
	counts := make(map[cluster.Outcome]int)
	for _, n := range p.hiddenNodes {
		counts[n.last().outcome]++
	}
	parts := make([]string, 0, len(counts))
	for _, o := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, outcomeText(counts[o], o))
	}
	return fmt.Sprintf("and %s: %s", counted(len(p.hiddenNodes), "more node"), strings.Join(parts, ", "))
}

// outcomeText counts nodes by outcome: "3 complete", "1 still running".
func outcomeText(n int, o cluster.Outcome) string {
	if o == cluster.OutcomeNone {
		return fmt.Sprintf("%d still running", n)
	}
	return fmt.Sprintf("%d %s", n, o)
}

// leftOutGroups counts the groups without a lane that were below their limits.
func (p picture) leftOutGroups() string {
	low := 0
	for _, g := range p.hiddenGroups {
		if g.lowest().below() {
			low++
		}
	}
	text := "none of them below its limit"
	if low > 0 {
		text = fmt.Sprintf("%d of them below their limits at some time", low)
	}
	return fmt.Sprintf("and %s, %s", counted(len(p.hiddenGroups), "more group"), text)
}

// moment is a time from which a value holds.
type moment struct{ at time.Duration }

func (m moment) since() time.Duration { return m.at }

// spans yields the values with their ends: the start of the next value, or end for the last one.
func spans[T interface{ since() time.Duration }](all []T, end time.Duration) iter.Seq2[T, time.Duration] {
	return func(yield func(T, time.Duration) bool) {
		for i, v := range all {
			to := end
			if i+1 < len(all) {
				to = all[i+1].since()
			}
			if !yield(v, to) {
				return
			}
		}
	}
}

// leftOnAllNodes returns the number of allocations left to drain on all nodes together, at each
// change.
func (r *Recorder) leftOnAllNodes() []count {
	var changes []count
	for _, n := range r.nodeOrder {
		before := 0
		for _, c := range n.left {
			changes = append(changes, count{c.moment, c.n - before})
			before = c.n
		}
	}
	slices.SortStableFunc(changes, func(a, b count) int { return cmp.Compare(a.at, b.at) })
	var all []count
	sum := 0
	for _, c := range changes {
		if sum += c.n; len(all) > 0 && all[len(all)-1].at == c.at {
			all[len(all)-1].n = sum
		} else {
			all = append(all, count{c.moment, sum})
		}
	}
	return all
}

// most is the largest of the counts.
func most(counts []count) int {
	most := 0
	for _, c := range counts {
		most = max(most, c.n)
	}
	return most
}
