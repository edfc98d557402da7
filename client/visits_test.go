package client_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The work of the core grows with what happens, and not with the square of it: four times the
// allocations make four times the visits, while they are placed, while they stop, and while the
// storage plugin fails each call. Each visit has a cause: the begin or the answer of an effect, or a
// time that has come. A visit may need a second one.
func TestCore_visitsWhatHappens(t *testing.T) {
	t.Parallel()
	for name, volumes := range map[string]string{"a volume each": "v", "one volume for all": "shared", "without volumes": ""} {
		t.Run(name, func(t *testing.T) {
			few, many := visitsOf(t, 30, volumes), visitsOf(t, 120, volumes)
			for phase := range few {
				must.LessEq(t, 5*few[phase].visits, many[phase].visits, must.Sprint("phase ", phase, ": ", few[phase], many[phase]))
				must.LessEq(t, 4*many[phase].effects, many[phase].visits, must.Sprint("phase ", phase, ": ", many[phase]))
			}
		})
	}
}

type work struct{ visits, effects int }

// visitsOf returns the work while allocations are placed, while they run, while they stop, and in a
// later minute, in which the storage plugin still fails. The allocations use no volume, one that is
// "shared", or one each, whose name begins so.
func visitsOf(t *testing.T, count int, volumes string) (phases [4]work) {
	n := newNode(t)
	n.counting = true
	n.placePlugin("plugin")
	for i, begin := range []func(){
		func() {
			for i := range count {
				a := allocation(cluster.AllocID(fmt.Sprintf("a%05d", i)), mainTask("web"))
				switch volumes {
				case "":
				case "shared":
					withVolumes(a, "shared")
				default:
					withVolumes(a, cluster.VolumeID(fmt.Sprint(volumes, i)))
				}
				n.place(a)
			}
		},
		func() {
			for _, call := range []string{"unpublish", "unstage"} {
				n.storage.failing[call] = errors.New("the storage does not answer")
			}
		},
		func() {
			for _, a := range n.allocs {
				n.stop(a.ID)
			}
		},
		func() {},
	} {
		before := work{client.Visits(n.core), n.effects}
		begin()
		n.run(time.Minute)
		phases[i] = work{client.Visits(n.core) - before.visits, n.effects - before.effects}
	}
	return phases
}
