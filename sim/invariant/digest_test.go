package invariant_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// Times in other zones are equal. A row of an allocation contains the version of its job, and not the
// job: its content is in its own entry.
func TestDigest_ofARow(t *testing.T) {
	t.Parallel()
	digest := func(change func(*cluster.Allocation)) uint64 {
		a := &cluster.Allocation{ID: "a1", CreateTime: epoch, Job: &cluster.Job{Version: 1}}
		change(a)
		return invariant.DigestOf(a)
	}
	plain := digest(func(*cluster.Allocation) {})
	must.Eq(t, plain, digest(func(a *cluster.Allocation) { a.CreateTime = epoch.In(time.FixedZone("", 3600)) }))
	must.Eq(t, plain, digest(func(a *cluster.Allocation) { a.Job.Priority = 50 }))
	must.NotEq(t, plain, digest(func(a *cluster.Allocation) { a.Job.Version = 2 }))
	must.NotEq(t, plain, invariant.DigestOf[cluster.Allocation](nil))
	a, b := &cluster.Evaluation{ID: "ab", JobID: "c"}, &cluster.Evaluation{ID: "a", JobID: "bc"}
	must.NotEq(t, invariant.DigestOf(a), invariant.DigestOf(b))
}
