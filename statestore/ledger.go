package statestore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// account is a row of the ledger: the usage of a node, the healthy count of a group, the
// counters, or the cluster version. They share one table because most entries write several
// of them, and each table that an entry writes to makes its commit slower.
type account interface{ id() key }

var (
	_ account = (*counters)(nil)
	_ account = (*usage)(nil)
	_ account = (*health)(nil)
	_ account = (*versionRow)(nil)
)

// The first bytes of the keys of accounts. The key of the counters is empty.
const (
	accountOfNode byte = iota
	accountOfGroup
	accountOfVersion
)

func (c *counters) id() key { return countersKey() }
func (u *usage) id() key    { return usageKey(u.NodeID) }
func (h *health) id() key   { return healthKey(h.Group) }

func (*versionRow) id() key { return versionKey() }

// countersKey is empty, so that the counters are at the root of their tree, which every entry
// copies anyway.
func countersKey() key { return key{} }

// usageKey also accepts the empty id: an allocation may have no node.
func usageKey(id cluster.NodeID) key {
	return make(key, 0, len(id)+3).byte(accountOfNode).text(string(id))
}

func healthKey(g cluster.GroupKey) key {
	k := make(key, 0, len(g.Job.Namespace)+len(g.Job.ID)+len(g.Name)+7).byte(accountOfGroup)
	return k.text(string(g.Job.Namespace)).text(string(g.Job.ID)).text(g.Name)
}

func versionKey() key { return key{accountOfVersion} }

// accountIndexer computes the key of an account.
type accountIndexer struct{ readyKeys }

var (
	_ memdb.Indexer       = accountIndexer{}
	_ memdb.SingleIndexer = accountIndexer{}
)

// FromObject returns the key of a row.
func (accountIndexer) FromObject(row any) (bool, []byte, error) {
	a, ok := row.(account)
	if !ok {
		return false, nil, fmt.Errorf("row is a %T, not an account", row)
	}
	return true, a.id(), nil
}

// accountEdits are the accounts of one kind that a transaction may have changed. The commit writes
// each of them once.
type accountEdits[K, A comparable] map[K]*accountEdit[A]

type accountEdit[A comparable] struct {
	before *A // the row, or nil
	after  *A // the next row; never nil
}

// edit returns the next row of an account. The caller changes it. row returns the present row, or
// nil. empty is an account without a row.
func (e *accountEdits[K, A]) edit(k K, row func() *A, empty A) *A {
	if edit := (*e)[k]; edit != nil {
		return edit.after
	}
	edit := &accountEdit[A]{before: row(), after: &empty}
	if edit.before != nil {
		*edit.after = *edit.before
	}
	if *e == nil {
		*e = make(accountEdits[K, A])
	}
	(*e)[k] = edit
	return edit.after
}

// flushAccounts writes the accounts that have changed. An account that is not used has no row.
func flushAccounts[K, A comparable](t *rowWrites, edits accountEdits[K, A], compare func(a, b K) int, used func(*A) bool) {
	for _, k := range slices.SortedFunc(maps.Keys(edits), compare) {
		switch edit := edits[k]; {
		case edit.before != nil && *edit.before == *edit.after:
		case used(edit.after):
			t.insert(tableLedger, edit.after)
		case edit.before != nil:
			t.delete(tableLedger, edit.before)
		}
	}
}

// counters is one row with raft indexes and the number of drain records. Every entry
// changes at least one of them, and writes the row once.
type counters struct {
	// Entry is the newest entry. Capacity is the last entry that may have added capacity.
	Entry, Capacity uint64
	// The last entry that wrote to each table.
	Nodes, Drains, Jobs, Allocs, Evals uint64
	// Volumes and Claims stay zero below cluster version 7.
	Volumes uint64 `codec:",omitempty"`
	Claims  uint64 `codec:",omitempty"`
	// Records counts the records of ended drains.
	Records uint64
	// History identifies the entries up to this state. It stays zero below cluster version 9.
	History uint64 `codec:",omitempty"`
}

// The persisted names of the counters that belong to no table. Restore counts the records
// itself.
const (
	counterEntry    = "entry"
	counterCapacity = "capacity"
	counterHistory  = "history"
)

// counter is one of the counters as it is persisted.
type counter struct {
	Key   string
	Value uint64
}

func counterKey(c *counter) key { return idKey(c.Key) }

// persistedCounters are the persisted names of all counters, sorted.
func persistedCounters() []string {
	return []string{TableAllocs, counterCapacity, TableClaims, TableDrains, counterEntry, TableEvals, counterHistory, TableJobs, TableNodes, TableVolumes}
}

// named returns the counter that is persisted under the name, or nil.
func (c *counters) named(name string) *uint64 {
	switch name {
	case counterEntry:
		return &c.Entry
	case counterCapacity:
		return &c.Capacity
	case counterHistory:
		return &c.History
	}
	return c.of(name)
}

// of returns the counter of the table, or nil if it has none.
func (c *counters) of(table string) *uint64 {
	switch table {
	case TableNodes:
		return &c.Nodes
	case TableDrains:
		return &c.Drains
	case TableJobs:
		return &c.Jobs
	case TableAllocs:
		return &c.Allocs
	case TableEvals:
		return &c.Evals
	case TableVolumes:
		return &c.Volumes
	case TableClaims:
		return &c.Claims
	}
	return nil
}

// versionRow holds the cluster version. A state of version 1 has no such row: its dump and
// its snapshot equal those of a server without cluster versions.
type versionRow struct{ Version cluster.Version }

// versionIn returns the cluster version of the state.
func versionIn(t *tables) cluster.Version {
	if row := first[versionRow](t, tableLedger, indexID, versionKey()); row != nil {
		return row.Version
	}
	return 1
}

// RaiseClusterVersion sets the cluster version. It changes nothing if the state has that
// version or a higher one.
func (t *Txn) RaiseClusterVersion(v cluster.Version) {
	if v > versionIn(t.rows.tables) {
		t.rows.insert(tableLedger, &versionRow{v})
	}
}
