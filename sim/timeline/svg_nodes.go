package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// How allocations are drawn: in tall rows with their names, in flat rows, or summed
// up in an area.
const (
	tallRows   = 8
	flatRows   = 32
	allRows    = 240 // of all nodes together
	tallHeight = 15
	flatHeight = 7
	areaHeight = 56
)

// nodeLanes draws what became of the allocations of each node that was drained.
func (s *svg) nodeLanes() {
	if len(s.nodes) == 0 {
		return
	}
	s.heading("drained nodes")
	if len(s.run.nodeOrder) > 1 {
		s.allNodes()
	}
	s.labels = s.glyphs.apart(s.nodeNames(), (svgLeft-svgMargin)/svgBold)
	rows := 0
	for _, n := range s.nodes {
		rows += len(n.rows)
	}
	for i, n := range s.nodes {
		s.nodeLane(i, n, rows > allRows)
	}
	if len(s.hiddenNodes) > 0 {
		s.remark(s.leftOutNodes())
	}
}

// allNodes draws how many allocations were left to go on all nodes together.
func (s *svg) allNodes() {
	const height = 36
	left := s.run.leftOver()
	whole := most(left)
	s.rect("panel", svgLeft, s.y, svgRight-svgLeft, height, "")
	s.open("nodes", fmt.Sprintf("all drained nodes together: at most %d allocations left to go", whole))
	for i, c := range left {
		end := until(left, i, func(c count) time.Duration { return c.at }, s.scale.end)
		if h := height * c.n / max(1, whole); s.x(end) > s.x(c.at) && c.n > 0 {
			s.rect("running", s.x(c.at), s.y+height-max(1, h), s.x(end)-s.x(c.at), max(1, h), "")
		}
	}
	s.close()
	s.label("name", s.y+14, fmt.Sprintf("all %d nodes", len(s.run.nodeOrder)))
	s.text("small muted", svgMargin, s.y+28, fmt.Sprintf("%d left to go at most", whole))
	s.y += height + svgPadding*2
}

// nodeLane draws one node.
func (s *svg) nodeLane(number int, n *node, many bool) {
	rowHeight := tallHeight
	if len(n.rows) > tallRows {
		rowHeight = flatHeight
	}
	area := len(n.rows) > flatRows || many && len(n.rows) > tallRows
	height := len(n.rows) * rowHeight
	if area {
		height = areaHeight
	}
	id := fmt.Sprintf("node-%d", number)
	s.open(id, "")
	s.drainStrips(n)
	s.y += 10
	height = max(height, 24, s.nodeText(n)+8)
	s.rect("panel", svgLeft, s.y, svgRight-svgLeft, height, "")
	s.unreachable(n, height)
	if area {
		s.area(n, height)
	} else {
		s.gantt(id, n, rowHeight)
	}
	for _, d := range n.drains {
		if d.deadline >= 0 && d.deadline <= s.scale.end {
			s.open("", fmt.Sprintf("%s: deadline at %s", n.id, about(d.deadline)))
			s.line("due", s.x(d.deadline), s.y-10, s.x(d.deadline), s.y+height)
			s.close()
		}
	}
	s.close()
	s.y += height + svgPadding*2
}

// nodeText writes whose lane it is, and how the drain went that had most to do. It
// returns how much room that takes.
func (s *svg) nodeText(n *node) (height int) {
	d := n.main()
	s.text("name", svgMargin, s.y+6, s.labels[string(n.id)])
	asked := fmt.Sprintf("%d to go", d.initially)
	switch {
	case d.forced:
		asked += ", forced"
	case d.deadline >= 0:
		asked += ", deadline at " + about(d.deadline)
	}
	s.text("small muted", svgMargin, s.y+20, asked)
	end := "runs on"
	var remarks []string
	if d.outcome != cluster.OutcomeNone {
		end = string(d.outcome)
		remarks = append(remarks, "in "+about(d.end-d.start))
	}
	if d.stopping > 0 {
		remarks = append(remarks, fmt.Sprintf("%d still stopping", d.stopping))
	}
	if len(n.drains) > 1 {
		remarks = append(remarks, fmt.Sprintf("one of %d drains", len(n.drains)))
	}
	return s.after(s.y+6, end, remarks...)
}

// drainStrips draws when the node drained, in the colour of how that ended.
func (s *svg) drainStrips(n *node) {
	for _, d := range n.drains {
		end, class, text := d.end, strings.ReplaceAll(string(d.outcome), " ", ""), string(d.outcome)
		switch d.outcome {
		case cluster.OutcomeNone:
			end, class, text = s.scale.end, "runson", "runs on"
		case cluster.OutcomeDeadlineReached:
			class = "deadline"
		}
		width := max(3, s.x(end)-s.x(d.start))
		s.rect(class, s.x(d.start), s.y+2, width, 6,
			fmt.Sprintf("%s: drain %s, %d to go, %s to %s: %s", n.id, d.id, d.initially, about(d.start), about(end), text))
	}
}

// unreachable draws when the node was not what it is to be.
func (s *svg) unreachable(n *node, height int) {
	for i, t := range n.statuses {
		if t.status == cluster.NodeReady {
			continue
		}
		end := until(n.statuses, i, func(t status) time.Duration { return t.at }, s.scale.end)
		name := string(t.status)
		if name == "" {
			name = "deleted"
		}
		if width := s.x(end) - s.x(t.at); width > 0 {
			s.rect("lost", s.x(t.at), s.y, width, height, fmt.Sprintf("%s: %s, %s to %s", n.id, name, about(t.at), about(end)))
		}
	}
}

// gantt draws a row for each allocation, in the order in which they left.
func (s *svg) gantt(id string, n *node, height int) {
	rows := slices.Clone(n.rows)
	slices.SortStableFunc(rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.leaves(), b.leaves()), natural(a.name, b.name))
	})
	for i, w := range rows {
		y := s.y + i*height
		s.open(fmt.Sprintf("%s-row-%d", id, i), w.story())
		for j, c := range w.changes {
			end := until(w.changes, j, func(c change) time.Duration { return c.at }, s.scale.end)
			if c.phase != Gone && s.x(end) > s.x(c.at) {
				s.rect(c.phase.String(), s.x(c.at), y+1, s.x(end)-s.x(c.at), height-2, "")
			}
		}
		s.replacement(w, y+height/2)
		if from, to := s.x(w.changes[0].at), s.x(min(w.leaves(), s.scale.end)); height == tallHeight && (len([]rune(w.name))+1)*svgSmall < to-from {
			s.text("onbar", from+4, y+11, w.name)
		}
		s.close()
	}
}

// replacement draws how long it took until there was another in the row's place.
func (s *svg) replacement(w *row, y int) {
	gone, left := w.goneAt()
	if w.next == nil || w.next.healthy < 0 {
		return
	}
	if x := s.x(w.next.healthy); left && x > s.x(gone) {
		s.line("waiting", s.x(gone), y, x, y)
	}
	s.circle("replaced", s.x(w.next.healthy), y, 3, "")
}

// leaves is when the row's allocation is gone, or later than anything.
func (w *row) leaves() time.Duration {
	if at, gone := w.goneAt(); gone {
		return at
	}
	return 1<<63 - 1
}

// story is what became of a row's allocation.
func (w *row) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)", w.name, w.id)
	for i, c := range w.changes {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		fmt.Fprintf(&b, "%s%s %s", separator, c.phase, about(c.at))
	}
	if next := w.next; next != nil {
		fmt.Fprintf(&b, "; replaced by %s on %s at %s", next.id, next.node, about(next.placed))
		if next.healthy >= 0 {
			fmt.Fprintf(&b, ", healthy %s", about(next.healthy))
		}
	}
	return b.String()
}
