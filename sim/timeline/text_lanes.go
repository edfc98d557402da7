package timeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

// leaderLane writes the terms of the leaders.
func (t *text) leaderLane() {
	if len(t.run.terms) == 0 {
		return
	}
	cells := t.Blank()
	for term, end := range spans(t.run.terms, -1) {
		from, to := t.Scale.Column(term.at), len(cells)
		if end >= 0 {
			to = t.Scale.Column(end)
		}
		name := []rune(serverName(term.server))
		for x := from; x < to; x++ {
			cells[x] = t.Glyphs.Line
		}
		if from > 0 {
			cells[from] = t.Glyphs.Turn
			from++
		}
		if to-from >= len(name) {
			copy(cells[from:], name)
		}
	}
	t.Lane("leader", "", cells, "")
}

// maxFaultLanes is the largest number of lanes of simultaneous faults.
const maxFaultLanes = 4

// faultLanes writes a letter for each fault, in the first free lane.
func (t *text) faultLanes() {
	t.keys = faultKeys(t.run.faults)
	var lanes [][]rune
	for _, f := range t.run.faults {
		from, to := t.Scale.Column(f.at), t.Scale.Column(f.until)
		for i := 0; ; i++ {
			if i == maxFaultLanes {
				lanes[i-1][from] = t.Glyphs.More
				break
			}
			if i == len(lanes) {
				lanes = append(lanes, t.Blank())
			}
			if t.strike(lanes[i], from, to, t.keys[f.name]) {
				break
			}
		}
	}
	label := "faults"
	for _, cells := range lanes {
		t.Lane(label, "", cells, "")
		label = ""
	}
}

// strike writes a fault into a lane, and reports whether the lane has space for it. It draws equal
// faults at one place once.
func (t *text) strike(cells []rune, from, to int, key rune) bool {
	if from == to && cells[from] == key {
		return true
	}
	if slices.ContainsFunc(cells[from:to+1], func(c rune) bool { return c != ' ' }) {
		return false
	}
	for x := from + 1; x <= to; x++ {
		cells[x] = t.Glyphs.Line
	}
	cells[from] = key
	return true
}

// nodeLanes writes the number of allocations left to drain on each node.
func (t *text) nodeLanes() {
	if len(t.nodes) == 0 {
		return
	}
	t.Lane("nodes", "to go", t.Blank(), "took")
	for _, n := range t.nodes {
		t.nodeLane(n)
	}
	if len(t.hiddenNodes) == 0 {
		return
	}
	left := t.run.leftOnAllNodes()
	cells := t.Blank()
	t.fillBars(cells, left, most(left), t.Scale.End)
	t.Lane("all nodes", strconv.Itoa(most(left)), cells, "")
	t.Wrap("  ", t.leftOutNodes())
}

func (t *text) nodeLane(n *node) {
	cells := t.Blank()
	free := 0 // the first cell after the last drain
	for _, d := range n.drains {
		end := t.Scale.End
		if d.outcome != cluster.OutcomeNone {
			end = d.end
		}
		during := cells[:t.Scale.Column(end)+1]
		kept := slices.Clone(during[:free])
		t.fillBars(during, n.leftDuring(d), n.most(), end)
		copy(during, kept)
		if d.outcome != cluster.OutcomeNone {
			t.drawnOutcomes[d.outcome] = true
			cells[len(during)-1] = t.Glyphs.End(d.outcome)
			free = len(during)
		}
	}
	t.Lane(string(n.id), strconv.Itoa(n.main().initially), cells, took(n.main()))
}

// fillBars draws counts as bars. The last one lasts until the end.
func (t *text) fillBars(cells []rune, counts []count, whole int, end time.Duration) {
	for c, end := range spans(counts, end) {
		to := min(t.Scale.Column(end), len(cells)-1)
		for x := t.Scale.Column(c.at); x <= to; x++ {
			cells[x] = t.Glyphs.Bar(c.n, whole)
		}
	}
}

// groupLanes writes the room of each group.
func (t *text) groupLanes() {
	if len(t.groups) == 0 {
		return
	}
	t.Lane("groups", "limit", t.Blank(), "lowest")
	for _, g := range t.groups {
		t.groupLane(g)
	}
	if len(t.hiddenGroups) > 0 {
		t.Wrap("  ", t.leftOutGroups())
	}
}

// groupLane writes the least room of a group in each column.
func (t *text) groupLane(g *group) {
	cells := t.Blank()
	worst := make([]level, len(cells))
	for l, end := range spans(g.levels, t.Scale.End+1) {
		for x, to := t.Scale.Column(l.at), t.Scale.Column(max(l.at, end-1)); x <= to; x++ {
			if cells[x] == ' ' || l.exists && (!worst[x].exists || l.room() < worst[x].room()) {
				worst[x], cells[x] = l, l.glyph(t.Glyphs)
			}
		}
	}
	for _, c := range cells {
		if '1' <= c && c <= '9' {
			c = '1'
		}
		t.drawnLevels[c] = true
	}
	t.Lane(g.name(), limit(g.lowest()), cells, strconv.Itoa(g.lowest().healthy))
}

// took returns the duration of a drain, or that it still runs.
func took(d *drain) string {
	if d.outcome == cluster.OutcomeNone {
		return "running"
	}
	return drawing.Rounded(d.end - d.start)
}

// limit returns the limit and the count of a level, or that its group is gone.
func limit(l level) string {
	if !l.exists {
		return "gone"
	}
	return fmt.Sprintf("%d of %d", max(0, l.limit), l.count)
}

// maxViolations is the largest number of violations in a list. The list counts the others.
const maxViolations = 8

// violationLane writes the violations.
func (t *text) violationLane() {
	if len(t.run.violations) == 0 {
		return
	}
	cells := t.Blank()
	for _, v := range t.run.violations {
		word := []rune(t.guarantee(v))
		x := max(0, min(t.Scale.Column(v.at), len(cells)-len(word)))
		space := cells[x:min(len(cells), x+len(word))]
		switch {
		case strings.TrimSpace(string(space)) == "":
			copy(space, word)
		case len(space) > 0 && space[0] == ' ':
			space[0] = t.Glyphs.More
		}
	}
	t.Lane("violations", "", cells, "")
	for i, v := range t.run.violations {
		if i == maxViolations {
			t.Write(fmt.Sprintf("  and %s more", counted(len(t.run.violations)-maxViolations, "violation")))
			break
		}
		t.Wrap(fmt.Sprintf("  %s at %s: ", t.guarantee(v), drawing.Rounded(v.at)), t.Glyphs.Clean(v.Text))
	}
}

// guarantee is the short name of the violated guarantee.
func (t *text) guarantee(v violation) string {
	return t.Glyphs.Fit(t.Glyphs.Clean(v.Guarantee), maxWord)
}
