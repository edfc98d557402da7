package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// facts are the events and the violations of one run. [Judge] updates them, and the judges of
// the single guarantees share them.
type facts struct {
	options Options
	dump    dump
	// now is the world's time of the last event. index is the index of the newest entry.
	now   time.Time
	index uint64
	// tables is the state after the last entry.
	tables *tables
	// events counts the events besides steps.
	events uint64
	// latest is the latest time of all entries and all clocks.
	latest time.Time

	// drains are all drains of the run, also the ended ones.
	drains map[cluster.DrainID]*drain
	terms  map[int]*term
	leader *term // the newest term, or nil
	// idle are the entries with an item that had no effect, by index. An entry leaves when
	// the drainer gets its answer.
	idle map[uint64]idleItem

	// stills counts the judged silences with a drainer that was up to date.
	stills int
	Findings
}
