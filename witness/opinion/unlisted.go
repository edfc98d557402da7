package opinion

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Unlisted are the allocations of a record that the client of a node may run and that the servers do
// not list. The zero value has none.
type Unlisted struct {
	Count int
	// Names are the first of them by id.
	Names []cluster.AllocID
}

// UnlistedIn returns the allocations of a report or a record, which may be nil.
func UnlistedIn(u *cluster.UnlistedAllocs) Unlisted {
	if u == nil {
		return Unlisted{}
	}
	return Unlisted{Count: u.Count, Names: slices.Clone(u.Allocs)}
}

// UnlistedOn returns the allocations that a node has reported. The node may be nil. It leaves out those
// with a row of the node, except a lost row whose end is confirmed: the other rows count by themselves,
// or the client has reported the end.
func UnlistedOn(n *cluster.Node, row func(cluster.AllocID) *cluster.Allocation) Unlisted {
	if n == nil || n.Unlisted == nil {
		return Unlisted{}
	}
	left := Unlisted{Count: n.Unlisted.Count}
	for _, id := range n.Unlisted.Allocs {
		if a := row(id); a != nil && a.NodeID == n.ID && (a.ClientStatus != "lost" || Unconfirmed(a)) {
			left.Count--
		} else {
			left.Names = append(left.Names, id)
		}
	}
	return left
}

// After returns those that a later report of the node leaves. A nil report changes nothing.
func (u Unlisted) After(report *cluster.UnlistedAllocs) Unlisted {
	if report == nil {
		return u
	}
	left := Unlisted{Count: u.Count}
	for _, id := range u.Names {
		switch {
		case slices.Contains(report.Allocs, id):
		case report.Count > len(report.Allocs) && id > slices.Max(report.Allocs): // the report does not name it
		default:
			left.Count--
			continue
		}
		left.Names = append(left.Names, id)
	}
	left.Count = min(left.Count, report.Count)
	return left
}

// Same reports whether a record has these allocations.
func (u Unlisted) Same(o *cluster.UnlistedAllocs) bool {
	if o == nil {
		return u.Count == 0
	}
	return u.Count == o.Count && slices.Equal(u.Names, o.Allocs)
}

// String returns the count and the names.
func (u Unlisted) String() string { return fmt.Sprintf("%d %v", u.Count, u.Names) }
