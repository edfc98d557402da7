package invariant_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// The text of a violation names the origin of an idle wake-up, and the reason of a refusal.
func TestViolation_Text(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		run        func(t *testing.T) *fixture
	}{
		{"an older deadline", "drain dn1, node n1: term 1 woke at 2030-01-01 00:01:00 +0000 UTC, but nothing was due: the drain had its deadline then, but has another one now", func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.cancel("n1")
			s.stepUntil(1, true, s.now.Add(time.Minute))
			s.wait(time.Minute)
			s.due(1)
			return s
		}},
		{"a wait that is too long", ": 1 writes failed in a row, the last at 2030-01-01 00:00:00 +0000 UTC", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.fail(raftwrite.Rejected)
			s.stepUntil(1, false, s.now.Add(time.Second))
			s.wait(time.Second)
			s.due(1)
			return s
		}},
		{"an idle write", `node n1, allocation a1: an item of entry 11 had no effect in the state from which it was planned: "the group has no room"`, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.unhealthy("a3")
			s.look(1)
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"a valid mark refused", `the FSM refused a valid mark paced: "no"`, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.refuse(s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"a valid end refused", `the drain has nothing left to wait for: "not now"`, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.ended("a1")
			s.fake(s.ends("n1"), shims.CompletionsApplied{Refused: []rules.Refusal{{Node: "n1", Why: "not now"}}}, func(*statestore.Txn) {})
			return s
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			violations := c.run(t).j.Violations()
			must.SliceNotEmpty(t, violations)
			must.StrContains(t, violations[0].String(), c.want)
		})
	}
}
