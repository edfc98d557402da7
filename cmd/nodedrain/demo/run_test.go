package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The demonstration in a small size: real raft, a killed leader, and drains that end as
// expected. In a bubble it takes no real time, and leaves no goroutine running.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s, err := Run(t.Context(), Config{Nodes: 12, Drains: 4, Seed: 3, Progress: &out})
		must.NoError(t, err)
		must.SliceEmpty(t, s.Failures, must.Sprint(out.String()))
		must.True(t, s.OK)
		must.SliceEmpty(t, s.Findings)
		must.Eq(t, s.Cluster.Wanted, s.Cluster.Placed)
		must.SliceLen(t, 4, s.Drains)
		must.NotEq(t, s.LeaderKill.Server, s.LeaderKill.NewLeader)
		must.Positive(t, s.LeaderKill.ElectionSeconds)

		outcomes := make(map[string]int)
		for _, d := range s.Drains {
			outcomes[d.Outcome]++
			must.Positive(t, d.Moved)
			must.Zero(t, d.StillStopping)
		}
		must.Positive(t, outcomes[string(cluster.OutcomeComplete)])
		must.Positive(t, outcomes[string(cluster.OutcomeDeadlineReached)])
		paced := 0
		for _, g := range s.Groups {
			if g.LowestAtMark != nil {
				paced++
				must.GreaterEq(t, g.Limit, *g.LowestAtMark, must.Sprint(g.Group))
			}
		}
		must.Positive(t, paced)
		for _, want := range []string{"time scale 30", "4 nodes drain at once", "killed the leader", "is the new leader"} {
			must.StrContains(t, out.String(), want)
		}
	})
}

// A cluster loaded from lists is drained in the same way.
func TestRun_loaded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := Run(t.Context(), Config{Dir: "testdata/openb"})
		must.NoError(t, err)
		must.SliceEmpty(t, s.Failures)
		must.Eq(t, 20, s.Cluster.Nodes)
		must.Eq(t, []UnplacedSummary{{Group: "default/ls-cpu64000-mem1024.pods", Count: 2}}, s.Cluster.Unplaced)
		must.SliceLen(t, 1, s.Drains)
		must.Eq(t, string(cluster.OutcomeDeadlineReached), s.Drains[0].Outcome)
	})
}

// The real cluster, if its lists are there.
//
//race:skip the same goroutines as TestRun of demo
func TestRun_openb(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("NODEDRAIN_OPENB")
	if dir == "" {
		t.Skip("NODEDRAIN_OPENB names no directory with the trace")
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := Run(t.Context(), Config{Dir: dir})
		must.NoError(t, err)
		must.SliceEmpty(t, s.Failures)
		must.Eq(t, 5193, s.Cluster.Placed)
		must.SliceLen(t, 76, s.Drains)
	})
}

// An interrupted run ends, at any point.
func TestRun_interrupted(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 500 * time.Millisecond, 2 * time.Second, 5 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				stop := errors.New("stop")
				ctx, cancel := context.WithTimeoutCause(t.Context(), after, stop)
				defer cancel()
				_, err := Run(ctx, Config{Nodes: 12, Drains: 4})
				must.ErrorIs(t, err, stop)
			})
		})
	}
}

// A run that takes too long names the drains that did not end.
func TestRun_timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := Run(t.Context(), Config{Nodes: 12, Drains: 4, Timeout: 10 * time.Millisecond})
		must.ErrorIs(t, err, ErrTimeout)
		s, err := Run(t.Context(), Config{Nodes: 12, Drains: 4, Timeout: 10 * time.Second})
		must.NoError(t, err)
		must.False(t, s.OK)
		must.SliceContainsFunc(t, s.Failures, "did not end", bytesContain)
	})
}

func bytesContain(s, part string) bool { return bytes.Contains([]byte(s), []byte(part)) }
