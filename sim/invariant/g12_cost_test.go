package invariant_test

import (
	"testing"
	"time"

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

func brokenCost() []broken {
	return []broken{
		{"a job followed after the end of its drain", invariant.NeedlesslyFollowed, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.cancel("n1")
			s.look(1)
			s.still(followed("web"))
			return s
		}},
		{"a job without a drain, followed beside another one", invariant.NeedlesslyFollowed, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.quiet(followed("other", "web"))
			return s
		}},
	}
}

func fineCost() []fine {
	return []fine{
		{"a job followed while a drain waits for its replacement", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.quiet(followed("web"))
			s.wait(time.Minute)
			s.still(followed("web"))
			return s
		}},
		{"a job followed after a drain that the drainer has not seen end", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.cancel("n1")
			s.still(held, followed("web"))
			return s
		}},
	}
}
