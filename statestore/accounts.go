package statestore

import (
	"fmt"

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
