package world

import "github.com/seed-f9cf0b39/nodedrain/drainer"

// LeaderReader is the reader of the leader's drainer. Its feeds are independent.
func (w *World) LeaderReader() drainer.StateReader { return w.Servers.leader.reader }
