package client_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The servers lose an end that they had taken, and take no report. The client removes ended allocations meanwhile, but
// not this one: without its record nothing would report the end again. Bug: no test removed one between the loss and
// the report, so none failed if the client removed this one too.
func TestOlderCopy_endBeforeARemoval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lost, unreadable bool }{
		"the servers have the end": {lost: false},
		"it is lost":               {lost: true},
		"it is lost, and the client cannot read the row": {lost: true, unreadable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.place(allocation("a", mainTask("web")))
			reaches(n, "a", cluster.ClientRunning, time.Minute)
			rollBack := copied(n)
			ends(n, "a", time.Minute)
			n.silent = true
			if c.unreadable {
				n.unreadable = map[cluster.AllocID]string{"a": tooDeep}
			}
			if c.lost {
				rollBack()
				n.run(10 * client.DefaultMaxRetry)
			}
			n.fullDisk, n.roomAfter = true, 1 // the record of the next one has no room
			n.place(allocation("b", mainTask("other")))
			n.run(10 * client.DefaultMaxRetry)
			if !c.lost {
				must.Eq(t, []cluster.AllocID{"a"}, n.discarded)
				return
			}
			must.SliceEmpty(t, n.discarded, must.Sprint(n.storyOf()))
			n.silent = false
			reaches(n, "a", cluster.ClientComplete, 10*client.DefaultMaxRetry)
			reaches(n, "b", cluster.ClientRunning, 10*client.DefaultMaxRetry)
			must.Eq(t, []cluster.AllocID{"a"}, n.discarded, must.Sprint("it has the room that it needs"))
			must.SliceLen(t, 1, n.live(""))
		})
	}
}
