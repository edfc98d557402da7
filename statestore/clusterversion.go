package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// versionRow holds the cluster version. A state of version 1 has no such row: its dump and
// its snapshot equal those of a server that knows no cluster versions.
type versionRow struct{ Version cluster.Version }

// ClusterVersion is the cluster version of the state.
func (r *tables) ClusterVersion() cluster.Version {
	if row := first[versionRow](r, tableLedger, indexID, versionKey()); row != nil {
		return row.Version
	}
	return 1
}

// RaiseClusterVersion sets the cluster version. It changes nothing if the state has that
// version or a higher one.
func (t *Txn) RaiseClusterVersion(v cluster.Version) {
	if v > t.ClusterVersion() {
		t.insert(tableLedger, &versionRow{v})
	}
}
