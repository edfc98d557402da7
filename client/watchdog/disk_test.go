package watchdog

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"
)

// A write that does not return delays the watchdog once, for a second. When the disk answers again, all
// writes are made in their order.
func TestDisk_hangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		d := newDisk(&log)
		defer close(d.writes)
		refused := errors.New("no space")
		must.ErrorIs(t, d.await(func() error { return refused }), refused)
		began, answers := time.Now(), make(chan struct{})
		must.ErrorIs(t, d.await(func() error {
			<-answers
			log.WriteString("1")
			return nil
		}), errDisk)
		must.EqOp(t, diskWait, time.Since(began))
		write := func(text string) error {
			return d.await(func() error {
				log.WriteString(text)
				return nil
			})
		}
		must.ErrorIs(t, write("2"), errDisk)
		for range maxWrites {
			_, err := d.Write([]byte("x"))
			must.NoError(t, err)
		}
		must.EqOp(t, diskWait, time.Since(began))
		close(answers)
		synctest.Wait()
		must.NoError(t, write("3"))
		must.EqOp(t, "12"+strings.Repeat("x", maxWrites-1)+"3", log.String())
	})
}
