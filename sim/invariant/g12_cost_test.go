package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// followed has the drainer follow jobs.
func followed(ids ...cluster.JobID) func(*invariant.Quiet) {
	return func(q *invariant.Quiet) {
		for _, id := range ids {
			q.Followed = append(q.Followed, jobKey(id))
		}
	}
}

func brokenCost() []broken {
	return []broken{
		{"a job that is followed after its drain", invariant.FollowedForNothing, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.cancel("n1")
			s.look(1)
			s.still(followed("web"))
			return s
		}},
		{"a job that is followed while another drains", invariant.FollowedForNothing, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.quiet(followed("other", "web"))
			return s
		}},
	}
}

func fineCost() []fine {
	return []fine{
		{"a job that is followed while a drain waits for its replacement", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.quiet(followed("web"))
			s.wait(time.Minute)
			s.still(followed("web"))
			return s
		}},
		{"a job that is followed although the drainer has not looked since", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.cancel("n1")
			s.still(held, followed("web"))
			return s
		}},
	}
}
