package rules

import (
	"cmp"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The texts about what no drain does to an allocation on a draining node.
const (
	textPlaced  = "placed here after the drain began: a scheduler must place nothing on a draining node; "
	textUnowned = "its mark has no drain, so another program or an operator set it; "
)

// placedAfter reports whether the allocation was placed on its node after the drain of the node
// began.
func placedAfter(a *cluster.Allocation, d *cluster.Drain) bool {
	return d.CreateIndex > 0 && a.CreateIndex > d.CreateIndex
}

// unowned reports whether the allocation is marked, but by no drain: it leaves, but a cancel does
// not withdraw the mark, and the drain does not count it.
func unowned(a *cluster.Allocation) bool { return a.Marked() && a.DesiredTransition.Drain == "" }

// foreignText is, as the beginning of a sentence, what no drain has done to the allocation, or
// empty.
func foreignText(a *cluster.Allocation, d *cluster.Drain) (text string) {
	if placedAfter(a, d) {
		text = textPlaced
	}
	if unowned(a) {
		text += textUnowned
	}
	return text
}

// newer reports whether a was placed after b. It accepts nil, which is before any other.
func newer(a, b *cluster.Allocation) bool {
	if a == nil || b == nil {
		return b == nil && a != nil
	}
	return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID)) > 0
}

// countPlaced adds an allocation on the node to the placements of the report.
func (s *Status) countPlaced(a *cluster.Allocation) {
	if !placedAfter(a, s.Drain) {
		return
	}
	s.Placed++
	if newer(a, s.NewestPlaced) {
		s.NewestPlaced = a
	}
}

// addObserved adds the placements that the leader has observed. Most of them may have ended.
func (s *Status) addObserved(t *TermState) {
	if t.Placed == nil {
		return
	}
	count, newest := t.Placed(s.Drain.ID)
	s.Placed = max(s.Placed, count)
	if newer(newest, s.NewestPlaced) {
		s.NewestPlaced = newest
	}
}
