//race:skip one goroutine
package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// lasted plays events and returns the length of the run.
func lasted(t *testing.T, events string) time.Duration {
	t.Helper()
	const setup = "node n1..n3\njob web count=2\nalloc web[0..1] on=n1,n2\n"
	s, _, err := scenario.Parse("test"+scenario.Extension, strings.NewReader(setup+events))
	must.NoError(t, err)
	result, err := sim.Play(s, sim.Options{})
	must.NoError(t, err)
	must.SliceEmpty(t, result.Violations)
	return result.Lasted
}

// A run that ends with its drains waits for every event that may start one, and for no other.
func TestPlay_drained(t *testing.T) {
	t.Parallel()
	const late = "at 30m node n4 register\nat 1h node n5 register\n"
	for events, least := range map[string]time.Duration{
		"at 1s drain n1\n": time.Second,
		"at 1s drain n1\nat 1m before completion drain n1\n":        time.Second, // no such entry comes
		"at 1s drain n1\nat 10m drain n2\n":                         10 * time.Minute,
		"at 1s drain n1\nat 10m before plan drain n2\n":             time.Hour, // such an entry may still come
		"at 1s fault drain/again for=5m delay=2m\nat 1s drain n1\n": 5 * time.Minute,
		"at 1s drain n1\nat 2s elect believes=7m\n":                 7 * time.Minute,
	} {
		took := lasted(t, "node n4..n5 absent\n"+events+late+"run for=2h drained\n")
		must.GreaterEq(t, least, took, must.Sprint(events))
		must.Less(t, max(30*time.Minute+time.Second, 3*least), took, must.Sprint(events))
		must.GreaterEq(t, time.Hour, lasted(t, "node n4..n5 absent\n"+events+late+"run for=2h\n"), must.Sprint(events))
	}
}
