package drain

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"
)

// A line shows how long a plan takes, from two seconds on. It is erased at the end, and is not wider than the
// terminal.
func TestShowWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shown := func(took time.Duration, width int) string {
			var out strings.Builder
			end := showWait(&out, width)
			time.Sleep(took)
			synctest.Wait()
			end()
			return strings.ReplaceAll(out.String(), eraseLine, "|")
		}
		must.Eq(t, "", shown(1900*time.Millisecond, 80))
		must.Eq(t, "|A server plays the drains: 2s, at most 2m0s|A server plays the drains: 3s, at most 2m0s|", shown(3500*time.Millisecond, 80))
		must.Eq(t, "|A server …|", shown(2500*time.Millisecond, 11))
	})
}
