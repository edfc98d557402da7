package world

import (
	"bytes"
	"fmt"
	"io"

	"github.com/hashicorp/raft"
)

// Restore has the leader's server restore a snapshot of its own state, as after
// an operator's recovery: its store is replaced under the running drainer, which
// gets one step on the store that was abandoned before the server enables it
// anew on the other.
func (w *World) Restore() error {
	m := w.leader.server.machine
	taken := m.state()
	snapshot, err := m.fsm.Snapshot()
	if err != nil {
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	defer snapshot.Release()
	var sink memorySink
	if err := snapshot.Persist(&sink); err != nil {
		return fmt.Errorf("persisting a snapshot: %w", err)
	}
	if err := m.fsm.Restore(io.NopCloser(&sink.Buffer)); err != nil {
		return fmt.Errorf("restoring a snapshot: %w", err)
	}
	for _, f := range w.onRestore {
		f(taken, m.state())
	}
	l := w.leader
	l.sight.abandoned = true
	for _, f := range w.onEnd {
		f(l.term) // its store is abandoned, and says so
	}
	if !l.server.paused(w.now) && !w.now.Before(l.established) {
		l.drainerActor.run()
	}
	return w.Depose(Election{Next: l.server.number})
}

// Forget has the leader's drainer lose all that it remembers: it is enabled anew over
// the same state, as if its server had led again.
func (w *World) Forget() error {
	return w.Depose(Election{Next: w.leader.server.number})
}

// memorySink is a raft.SnapshotSink in memory.
type memorySink struct{ bytes.Buffer }

var _ raft.SnapshotSink = (*memorySink)(nil)

func (*memorySink) ID() string    { return "in memory" }
func (*memorySink) Cancel() error { return nil }
func (*memorySink) Close() error  { return nil }
