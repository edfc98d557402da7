package main

import (
	"bytes"
	"os"
	"testing"
	"testing/synctest"

	"github.com/shoenig/test/must"
)

// The output of the program. docs/embedding.md quotes it.
func TestPlay(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/play.golden")
	must.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := clusterOf(t)
		last := newState()
		c.after = func() {
			synctest.Wait()
			narrate(&out, c.now, last, c.state())
			last = c.state()
		}
		must.NoError(t, play(&out, c))
		must.Eq(t, string(want), out.String())
		check(t, c, "drain-key-1", "complete")
	})
}
