package drainer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// interrupted is a state that makes one of its changes right after each view is taken. Only the
// drainer's goroutine reads it.
type interrupted struct {
	*memory
	changes []func(*fixture.Cluster)
}

func (s *interrupted) Snapshot() rules.View {
	view := s.memory.Snapshot()
	if len(s.changes) > 0 {
		change := s.changes[0]
		s.changes = s.changes[1:]
		s.commit(change)
	}
	return view
}

// The state changes during a step, after the step took its view. The next step plans from the
// change, although the state does not change again.
func TestNodeDrainer_StateChangesDuringAStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, fixture.NewCluster(3, 2), time.Millisecond)
		state := &interrupted{memory: s.state, changes: []func(*fixture.Cluster){
			func(w *fixture.Cluster) { w.StartDrain("n1", 0) },
			func(w *fixture.Cluster) { w.StartDrain("n2", 0) },
		}}
		must.NoError(t, s.SetEnabled(true, state))
		time.Sleep(time.Second)
		synctest.Wait()
		must.SliceEmpty(t, state.changes)
		must.True(t, s.state.now().Alloc("a1").Marked())
		running, err := s.Status()
		must.NoError(t, err)
		must.Len(t, 2, running)
		s.end(t)
	})
}
