package opinion_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// What a report leaves of a record is the same in package cluster.
func TestUnlisted_agreesWithPackageCluster(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	some := func(of int) *cluster.UnlistedAllocs {
		var ids []cluster.AllocID
		for i := range of {
			if rng.IntN(2) == 0 {
				ids = append(ids, cluster.AllocID(fmt.Sprintf("a%02d", i)))
			}
		}
		return cluster.NewUnlistedAllocs(ids)
	}
	for range 2000 {
		of := 5 + rng.IntN(60)
		was, report := some(of), some(of)
		left := was.LeftIn(report)
		after := opinion.UnlistedIn(was).After(report)
		must.True(t, after.Same(left), must.Sprint(was, report, left, after))
		must.Eq(t, opinion.UnlistedIn(was), opinion.UnlistedIn(was).After(nil))
	}
}
