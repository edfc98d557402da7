package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

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
}

// The persisted names of the counters that belong to no table. Restore counts the records
// itself.
const (
	counterEntry    = "entry"
	counterCapacity = "capacity"
)

// counter is one of the counters as it is persisted.
type counter struct {
	Key   string
	Value uint64
}

func counterKey(c *counter) key { return idKey(c.Key) }

// persistedCounters are the persisted names of all counters, sorted.
func persistedCounters() []string {
	return []string{TableAllocs, counterCapacity, TableClaims, TableDrains, counterEntry, TableEvals, TableJobs, TableNodes, TableVolumes}
}

// named returns the counter that is persisted under the name, or nil.
func (c *counters) named(name string) *uint64 {
	switch name {
	case counterEntry:
		return &c.Entry
	case counterCapacity:
		return &c.Capacity
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

// Advance sets the index of the state and of each table, and changes no row. A state that replaces
// a newer one gets a higher index than that one, so that every waiting reader reads again. The
// index must be above every index in the state. Advance also raises the cluster version to v, if it
// is lower.
func (s *Store) Advance(index uint64, v cluster.Version) {
	t := s.Begin(index)
	t.RaiseClusterVersion(v)
	for _, name := range persistedCounters() {
		if (name == TableVolumes || name == TableClaims) && t.ClusterVersion() < cluster.VersionOfVolumes {
			continue // older servers do not know these tables
		}
		*t.counters.named(name) = index
	}
	t.Commit()
}
