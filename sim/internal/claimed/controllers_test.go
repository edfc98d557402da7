//race:skip one goroutine
package claimed_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Calls of controllers: each rule is broken once, and similar calls are allowed.
func TestJudge_Called(t *testing.T) {
	t.Parallel()
	attach := world.ControllerCall{Term: 1, Volume: data(), Node: "n1", On: "c1", Completes: true, Waits: true, Reachable: true}
	call := func(edit func(*world.ControllerCall)) world.ControllerCall {
		c := attach
		edit(&c)
		return c
	}
	timedOut := call(func(c *world.ControllerCall) { c.Waits = false })
	detach := call(func(c *world.ControllerCall) { c.Detach, c.On = true, "c2" })
	for name, test := range map[string]struct {
		call    world.ControllerCall
		open    []world.ControllerCall
		mounted bool
		force   bool
		want    []string
	}{
		"the first call":                 {attach, nil, true, false, nil},
		"after a call that timed out":    {attach, []world.ControllerCall{timedOut}, false, false, nil},
		"two at once":                    {attach, []world.ControllerCall{attach}, false, false, []string{"two calls in flight"}},
		"two at once, for two nodes":     {attach, []world.ControllerCall{call(func(c *world.ControllerCall) { c.Node = "n2" })}, false, false, []string{"two calls in flight"}},
		"two at once, for two volumes":   {attach, []world.ControllerCall{call(func(c *world.ControllerCall) { c.Volume.ID = "logs" })}, false, false, nil},
		"two at once, of two leaders":    {attach, []world.ControllerCall{call(func(c *world.ControllerCall) { c.Term = 0 })}, false, false, nil},
		"undone by another controller":   {detach, []world.ControllerCall{timedOut}, false, false, []string{"overtaken call"}},
		"undone by the same controller":  {call(func(c *world.ControllerCall) { c.Detach = true }), []world.ControllerCall{timedOut}, false, false, nil},
		"undone by one of several":       {call(func(c *world.ControllerCall) { c.Detach, c.On, c.Completes = true, "c2", false }), []world.ControllerCall{timedOut}, false, false, nil},
		"undone when the first one went": {detach, []world.ControllerCall{call(func(c *world.ControllerCall) { c.Waits, c.Reachable = false, false })}, false, false, nil},
		"undone on another node":         {detach, []world.ControllerCall{call(func(c *world.ControllerCall) { c.Waits, c.Node = false, "n2" })}, false, false, nil},
		"detached while it is mounted":   {detach, nil, true, false, []string{"detached too early"}},
		"detached by force":              {detach, nil, true, true, nil},
	} {
		w := newHistory(t, true)
		var mounts []double.Mount
		if test.mounted {
			mounts = w.mounts[0]
		}
		if test.force {
			w.force()
		}
		w.judge.Called(start(), test.call, test.open, mounts)
		w.mounts[0] = nil
		must.Eq(t, test.want, w.checks(), must.Sprint(name))
	}
}

// By the state the volume is detached, or no longer has a claim of it.
func TestJudge_Detached(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   world.Attachment
		want []string
	}{
		"detached":       {world.Attachment{}, nil},
		"still attached": {world.Attachment{Attached: true}, []string{"freed while attached", "left attached"}},
		"attached in an order that no leader could prevent": {world.Attachment{Attached: true, Astray: true}, nil},
	} {
		w := newHistory(t, true)
		w.mounts[0] = nil
		w.change(cluster.CauseAttached, 0)
		w.change(cluster.CauseNode, 0)
		test.in.Volume, test.in.Node = data(), "n1"
		w.attached = []world.Attachment{test.in}
		u := cluster.ClaimUpdate{At: start().Add(time.Second), Changes: []cluster.ClaimChange{{Claim: cluster.ClaimKey{Volume: data(), Alloc: "a1"}, Node: "n1", Cause: cluster.CauseDetached}}}
		before, after := w.update(&u)
		w.judge.Detached(u.At, shims.Applied{Index: w.index, Before: before, After: after, Message: &shims.ClaimUpdate{ClaimUpdate: u}}, w.attached)
		must.Eq(t, test.want, w.checks(), must.Sprint(name))
	}
}
