package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// countViolations counts the violations of each lane.
func (r *Recorder) countViolations() {
	for _, n := range r.nodeOrder {
		n.violated = 0
	}
	for _, g := range r.groupOrder {
		g.violated = 0
	}
	for _, v := range r.violations {
		if n := r.nodes[v.Node]; n != nil {
			n.violated++
		}
		if g := r.groups[v.Group]; g != nil {
			g.violated++
		}
	}
}

// candidate is a lane that may be drawn. Lanes with smaller ranks are drawn first. The first
// different rank decides.
type candidate[T any] struct {
	lane  T
	ranks [4]int64
	name  string
}

// choose returns the lanes with the smallest ranks, at most this number, and the others.
func choose[T any](candidates []candidate[T], most int) (shown, hidden []T) {
	slices.SortStableFunc(candidates, func(a, b candidate[T]) int {
		return cmp.Or(slices.Compare(a.ranks[:], b.ranks[:]), natural(a.name, b.name))
	})
	lanes := make([]T, len(candidates))
	for i, c := range candidates {
		lanes[i] = c.lane
	}
	most = min(most, len(lanes))
	return lanes[:most:most], lanes[most:]
}

// shownNodes returns the nodes with a lane, by the start of their first drain and by name, and
// the others.
func (r *Recorder) shownNodes() (shown, hidden []*node) {
	r.countViolations()
	candidates := make([]candidate[*node], len(r.nodeOrder))
	for i, n := range r.nodeOrder {
		d := n.last()
		outcomeRank := int64(1)
		switch d.outcome {
		case cluster.OutcomeNone:
			outcomeRank = 2
		case cluster.OutcomeComplete:
			outcomeRank = 0
		}
		candidates[i] = candidate[*node]{n, [4]int64{-int64(n.violated), -outcomeRank, -int64(d.end), -int64(n.moved())}, string(n.id)}
	}
	shown, hidden = choose(candidates, maxNodes)
	slices.SortStableFunc(shown, func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.drains[0].start, b.drains[0].start), natural(string(a.id), string(b.id)))
	})
	return shown, hidden
}

// shownGroups returns the groups with a lane, by name, and the others.
func (r *Recorder) shownGroups() (shown, hidden []*group) {
	r.countViolations()
	candidates := make([]candidate[*group], len(r.groupOrder))
	for i, g := range r.groupOrder {
		low := int64(g.lowest().room())
		candidates[i] = candidate[*group]{g, [4]int64{-int64(g.violated), min(0, low), -int64(g.marks), low}, g.name()}
	}
	shown, hidden = choose(candidates, maxGroups)
	slices.SortStableFunc(shown, func(a, b *group) int { return natural(a.name(), b.name()) })
	return shown, hidden
}

// natural compares names with numbers in natural order: n2 before n10.
func natural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := digits(x), digits(y)
		if m == 0 || n == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		p, q := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
		if order := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); order != 0 {
			return order
		}
		x, y = x[m:], y[n:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits is the number of leading digits of a name.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
