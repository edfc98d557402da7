package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// recordDrain writes the record of an ended drain. It deletes the oldest records above
// [cluster.MaxDrainRecordsPerNode] and [cluster.MaxDrainRecords].
func (t *rowWrites) recordDrain(d *cluster.Drain) {
	put(t, TableDrains, nil, d)
	t.counters.Records++
	if oldest := t.oldestBeyond(d.NodeID); oldest != nil {
		put(t, TableDrains, oldest, nil)
		t.counters.Records--
	}
	if t.counters.Records > cluster.MaxDrainRecords {
		put(t, TableDrains, first[cluster.Drain](t.tables, TableDrains, indexAge, key{}), nil)
		t.counters.Records--
	}
}

// oldestBeyond returns the oldest record of the node if the node has too many, or nil.
func (t *rowWrites) oldestBeyond(id cluster.NodeID) *cluster.Drain {
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
