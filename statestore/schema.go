package statestore

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The tables.
const (
	TableNodes  = "nodes"
	TableDrains = "drains"
	TableJobs   = "jobs"
	TableAllocs = "allocs"
	TableEvals  = "evals"
	// TableVolumes and TableClaims exist from cluster version 7 on.
	TableVolumes = "volumes"
	TableClaims  = "claims"
	// tableLedger holds the accounts.
	tableLedger = "ledger"
	// tableChanging holds the rows of ChangingAllocs. Its name is the one of the first release,
	// because dumps of different builds are compared.
	tableChanging = "restless"
	// tableMarks holds the allocations that each drain has marked.
	tableMarks = "marks"
	// tableJournals holds the journals of drains, and tableJournalGroups the groups of those that run. They exist
	// from cluster version 9 on.
	tableJournals      = "journals"
	tableJournalGroups = "journal groups"
	// tableTimes holds how long the allocations of groups took. It exists from cluster version 9 on. No other
	// name begins with its letter: with that of the ledger, each entry would copy one more tree node.
	tableTimes = "times"
	// tablePause holds the pause of all drains. It exists from cluster version 9 on.
	tablePause = "pause"
)

// The indexes. Each table has the index id, which is unique.
const (
	indexID = "id"
	// indexNode orders allocations by node, whether they are client-terminal, stage and
	// whether they are leaving. It orders records by node and end.
	indexNode = "node"
	// indexAge holds the records by end.
	indexAge = "age"
	// indexGroup orders allocations by job, whether they are concluded, group, and whether
	// they are settled.
	indexGroup = "group"
	// indexEveryNode holds the jobs that run on every fitting node, by id.
	indexEveryNode = "every-node"
	// indexLists holds a row once for each of the lists below that contain it.
	indexLists = "lists"
)

// The lists of indexLists. They are the first bytes of its keys.
const (
	// listDraining holds the draining nodes by id. listDrain holds them by drain.
	listDraining byte = iota
	listDrain
	// listJob orders evaluations by job, whether they are open, and creation.
	listJob
	// listQueue holds the open evaluations by status, descending priority and
	// creation.
	listQueue
	// listClaimVolume holds the claims by volume, those that write first. listClaimNode and
	// listClaimAlloc hold them by node and by allocation.
	listClaimVolume
	listClaimNode
	listClaimAlloc
)

// readyKeys makes look-ups accept complete keys.
type readyKeys struct{}

// FromArgs returns the one argument, a key.
func (readyKeys) FromArgs(args ...any) ([]byte, error) {
	if len(args) != 1 {
		return nil, errors.New("look-up needs one key")
	}
	k, ok := args[0].(key)
	if !ok {
		return nil, fmt.Errorf("look-up by a %T, not a key", args[0])
	}
	return k, nil
}

// indexer is a [memdb.Indexer]. It computes a row's key in one index.
type indexer[T any] struct {
	readyKeys
	// key returns nil for a row that the index does not hold.
	key func(*T) key
}

var (
	_ memdb.Indexer       = indexer[cluster.Node]{}
	_ memdb.SingleIndexer = indexer[cluster.Node]{}
)

// FromObject returns the key of a row.
func (x indexer[T]) FromObject(row any) (bool, []byte, error) {
	r, ok := row.(*T)
	if !ok || r == nil {
		return false, nil, fmt.Errorf("row is a %T, not a %T", row, r)
	}
	k := x.key(r)
	return k != nil, k, nil
}

// listIndexer computes a row's keys in several lists that share one index. Every index of a
// table makes each write to the table slower, even if its keys do not change.
type listIndexer[T any] struct {
	readyKeys
	// keys return nil for a row that their list does not contain.
	keys []func(*T) key
}

var (
	_ memdb.Indexer      = listIndexer[cluster.Node]{}
	_ memdb.MultiIndexer = listIndexer[cluster.Node]{}
)

// FromObject returns the keys of a row.
func (x listIndexer[T]) FromObject(row any) (bool, [][]byte, error) {
	r, ok := row.(*T)
	if !ok || r == nil {
		return false, nil, fmt.Errorf("row is a %T, not a %T", row, r)
	}
	var keys [][]byte
	for _, in := range x.keys {
		if k := in(r); k != nil {
			keys = append(keys, k)
		}
	}
	return len(keys) > 0, keys, nil
}

// unique is an index with distinct keys. Each row must have a key.
func unique[T any](name string, f func(*T) key) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: name, Unique: true, Indexer: indexer[T]{key: f}}
}

// ordered is an index in which rows with equal keys are ordered by id. It does not contain
// rows whose key is nil.
func ordered[T any](name string, f func(*T) key) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: name, AllowMissing: true, Indexer: indexer[T]{key: f}}
}

// listed is an index of several lists, each ordered.
func listed[T any](lists ...func(*T) key) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: indexLists, AllowMissing: true, Indexer: listIndexer[T]{keys: lists}}
}

func table(name string, indexes ...*memdb.IndexSchema) *memdb.TableSchema {
	t := &memdb.TableSchema{Name: name, Indexes: make(map[string]*memdb.IndexSchema, len(indexes))}
	for _, x := range indexes {
		t.Indexes[x.Name] = x
	}
	return t
}

func schema() *memdb.DBSchema {
	s := &memdb.DBSchema{Tables: make(map[string]*memdb.TableSchema)}
	for _, t := range []*memdb.TableSchema{
		table(TableNodes, unique(indexID, nodeID), listed(drainingNode, nodeOfDrain)),
		table(TableDrains, unique(indexID, recordID), ordered(indexNode, recordByNode), ordered(indexAge, recordByAge)),
		table(TableJobs, unique(indexID, jobID), ordered(indexEveryNode, jobOnEveryNode)),
		table(TableAllocs, unique(indexID, allocID), ordered(indexNode, allocByNode), ordered(indexGroup, allocByGroup)),
		table(TableEvals, unique(indexID, evalID), listed(evalByJob, evalByQueue)),
		table(TableVolumes, unique(indexID, volumeID)),
		table(TableClaims, unique(indexID, claimID), listed(claimByVolume, claimByNode, claimByAlloc)),
		table(tableLedger, &memdb.IndexSchema{Name: indexID, Unique: true, Indexer: accountIndexer{}}),
		table(tableChanging, unique(indexID, changingID)),
		table(tableMarks, unique(indexID, markID)),
		table(tableJournals, unique(indexID, journalID)),
		table(tableJournalGroups, unique(indexID, runningGroupID), ordered(indexGroup, runningGroupByGroup)),
		table(tableTimes, unique(indexID, groupTimesID)),
		table(tablePause, unique(indexID, pauseID)),
	} {
		s.Tables[t.Name] = t
	}
	return s
}

// tableNames are the names of all tables, sorted.
func tableNames() []string { return slices.Sorted(maps.Keys(schema().Tables)) }
