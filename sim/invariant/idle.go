package invariant

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// idleItem is an item without effect.
type idleItem struct {
	before uint64 // the index of the state that the entry was applied to
	about  Violation
	why    string
}

// noteRefused records the first refused item of an entry.
func (j *facts) noteRefused(e *entry, refused []rules.Refusal) {
	item := idleItem{before: e.Before.Index(), why: "the answer does not name the refused item"}
	if len(refused) > 0 {
		r := refused[0]
		item.about, item.why = Violation{Node: r.Node, Alloc: r.Alloc}, fmt.Sprintf("%q", r.Why)
	}
	j.idle[e.Index] = item
}

// whyRefused is the answer's reason for the refusal of a mark, or of an end if alloc is empty.
func whyRefused(refused []rules.Refusal, node cluster.NodeID, alloc cluster.AllocID) string {
	for _, r := range refused {
		if r.Node == node && r.Alloc == alloc {
			return r.Why
		}
	}
	return ""
}
