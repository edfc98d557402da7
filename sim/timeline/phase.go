package timeline

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// Phase is how far an allocation on a drained node has come.
type Phase uint8

// The phases.
const (
	Starting  Phase = iota // placed, and not yet running
	Running                // running, and not judged unhealthy
	Unhealthy              // running, and judged unhealthy
	Marked                 // asked to leave, not yet told to stop
	Stopping               // told to stop, not yet ended
	Away                   // its node is out of touch: nobody knows
	Gone                   // ended, or its record was purged

	// PhaseCount is how many phases there are.
	PhaseCount
)

// String returns the phase's name.
func (p Phase) String() string {
	names := [PhaseCount]string{"starting", "running", "unhealthy", "marked", "stopping", "away", "gone"}
	if p >= PhaseCount {
		return "unknown phase"
	}
	return names[p]
}

// phaseOf is the phase of an allocation, nil for one whose record is gone.
func phaseOf(a *cluster.Allocation) Phase {
	switch {
	case a == nil || !opinion.Live(a):
		return Gone
	case a.ClientStatus == cluster.ClientUnknown:
		return Away
	case opinion.Stopping(a):
		return Stopping
	case opinion.Asked(a):
		return Marked
	case a.ClientStatus == cluster.ClientPending:
		return Starting
	}
	if healthy, judged := opinion.Verdict(a); judged && !healthy {
		return Unhealthy
	}
	return Running
}

// row is the life of one allocation on a drained node.
type row struct {
	id    cluster.AllocID
	name  string // for people: "web[0]"
	group cluster.GroupKey
	turn  opinion.Turn
	// changes are the phases it came into, each other than the one before it.
	changes []change
	// counted says that it counts among those that the running drain has to see go.
	counted bool
	// next is what was placed for it elsewhere, or nil.
	next *replacement
}

// change is a time at which a row came into a phase.
type change struct {
	at    time.Duration
	phase Phase
}

// replacement is an allocation that was placed for one on a drained node.
type replacement struct {
	id     cluster.AllocID
	node   cluster.NodeID
	placed time.Duration
	// healthy is when it was judged healthy, or negative if it never was.
	healthy time.Duration
}

// phase is the newest phase.
func (w *row) phase() Phase { return w.changes[len(w.changes)-1].phase }

// enter has the row be in a phase from a time on.
func (w *row) enter(at time.Duration, p Phase) {
	if len(w.changes) == 0 || w.phase() != p {
		w.changes = append(w.changes, change{at, p})
	}
}

// goneAt is when the allocation ended, and false if it has not.
func (w *row) goneAt() (time.Duration, bool) {
	last := w.changes[len(w.changes)-1]
	return last.at, last.phase == Gone
}

// moved reports whether the allocation was marked, and left.
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
