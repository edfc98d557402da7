package statestore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// ErrNotDraining means that a node does not drain. Start a drain first.
var ErrNotDraining = errors.New("node does not drain")

// ErrNotPausable is wrapped by errors that refuse the pause of a drain. Cancel the drain instead, or change its
// deadline.
var ErrNotPausable = errors.New("drain cannot be paused")

// PauseDrains pauses or resumes one drain, or all. The error wraps [ErrNodeNotFound], [ErrNotDraining] or
// [ErrNotPausable].
func PauseDrains(t *Txn, u cluster.DrainPauseUpdate) (cluster.DrainPauseResult, error) {
	u.At = u.At.UTC()
	w := pauseWriter{&t.rows, t.State()}
	w.rows.written.journals.at = u.At
	w.rows.written.journals.pausing = true
	switch {
	case u.Node != "":
		return w.one(u)
	case u.Pause:
		return w.all(u), nil
	}
	return w.resumeAll(u), nil
}

// pauseWriter writes the pauses of one transaction.
type pauseWriter struct {
	rows *rowWrites
	// before is the state before the request.
	before State
}

// one pauses or resumes one drain.
func (w pauseWriter) one(u cluster.DrainPauseUpdate) (cluster.DrainPauseResult, error) {
	n, all := w.before.Node(u.Node), w.before.DrainPause()
	switch {
	case n == nil:
		return cluster.DrainPauseResult{}, fmt.Errorf("node %s: %w", u.Node, ErrNodeNotFound)
	case !n.Draining():
		return cluster.DrainPauseResult{}, fmt.Errorf("node %s: %w", u.Node, ErrNotDraining)
	}
	since := n.Drain.PausedSince(all)
	if why := n.Drain.WhyNotPaused(u.At); u.Pause && since.IsZero() && why != "" {
		return cluster.DrainPauseResult{}, fmt.Errorf("node %s: %w: %s", u.Node, ErrNotPausable, why)
	}
	result := cluster.DrainPauseResult{All: all}
	after, kind := n, journal.Paused
	switch {
	case u.Pause:
		if paused := lifecycle.PauseDrain(n, all, u, w.rows.written.index); paused != nil {
			after = paused
		}
	case !since.IsZero() && !all.Holds(n.Drain):
		after, kind = lifecycle.ResumeDrain(n, since, u.At, w.rows.written.index), journal.Resumed
	}
	if after != n {
		result.Changed = true
		w.rows.putNode(n, after)
		w.note(n.Drain.ID, kind, u.At, u.By)
	}
	result.Drains = []cluster.PausedDrain{w.describe(after)}
	return result, nil
}

// all pauses all drains with one row. It makes no drain's row newer, so it wakes the feeds of all.
func (w pauseWriter) all(u cluster.DrainPauseUpdate) cluster.DrainPauseResult {
	result := cluster.DrainPauseResult{All: w.before.DrainPause()}
	if result.All == nil {
		result.All, result.Changed = &cluster.DrainPause{At: u.At, By: u.By}, true
		w.rows.insert(tablePause, &pauseRow{*result.All})
		w.touchAll()
	}
	for n := range w.before.DrainingNodes() {
		described := w.describe(n)
		if !result.All.Holds(n.Drain) {
			described.Why = n.Drain.WhyNotPaused(result.All.At)
			result.Skipped = append(result.Skipped, described)
			continue
		}
		result.Drains = append(result.Drains, described)
	}
	return result
}

// resumeAll ends the pause of all.
func (w pauseWriter) resumeAll(u cluster.DrainPauseUpdate) cluster.DrainPauseResult {
	var result cluster.DrainPauseResult
	all := w.before.DrainPause()
	if all == nil {
		return result
	}
	result.Changed = true
	w.rows.delete(tablePause, &pauseRow{*all})
	w.touchAll()
	for _, n := range slices.Collect(w.before.DrainingNodes()) {
		if !all.Holds(n.Drain) {
			continue
		}
		since := n.Drain.PausedSince(all)
		if n.Drain.Paused != nil {
			if since.Before(n.Drain.Paused.At) {
				w.rows.putNode(n, lifecycle.PausedBefore(n, since, w.rows.written.index))
			}
			continue
		}
		after := lifecycle.ResumeDrain(n, since, u.At, w.rows.written.index)
		w.rows.putNode(n, after)
		w.note(n.Drain.ID, journal.Paused, since, all.By)
		w.note(n.Drain.ID, journal.Resumed, u.At, u.By)
		result.Drains = append(result.Drains, w.describe(after))
	}
	return result
}

// touchAll moves the index of nodes and makes the feeds report all draining nodes.
func (w pauseWriter) touchAll() {
	w.rows.counters.Nodes = w.rows.written.index
	for n := range w.before.DrainingNodes() {
		w.rows.written.changes.nodes = append(w.rows.written.changes.nodes, n.ID)
	}
}

// note adds an event to the journal of a drain.
func (w pauseWriter) note(id cluster.DrainID, kind journal.Kind, at time.Time, by string) {
	journalWriter{w.rows}.journal(id).Add(journal.Event{Kind: kind, At: at, Index: w.rows.written.index, By: by})
}

func (w pauseWriter) describe(n *cluster.Node) cluster.PausedDrain {
	d := cluster.PausedDrain{Drain: n.Drain.ID, Node: n.ID, ForceDeadline: n.Drain.Strategy.ForceDeadline}
	for a := range w.before.DrainView().DrainAllocs(n.Drain.ID) {
		if !a.ClientTerminal() {
			d.Stopping++
		}
	}
	return d
}

// pauseRow is the pause of all drains. There is at most one.
type pauseRow struct{ cluster.DrainPause }

func pauseID(*pauseRow) key { return key{0} }

// DrainPause returns the pause of all drains, or nil.
func (l lookups) DrainPause() *cluster.DrainPause {
	if row := first[pauseRow](l.tables, tablePause, indexID, pauseID(nil)); row != nil {
		return &row.DrainPause
	}
	return nil
}
