package cluster

import "time"

// DrainPause is a pause of one drain ([Drain].Paused), or of all drains. It is shared and never written to.
type DrainPause struct {
	// At is the proposer's time since which the drain is paused without a break. For a pause of all it is the
	// time of the request.
	At time.Time
	// By is the operator who requested the pause, or empty.
	By string `codec:",omitempty"`
}

// Holds reports whether a pause of all holds a drain. It does not hold a forced drain, or one whose deadline had
// passed before the pause. The deadline of a drain with a pause of its own does not pass. A nil pause holds nothing.
func (p *DrainPause) Holds(d *Drain) bool {
	return p != nil && (d.Paused != nil || !d.Strategy.Passed(p.At))
}

// PausedSince returns since when a drain is paused without a break, by its own pause or by the pause of all, or zero
// if it is not paused. all is the pause of all, or nil.
func (d *Drain) PausedSince(all *DrainPause) time.Time {
	var since time.Time
	if all.Holds(d) {
		since = all.At
		if since.Before(d.Strategy.StartedAt) {
			since = d.Strategy.StartedAt
		}
	}
	if d.Paused != nil && (since.IsZero() || d.Paused.At.Before(since)) {
		since = d.Paused.At
	}
	return since
}

// DrainPauseUpdate is an operator's request to pause or to resume one drain, or all.
type DrainPauseUpdate struct {
	// Node is the node of the drain, or empty for all drains.
	Node NodeID
	// Pause means to pause. Otherwise the request resumes.
	Pause bool
	// At is the proposer's time, which the server sets.
	At time.Time
	// By is the operator, or empty.
	By string
}

// DrainPauseResult is the result of a [DrainPauseUpdate].
type DrainPauseResult struct {
	// Changed reports whether the request changed anything. A pause of what is paused changes nothing, and so does a
	// resume of what is not paused. A resume of one drain changes nothing while the pause of all holds it.
	Changed bool
	// All is the pause of all after the request, or nil.
	All *DrainPause
	// Drains are, by node, the drains that the request paused or resumed. A drain that stays paused
	// after a resume of all, because it has a pause of its own, is not among them.
	Drains []PausedDrain
	// Skipped are, by node, the drains that a pause of all does not hold.
	Skipped []PausedDrain
}

// DrainPauseWritten is the result of a [DrainPauseUpdate] with the index of its entry.
type DrainPauseWritten struct {
	Written
	DrainPauseResult
}

// PausedDrain is a drain that a request concerned.
type PausedDrain struct {
	Drain DrainID
	Node  NodeID
	// Why is why a pause does not hold the drain, or empty.
	Why string
	// ForceDeadline is the deadline after the request, or zero.
	ForceDeadline time.Time
	// Stopping counts the marked allocations that have not ended. They leave the node all the same.
	Stopping int
}

// The reasons of [PausedDrain].
const (
	PauseForced = "the drain is forced"
	PausePassed = "its deadline has passed"
)

// WhyNotPaused returns why a pause at a time does not hold a drain, or empty if it does.
func (d *Drain) WhyNotPaused(at time.Time) string {
	switch {
	case d.Strategy.Forced():
		return PauseForced
	case d.Strategy.Passed(at):
		return PausePassed
	}
	return ""
}
