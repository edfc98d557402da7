package invariant

import (
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Counters count the judged events. If they are low, a run without violations proves little.
type Counters struct {
	// Marked counts the accepted marks, Ends the entries of ends, and Refused the refused marks and
	// ends.
	Marked, Ends, Refused int
	// Required counts the evaluations that entries had to make. Evaluated counts those that
	// the FSM created itself, because the entry did not carry them.
	Required, Evaluated int
	// Reasons counts the judged reasons, Stills the judged silences with a drainer that was up to
	// date.
	Reasons, Stills int
}

func (c *Counters) add(response shims.Response) {
	switch r := response.(type) {
	case shims.MarksApplied:
		c.Marked += len(r.Accepted)
		c.Refused += len(r.Refused)
	case shims.CompletionsApplied:
		c.Ends++
		c.Refused += len(r.Refused)
	}
}
