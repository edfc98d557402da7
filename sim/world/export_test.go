package world

import "github.com/seed-f9cf0b39/nodedrain/drainer"

// LeadersSight is how the leader's drainer sees its state, with feeds of its own.
func (w *World) LeadersSight() drainer.StateReader { return w.leader.sight }
