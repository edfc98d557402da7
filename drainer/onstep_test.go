package drainer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"
)

// Each step is told of when it is over, and none when nothing happens.
func TestNodeDrainer_OnStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, newTown(1, 0), time.Millisecond)
		steps := 0
		s.config.OnStep = func(took time.Duration) {
			must.Eq(t, 0, took) // no time passes in a step
			steps++
		}
		s.enable(t, true)
		time.Sleep(time.Second)
		synctest.Wait()
		first := steps
		must.Positive(t, first)
		time.Sleep(time.Hour)
		synctest.Wait()
		must.Eq(t, first, steps)
		s.state.commit(func(w *town) { w.drain("n1", time.Hour) })
		time.Sleep(time.Second)
		synctest.Wait()
		must.Greater(t, first, steps)
		s.end(t)
	})
}
