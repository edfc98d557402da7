package statestore

// counters is one row: raft indexes of entries, and how many records there are. It is
// one, and written once for each entry, because every entry moves one of them at least.
type counters struct {
	// Entry is the newest entry, Capacity the last one after which more may fit.
	Entry, Capacity uint64
	// The last entries that wrote to the tables.
	Nodes, Drains, Jobs, Allocs, Evals uint64
	// Records counts the records of ended drains.
	Records uint64
}

// The names under which the counters that belong to no table are persisted. Records
// are not: they are counted anew.
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

// persistedCounters are the names under which counters are persisted, sorted.
func persistedCounters() []string {
	return []string{TableAllocs, counterCapacity, TableDrains, counterEntry, TableEvals, TableJobs, TableNodes}
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

// of returns the last entry that wrote to the table, or nil if none is kept of it.
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
	}
	return nil
}
