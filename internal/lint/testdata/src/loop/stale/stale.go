// Package stale is a fixture: a step that breaks nothing.
package stale

import "time"

// T decides.
type T struct{}

// Step is where the walk begins.
func (T) Step(now time.Time) (wakeAt time.Time) { return now.Add(time.Hour) }
