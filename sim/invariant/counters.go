package invariant

import (
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Counters count the judged events. If they are low, a run without violations proves little.
type Counters struct {
	// Entries counts all entries, Marks the entries of marks, Ends the entries of ends. Rows
	// counts the written rows.
	Entries, Marks, Ends, Rows int
	// Marked counts the accepted marks, Refused the refused marks and ends.
	Marked, Refused int
	// Required counts the evaluations that entries had to make. Evaluated counts those that
	// the FSM made itself, because the entry did not carry them.
	Required, Evaluated int
	// Steps counts the steps of drainers, Looks their looks at the state, Idle the steps
	// without a write, and Unasked the steps that no event asked for.
	Steps, Looks, Idle, Unasked int
	// Writes counts the proposed writes, Failures the writes that were rejected or have an
	// unknown outcome.
	Writes, Failures int
	// QuietPoints counts the judged quiet points, Settled those with a drainer that was up to
	// date, and Reasons the judged reasons. Stills counts the judged silences with a drainer
	// that was up to date.
	QuietPoints, Settled, Reasons, Stills int
	// Audits counts the audits, Replicas the entries compared with those of another server.
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
