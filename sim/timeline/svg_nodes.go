package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

// A node with up to tallRows allocations has tall rows with their names. A node with up to flatRows
// has flat rows. A node with more has an area that shows only numbers. If all nodes together have
// more than allRows, the picture has no flat rows.
const (
	tallRows   = 8
	flatRows   = 32
	allRows    = 240
	tallHeight = 15
	flatHeight = 7
	areaHeight = 56
)

// svgNodes draws the allocations of drained nodes.
type svgNodes struct{ *page }

func (s svgNodes) draw() {
	if len(s.nodes) == 0 {
		return
	}
	s.Heading("drained nodes")
	if len(s.run.nodeOrder) > 1 {
		s.allNodes()
	}
	labels := s.Glyphs.Distinct(s.nodeNames(), (drawing.Left-drawing.Margin)/drawing.Bold)
	rows := 0
	for _, n := range s.nodes {
		rows += len(n.rows)
	}
	for i, n := range s.nodes {
		s.lane(fmt.Sprintf("node-%d", i), n, labels[string(n.id)], rows > allRows)
	}
	if len(s.hiddenNodes) > 0 {
		s.Remark(s.leftOutNodes())
	}
}

// allNodes draws how many allocations were left to drain on all nodes together.
func (s svgNodes) allNodes() {
	const height = 36
	left := s.run.leftOnAllNodes()
	whole := most(left)
	s.Rect("panel", drawing.Left, s.Y, drawing.Right-drawing.Left, height, "")
	s.Open("nodes", fmt.Sprintf("all drained nodes together: at most %d allocations left to go", whole))
	for c, end := range spans(left, s.Scale.End) {
		if h := height * c.n / max(1, whole); s.X(end) > s.X(c.at) && c.n > 0 {
			s.Rect("running", s.X(c.at), s.Y+height-max(1, h), s.X(end)-s.X(c.at), max(1, h), "")
		}
	}
	s.Close()
	s.Label("name", s.Y+14, fmt.Sprintf("all %d nodes", len(s.run.nodeOrder)))
	s.Text("small muted", drawing.Margin, s.Y+28, fmt.Sprintf("%d left to go at most", whole))
	s.Y += height + drawing.Padding*2
}

// lane draws one node. crowded means that the whole picture has too many rows.
func (s svgNodes) lane(id string, n *node, label string, crowded bool) {
	rowHeight := tallHeight
	if len(n.rows) > tallRows {
		rowHeight = flatHeight
	}
	area := len(n.rows) > flatRows || crowded && len(n.rows) > tallRows
	height := len(n.rows) * rowHeight
	if area {
		height = areaHeight
	}
	s.Open(id, "")
	s.drainStrips(n)
	s.Y += 10
	height = max(height, 24, s.description(n, label)+8)
	s.Rect("panel", drawing.Left, s.Y, drawing.Right-drawing.Left, height, "")
	s.notReady(n, height)
	if area {
		s.area(n, height)
	} else {
		s.gantt(id, n, rowHeight)
	}
	for _, d := range n.drains {
		if d.deadline >= 0 && d.deadline <= s.Scale.End {
			s.Open("", fmt.Sprintf("%s: deadline at %s", n.id, drawing.Rounded(d.deadline)))
			s.Line("due", s.X(d.deadline), s.Y-10, s.X(d.deadline), s.Y+height)
			s.Close()
		}
	}
	s.Close()
	s.Y += height + drawing.Padding*2
}

// description writes the node's name and the result of its main drain. It returns the height
// of the text.
func (s svgNodes) description(n *node, label string) (height int) {
	d := n.main()
	s.Text("name", drawing.Margin, s.Y+6, label)
	plan := fmt.Sprintf("%d to go", d.initially)
	switch {
	case d.forced:
		plan += ", forced"
	case d.deadline >= 0:
		plan += ", deadline at " + drawing.Rounded(d.deadline)
	}
	s.Text("small muted", drawing.Margin, s.Y+20, plan)
	end := "running"
	var remarks []string
	if d.outcome != cluster.OutcomeNone {
		end = string(d.outcome)
		remarks = append(remarks, "in "+drawing.Rounded(d.end-d.start))
	}
	if d.stopping > 0 {
		remarks = append(remarks, fmt.Sprintf("%d still stopping", d.stopping))
	}
	if d.unconfirmed > 0 {
		remarks = append(remarks, fmt.Sprintf("%d unconfirmed", d.unconfirmed))
	}
	if len(n.drains) > 1 {
		remarks = append(remarks, fmt.Sprintf("one of %d drains", len(n.drains)))
	}
	return s.After(s.Y+6, end, remarks...)
}

// drainStrips draws the drains of the node, in the colours of their outcomes.
func (s svgNodes) drainStrips(n *node) {
	for _, d := range n.drains {
		end, class, text := d.end, strings.ReplaceAll(string(d.outcome), " ", ""), string(d.outcome)
		switch d.outcome {
		case cluster.OutcomeNone:
			end, class, text = s.Scale.End, "runson", "running"
		case cluster.OutcomeDeadlineReached:
			class = "deadline"
		}
		width := max(3, s.X(end)-s.X(d.start))
		s.Rect(class, s.X(d.start), s.Y+2, width, 6,
			fmt.Sprintf("%s: drain %s, %d to go, %s to %s: %s", n.id, d.id, d.initially, drawing.Rounded(d.start), drawing.Rounded(end), text))
	}
}

// notReady draws the times in which the node was not ready.
func (s svgNodes) notReady(n *node, height int) {
	for t, end := range spans(n.statuses, s.Scale.End) {
		if t.status == cluster.NodeReady {
			continue
		}
		name := string(t.status)
		if name == "" {
			name = "deleted"
		}
		if width := s.X(end) - s.X(t.at); width > 0 {
			s.Rect("lost", s.X(t.at), s.Y, width, height, fmt.Sprintf("%s: %s, %s to %s", n.id, name, drawing.Rounded(t.at), drawing.Rounded(end)))
		}
	}
}

// gantt draws a row for each allocation, ordered by stage, then by the end of the allocation.
func (s svgNodes) gantt(id string, n *node, height int) {
	rows := slices.Clone(n.rows)
	slices.SortStableFunc(rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.leaves(), b.leaves()), natural(a.name, b.name))
	})
	for i, w := range rows {
		y := s.Y + i*height
		s.Open(fmt.Sprintf("%s-row-%d", id, i), w.lifeText())
		for c, end := range spans(w.changes, s.Scale.End) {
			if c.phase != Gone && s.X(end) > s.X(c.at) {
				s.Rect(c.phase.String(), s.X(c.at), y+1, s.X(end)-s.X(c.at), height-2, "")
			}
		}
		s.replacement(w, y+height/2)
		if from, to := s.X(w.changes[0].at), s.X(min(w.leaves(), s.Scale.End)); height == tallHeight && (len([]rune(w.name))+1)*drawing.Small < to-from {
			s.Text("onbar", from+4, y+11, w.name)
		}
		s.Close()
	}
}

// area draws the numbers of a node's allocations in each phase as stacked bars, with the last
// phases on top.
func (s svgNodes) area(n *node, height int) {
	order := [...]Phase{Running, Starting, Unhealthy, Unknown, Marked, Stopping}
	counts := s.phases(n)
	whole := 1
	for _, at := range counts {
		sum := 0
		for _, c := range at {
			sum += c
		}
		whole = max(whole, sum)
	}
	for x := 0; x < len(counts); {
		same := x + 1
		for same < len(counts) && counts[same] == counts[x] {
			same++
		}
		below := 0
		for _, p := range order {
			from, to := height*below/whole, height*(below+counts[x][p])/whole
			if below += counts[x][p]; to > from {
				s.Rect(p.String(), drawing.Left+x, s.Y+height-to, same-x, to-from, "")
			}
		}
		x = same
	}
}

// phases returns, for each column, the number of a node's allocations in each phase.
func (s svgNodes) phases(n *node) [][PhaseCount]int {
	changes := make([][PhaseCount]int, s.Scale.Width+1)
	for _, w := range n.rows {
		for c, end := range spans(w.changes, s.Scale.End) {
			changes[s.Scale.X(c.at)][c.phase]++
			changes[s.Scale.X(end)][c.phase]--
		}
	}
	counts := changes[:s.Scale.Width]
	for x := 1; x < len(counts); x++ {
		for p := range counts[x] {
			counts[x][p] += counts[x-1][p]
		}
	}
	return counts
}

// replacement draws the time from the end of an allocation to its healthy replacement.
func (s svgNodes) replacement(w *row, y int) {
	gone, left := w.goneAt()
	if w.next == nil || w.next.healthy < 0 {
		return
	}
	if x := s.X(w.next.healthy); left && x > s.X(gone) {
		s.Line("waiting", s.X(gone), y, x, y)
	}
	s.Circle("replaced", s.X(w.next.healthy), y, 3, "")
}

// leaves returns the time at which the row's allocation ended, or the latest possible time.
func (w *row) leaves() time.Duration {
	if at, gone := w.goneAt(); gone {
		return at
	}
	return 1<<63 - 1
}

// lifeText describes the phases of a row's allocation and its replacement.
func (w *row) lifeText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)", w.name, w.id)
	for i, c := range w.changes {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		fmt.Fprintf(&b, "%s%s %s", separator, c.phase, drawing.Rounded(c.at))
	}
	if next := w.next; next != nil {
		fmt.Fprintf(&b, "; replaced by %s on %s at %s", next.id, next.node, drawing.Rounded(next.placed))
		if next.healthy >= 0 {
			fmt.Fprintf(&b, ", healthy %s", drawing.Rounded(next.healthy))
		}
	}
	return b.String()
}
