package invariant

import (
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Counters count the events that a judge has seen. If they are low, a run without violations
// proves little.
type Counters struct {
	// Entries counts all entries, Marks those of marks and Ends those of
	// completions. Rows counts the rows that entries have written.
	Entries, Marks, Ends, Rows int
	// Marked counts the marks made, Refused the items that were refused.
	Marked, Refused int
	// Called counts the evaluations that entries had to have made of jobs which they
	// concern, Evaluated those that none of them carried.
	Called, Evaluated int
	// Steps counts the steps of drainers, Looks those in which they looked at the
	// state, Idle those that wrote nothing, and Unasked those that no event had
	// asked for.
	Steps, Looks, Idle, Unasked int
	// Writes counts the writes that drainers proposed, Failures those that were
	// rejected or of unknown outcome.
	Writes, Failures int
	// QuietPoints counts the quiet points judged, Settled those at which nothing
	// held the drainer up, Reasons the reasons. Stills counts the long times without
	// an event at whose end nothing held it up.
	QuietPoints, Settled, Reasons, Stills int
	// Audits counts how often everything was counted, Replicas the entries that
	// were compared with another server's.
	Audits, Replicas int
}

func (c *Counters) add(e *entry) {
	c.Entries++
	c.Rows += len(e.nodes) + len(e.jobs) + len(e.allocs) + len(e.evals) + len(e.records)
	switch r := e.Response.(type) {
	case shims.MarksApplied:
		c.Marks++
		c.Marked += len(r.Accepted)
		c.Refused += len(r.Refused)
	case shims.CompletionsApplied:
		c.Ends++
		c.Refused += len(r.Refused)
	}
}

func (c *Counters) step(s Step, writes int) {
	c.Steps++
	c.Looks += s.Looks
	if writes == 0 {
		c.Idle++
	}
	if !s.Woken {
		c.Unasked++
	}
}
