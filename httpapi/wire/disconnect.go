package wire

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Disconnect is how a group behaves when its node is out of touch.
type Disconnect struct {
	// LostAfter and StopOnClientAfter are in nanoseconds.
	LostAfter         *time.Duration
	StopOnClientAfter *time.Duration `json:",omitempty"`
	// Replace is true if nil.
	Replace *bool
	// Reconcile is keep_original or keep_replacement. best_score and longest_running act as keep_original.
	Reconcile *string
}

// The values of [Disconnect.Reconcile].
const (
	keepOriginal    = "keep_original"
	keepReplacement = "keep_replacement"
	bestScore       = "best_score"
	longestRunning  = "longest_running"
)

// newDisconnect returns the block, or nil if it has only defaults.
func newDisconnect(d cluster.DisconnectStrategy) *Disconnect {
	if d == (cluster.DisconnectStrategy{}) {
		return nil
	}
	w := &Disconnect{LostAfter: new(d.LostAfter), Replace: new(!d.NoReplace), Reconcile: new(keepOriginal)}
	if d.KeepReplacement {
		w.Reconcile = new(keepReplacement)
	}
	if d.StopOnClientAfter != 0 {
		w.StopOnClientAfter = new(d.StopOnClientAfter)
	}
	return w
}

// disconnectOf converts the block of a group. The block takes precedence over the older names.
func disconnectOf(w *TaskGroup) (d cluster.DisconnectStrategy, err error) {
	d = cluster.DisconnectStrategy{
		LostAfter: orZero(w.MaxClientDisconnect), StopOnClientAfter: orZero(w.StopAfterClientDisconnect), NoReplace: orZero(w.PreventRescheduleOnLost),
	}
	if w.Disconnect == nil {
		return d, nil
	}
	override(&d.LostAfter, w.Disconnect.LostAfter)
	override(&d.StopOnClientAfter, w.Disconnect.StopOnClientAfter)
	if w.Disconnect.Replace != nil {
		d.NoReplace = !*w.Disconnect.Replace
	}
	switch choice := orZero(w.Disconnect.Reconcile); choice {
	case "", keepOriginal, bestScore, longestRunning:
	case keepReplacement:
		d.KeepReplacement = true
	default:
		return d, fmt.Errorf("Reconcile %q of Disconnect is none of %s, %s, %s and %s", cluster.CutText(choice), keepOriginal, keepReplacement, bestScore, longestRunning)
	}
	return d, nil
}
