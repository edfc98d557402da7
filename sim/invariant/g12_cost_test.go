package invariant_test

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// followed reports jobs that the drainer follows.
func followed(ids ...cluster.JobID) func(*invariant.Quiet) {
	return func(q *invariant.Quiet) {
		for _, id := range ids {
			q.Followed = append(q.Followed, jobKey(id))
		}
	}
}
