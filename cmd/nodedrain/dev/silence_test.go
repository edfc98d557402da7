package dev

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"
)

// Bug: the start of a cluster whose nodes or jobs came late printed nothing.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := &Cluster{config: Config{Progress: &out}, failed: make(chan error)}
		began := time.Now()
		must.NoError(t, c.await(t.Context(), "never", func() string {
			if time.Since(began) > 25*time.Second {
				return ""
			}
			return "node-1: no driver"
		}))
		must.ErrorContains(t, c.await(t.Context(), "the jobs do not run", func() string { return "the jobs" }), "the jobs do not run: ")
		must.Eq(t, "Still waiting for node-1: no driver (10s)\nStill waiting for node-1: no driver (20s)\n"+
			"Still waiting for the jobs (10s)\nStill waiting for the jobs (20s)\n", out.String())
	})
}
