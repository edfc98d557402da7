package drainer

import (
	"log/slog"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// unsurging is a state whose views are no rules.SurgeView, or state that nothing is placed beside.
type unsurging struct {
	*memory
	states bool
}

func (s unsurging) Snapshot() rules.View {
	view := struct{ rules.View }{s.memory.Snapshot()}
	if s.states {
		return besideNothing(view)
	}
	return view
}

type besideNothing struct{ rules.View }

func (besideNothing) PlacesBeside() bool { return false }

// A term logs once that max_surge has no effect on its state.
func TestTerm_withoutSurge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state func(*memory) StateReader
		lines int
	}{
		"placed beside": {func(m *memory) StateReader { return m }, 0},
		"not stated":    {func(m *memory) StateReader { return unsurging{m, false} }, 1},
		"stated":        {func(m *memory) StateReader { return unsurging{m, true} }, 1},
	} {
		written := &journal{}
		h := newHarness(t, fixture.NewCluster(2, 1), nil)
		h.config.Logger = slog.New(written)
		term, err := NewTerm(h.config, c.state(h.state), h.wake)
		must.NoError(t, err)
		for range 3 {
			h.commit(func(*fixture.Cluster) {})
			term.Step(h.now)
			h.raft.answer()
			term.Step(h.now)
		}
		term.Close()
		must.Len(t, c.lines, written.with("max_surge has no effect"), must.Sprint(name, written.lines))
	}
}
