package witness

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Audit walks the whole state after the last observed entry and finds the marks, drains
// and outcomes that no entry named. Its cost grows with the state. It returns its findings
// and adds them to the report.
func (w *Witness) Audit(s World) []Finding {
	var unseen []Finding
	for a := range s.Allocs() {
		if t := a.DesiredTransition; t.Migrate && t.Drain != "" {
			if m := w.marks[a.ID]; m == nil || m.drain != t.Drain || m.class != t.Class {
				unseen = append(unseen, Finding{
					Drain: t.Drain, Node: a.NodeID, Alloc: a.ID, Group: groupOf(a),
					Why: fmt.Sprintf("a mark of class %s that no entry named", t.Class),
				})
			}
		}
	}
	for n := range s.Nodes() {
		if n.Drain != nil {
			if d := w.drains[n.Drain.ID]; d == nil || d.ended {
				unseen = append(unseen, Finding{Drain: n.Drain.ID, Node: n.ID, Why: "a running drain that no entry named"})
			}
		}
	}
	for record := range s.Drains() {
		if d := w.drains[record.ID]; d == nil || d.Outcome != record.Outcome {
			unseen = append(unseen, Finding{
				Drain: record.ID, Node: record.NodeID,
				Why: fmt.Sprintf("a drain's outcome %q that no entry named", record.Outcome),
			})
		} else if count := countOf(record); count != d.counted.count {
			unseen = append(unseen, Finding{
				Drain: record.ID, Node: record.NodeID,
				Why: fmt.Sprintf("the count %d of unconfirmed allocations that no entry named", count),
			})
		}
	}
	slices.SortFunc(unseen, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Drain, b.Drain), cmp.Compare(a.Alloc, b.Alloc), cmp.Compare(a.Why, b.Why))
	})
	for i := range unseen {
		unseen[i].Kind = Unseen
		w.find(Entry{}, unseen[i])
	}
	return unseen
}

// Clean reports whether the witness found nothing.
func (r Report) Clean() bool { return r.Found == 0 }

// UnderLimit returns the groups that a paced mark took below their limit.
func (r Report) UnderLimit() []cluster.GroupKey {
	var keys []cluster.GroupKey
	for _, g := range r.Groups {
		if g.LowestAtMark.Index != 0 && g.LowestAtMark.Healthy < g.LowestAtMark.Limit {
			keys = append(keys, g.Group)
		}
	}
	return keys
}

// countOf is the number of unconfirmed allocations that a record counts.
func countOf(record *cluster.Drain) int {
	if record.Unconfirmed == nil {
		return 0
	}
	return record.Unconfirmed.Count
}
