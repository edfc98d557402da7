package volume_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
)

// Each call is either repeated after an error of a class, within the longest wait, or the error is final until
// something changes. Bug: no test had an unstage that is refused.
func TestVolumes_retries(t *testing.T) {
	t.Parallel()
	const retried, final = true, false
	classes := []storage.Class{storage.Transient, storage.Refused, storage.Unimplemented, storage.NotStaged}
	for step, expected := range map[scripted.Step][4]bool{
		//                      transient refused unimplemented not staged
		scripted.Claiming:     {retried, final, retried, retried},
		scripted.Staging:      {retried, final, final, retried},
		scripted.Publishing:   {retried, final, final, retried},
		scripted.Unpublishing: {retried, retried, final, retried},
		scripted.Unstaging:    {retried, retried, final, retried},
		scripted.Releasing:    {retried, retried, retried, retried},
	} {
		for i, class := range classes {
			for _, action := range []drivers.Action{drivers.Fail, drivers.FailAfter} {
				t.Run(fmt.Sprint(step, " class ", class, " action ", action), func(t *testing.T) {
					t.Parallel()
					testRetries(t, step, drivers.Fault{Action: action, Err: storage.Errorf(class, "no")}, expected[i])
				})
			}
		}
	}
}

func testRetries(t *testing.T, step scripted.Step, fault drivers.Fault, retried bool) {
	const failures = 12 // more than until the longest wait
	n := newNode(t)
	for range failures {
		n.faults[step.String()] = append(n.faults[step.String()], fault)
	}
	n.mount("a", "data")
	n.run(time.Second)
	if step >= scripted.Unpublishing {
		n.stop("a")
	}
	n.run(time.Hour)
	var made []time.Time
	for _, c := range n.storage.Calls(0) {
		if c.Step == step {
			made = append(made, c.At)
		}
	}
	if retried {
		must.GreaterEq(t, failures, len(made), must.Sprint(n.story))
		must.MapEmpty(t, faultsLeft(n))
		for i := range made[1:] {
			must.LessEq(t, volume.DefaultMaxRetry+time.Second, made[i+1].Sub(made[i]))
		}
	} else {
		must.SliceLen(t, 1, made, must.Sprint(n.story))
	}
	clear(n.faults)
	n.volumes.Retry("a")
	n.setAway(true)
	n.setAway(false) // another process of the plugin may implement the call
	n.run(time.Minute)
	if step < scripted.Unpublishing {
		must.True(t, n.running["a"], must.Sprint(n.story))
	}
	n.end("a")
}

// faultsLeft returns the names of calls that have not failed as often as they must.
func faultsLeft(n *node) map[string]int {
	left := map[string]int{}
	for name, faults := range n.faults { //lint:order a map
		if len(faults) > 0 {
			left[name] = len(faults)
		}
	}
	return left
}

// A mount is missing after a restart of the client, and others are there: each volume whose mount is missing is
// published again for its task, and no other one is. Bug: no test lost one of several mounts.
func TestVolumes_oneMountIsMissing(t *testing.T) {
	t.Parallel()
	allocs := []cluster.AllocID{"a", "b"}
	for _, lost := range allocs {
		for _, id := range []string{"data", "logs"} {
			n := newNode(t)
			for _, alloc := range allocs {
				n.mount(alloc, "data", "logs")
			}
			n.run(time.Second)
			must.SliceLen(t, 6, n.storage.Mounts(), must.Sprint("two stages, four targets"))
			n.storage.Lose(target(lost, id))
			n.story = nil
			n.restarts(time.Minute)
			must.True(t, n.mounted(target(lost, id)))
			n.happened("the client is killed", "claim "+id, "publish "+id)
			n.end(allocs...)
		}
	}
}
