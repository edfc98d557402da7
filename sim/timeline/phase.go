package timeline

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// Phase is the phase of an allocation on a drained node.
type Phase uint8

// The phases.
const (
	Starting  Phase = iota // placed, not yet running
	Running                // running, not judged unhealthy
	Unhealthy              // running, judged unhealthy
	Marked                 // marked by the drainer, not yet stopped by the scheduler
	Stopping               // stopped by the scheduler, not yet ended
	Unknown                // its node is disconnected
	Gone                   // ended, or its record was purged

	// PhaseCount is the number of phases.
	PhaseCount
)

// String returns the phase's name.
func (p Phase) String() string {
	names := [PhaseCount]string{"starting", "running", "unhealthy", "marked", "stopping", "unknown", "gone"}
	if p >= PhaseCount {
		return "no phase"
	}
	return names[p]
}

// phaseOf is the phase of an allocation. A nil allocation is purged.
func phaseOf(a *cluster.Allocation) Phase {
	switch {
	case a == nil || !opinion.Live(a):
		return Gone
	case a.ClientStatus == cluster.ClientUnknown:
		return Unknown
	case opinion.Stopping(a):
		return Stopping
	case opinion.Leaving(a):
		return Marked
	case a.ClientStatus == cluster.ClientPending:
		return Starting
	}
	if healthy, judged := opinion.Verdict(a); judged && !healthy {
		return Unhealthy
	}
	return Running
}

// row is one allocation on a drained node, with the changes of its phase.
type row struct {
	id    cluster.AllocID
	name  string // "web[0]"
	group cluster.GroupKey
	stage opinion.Stage
	// changes are the changes of its phase.
	changes []change
	// counted means that the running drain waits for the allocation.
	counted bool
	// next is its replacement, or nil.
	next *replacement
}

// change is a change of a row's phase.
type change struct {
	moment
	phase Phase
}

// replacement is an allocation that replaces one on a drained node.
type replacement struct {
	id     cluster.AllocID
	node   cluster.NodeID
	placed time.Duration
	// healthy is the time at which its client reported it as healthy, or negative.
	healthy time.Duration
}

// phase is the newest phase.
func (w *row) phase() Phase { return w.changes[len(w.changes)-1].phase }

// enter records a phase of the row.
func (w *row) enter(at time.Duration, p Phase) {
	if len(w.changes) == 0 || w.phase() != p {
		w.changes = append(w.changes, change{moment{at}, p})
	}
}

// goneAt returns the time at which the allocation ended, or false if it has not ended.
func (w *row) goneAt() (time.Duration, bool) {
	last := w.changes[len(w.changes)-1]
	return last.at, last.phase == Gone
}

// moved reports whether the allocation was marked and has ended.
func (w *row) moved() bool {
	if w.phase() != Gone {
		return false
	}
	for _, c := range w.changes {
		if c.phase == Marked {
			return true
		}
	}
	return false
}
