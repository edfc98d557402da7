package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// drainEnd is how a drain ended.
type drainEnd struct {
	outcome       cluster.Outcome
	at            time.Time
	stillStopping int
	// request is the one that ended the drain, or nil if none did.
	request *DrainUpdate
}

// recordDrain writes the record of the drain that ends with the node's next row,
// and forgets the oldest records beyond [cluster.MaxDrainRecordsPerNode] and
// [cluster.MaxDrainRecords].
func (t *Txn) recordDrain(n *cluster.Node, end drainEnd) {
	d := n.Drain.Copy()
	d.NodeName = n.Name
	if end.request != nil {
		updated := d.UpdatedAt
		noteRequest(d, *end.request)
		d.UpdatedAt = updated // it is the time of Revision, which stays
	}
	d.Outcome, d.EndedAt, d.StillStopping = end.outcome, end.at, end.stillStopping
	d.EndIndex = t.written.index

	put(t, TableDrains, nil, d)
	t.counters.Records++
	if oldest := t.oldestBeyond(n.ID); oldest != nil {
		put(t, TableDrains, oldest, nil)
		t.counters.Records--
	}
	if t.counters.Records > cluster.MaxDrainRecords {
		put(t, TableDrains, first[cluster.Drain](t.reads, TableDrains, indexAge, key{}), nil)
		t.counters.Records--
	}
}

// oldestBeyond returns the record of the node that is one too many, or nil.
func (t *Txn) oldestBeyond(id cluster.NodeID) *cluster.Drain {
	var oldest *cluster.Drain
	count := 0
	for d := range t.DrainsByNode(id) {
		if count++; count == 1 {
			oldest = d
		}
	}
	if count <= cluster.MaxDrainRecordsPerNode {
		return nil
	}
	return oldest
}
