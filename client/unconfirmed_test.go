package client_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"
)

// The disk is full when an allocation ends, and the client dies after it has unmounted the volume
// and reported the end. The record of the allocation states that its task runs, and a record of the
// volume states that it is published. Bug: the next client mounted the volume again until it noticed
// that the task had ended. The report of the dead client was still in flight and freed the claim,
// so the volume was on the node without a claim.
func TestVolumes_endOfADeadClient(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"the volume has an old record": true, "the volume has no record": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newMounted(t)
			if shared {
				n.place(withVolumes(allocation("b", mainTask("other")), "data"))
				n.run(time.Minute)
			}
			n.fullDisk, n.silent = true, true
			leaves(n, "a", time.Minute)
			must.SliceEmpty(t, n.live("web"))
			must.EqOp(t, shared, n.storage.disk[dataKey] != nil)
			before := len(n.storage.calls)
			n.fullDisk, n.silent = false, false
			n.storage.Lose(busyTarget("a", "data")) // the dead client has unmounted it, also if its record is old
			restarts(n, time.Minute)
			completed(n, "a")
			for _, call := range n.storage.calls[before:] {
				must.SliceContains(t, []string{"unpublish", "release"}, call)
			}
			if shared {
				must.SliceLen(t, 1, n.storage.published())
				end(n, "b")
			}
			n.storage.empty()
		})
	}
}

// A target of a running task was unmounted while no client ran. The next client publishes the
// volume again, when the driver states that the task runs.
func TestVolumes_missingMountOfARunningTask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ loseRecord, noAnswer bool }{
		"with its record":                         {},
		"without its record":                      {loseRecord: true},
		"the driver does not answer at first":     {noAnswer: true},
		"without its record, and no first answer": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newMounted(t)
			n.storage.Lose(busyTarget("a", "data"))
			if c.loseRecord {
				clear(n.storage.disk)
			}
			if c.noAnswer {
				n.scripts["web"] = script{hangsAt: "InspectTask", hangsOnce: true}
			}
			restarts(n, 5*time.Minute)
			must.SliceLen(t, 1, n.live("web"))
			must.SliceLen(t, 1, n.storage.published())
			end(n, "a")
		})
	}
}
