package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// recordDrain writes the record of a drain that ends with its node's next row,
// and forgets the oldest records beyond [cluster.MaxDrainRecordsPerNode] and
// [cluster.MaxDrainRecords].
func (t *Txn) recordDrain(d *cluster.Drain) {
	put(t, TableDrains, nil, d)
	t.counters.Records++
	if oldest := t.oldestBeyond(d.NodeID); oldest != nil {
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
