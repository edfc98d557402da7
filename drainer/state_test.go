package drainer

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The changes that no step has read are bounded. Beyond the bound they become All, so that no
// change is lost.
func TestChanges_MergeIsBounded(t *testing.T) {
	t.Parallel()
	var c Changes
	must.True(t, c.Empty())
	c.merge(Changes{Abandoned: true})
	for i := range 3 * maxChanges {
		c.merge(Changes{Nodes: []cluster.NodeID{cluster.NodeID(fmt.Sprint(i))}})
		must.LessEq(t, maxChanges+1, len(c.Nodes))
		must.True(t, c.All || len(c.Nodes) == i+1)
	}
	must.True(t, c.All)
	must.True(t, c.Abandoned)
	must.False(t, c.Empty())
}
