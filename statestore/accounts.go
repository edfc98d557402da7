package statestore

import (
	"fmt"

	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// account is a row of the ledger: what the allocations of a node take, how many of a group
// are healthy, the counters, or the cluster version. They share a table because most entries write several of
// them, and a commit puts the tree of each index of a table that was written to into the
// tree of all of them.
type account interface{ id() key }

var (
	_ account = (*counters)(nil)
	_ account = (*usage)(nil)
	_ account = (*health)(nil)
	_ account = (*versionRow)(nil)
)

// The first bytes of the keys of accounts. The counters' has none.
const (
	accountOfNode byte = iota
	accountOfGroup
	accountOfVersion
)

func (c *counters) id() key { return countersKey() }
func (u *usage) id() key    { return usageKey(u.NodeID) }
func (h *health) id() key   { return healthKey(h.Group) }

func (*versionRow) id() key { return versionKey() }

// countersKey is the beginning of all keys, so that the counters are at the root of their
// tree, which each entry copies anyway.
func countersKey() key { return key{} }

// usageKey holds for the empty id too: an allocation may be on no node at all.
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
