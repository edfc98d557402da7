package live_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/live"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// smallCluster is a cluster with free capacity.
const smallCluster = `seed 1
cluster servers=3
node n1..n4
job web count=3
job sum type=batch count=1
alloc web on=n1,n2,n3
alloc sum on=n1
`

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, _, err := scenario.Parse("case.drain", strings.NewReader(text))
	must.NoError(t, err)
	return s
}

// Each fault that performs an operation performs it once. If the faults end before the
// operation's delay has passed, it does not perform the operation.
func TestPlay_operations(t *testing.T) {
	t.Parallel()
	requests := func(id cluster.NodeID, drains bool) func(shims.Message) bool {
		return func(m shims.Message) bool {
			request, is := m.(*shims.NodeUpdateDrain)
			return is && request.Node == id && (request.Spec != nil) == drains
		}
	}
	registers := func(m shims.Message) bool { _, is := m.(*shims.JobRegister); return is }
	purges := func(m shims.Message) bool { gone, is := m.(*shims.JobDeregister); return is && gone.Purge }
	returns := func(m shims.Message) bool {
		status, is := m.(*shims.NodeUpdateStatus)
		return is && status.Status == cluster.NodeReady
	}
	const drain = "\nat 5s drain n1 deadline=1m\n"
	for _, c := range []struct {
		fault, events string
		is            func(shims.Message) bool
		count         int
	}{
		{"api/dup", drain, requests("n1", true), 2},
		{"api/dup on=n2", drain, requests("n1", true), 1},
		{"api/timeout delay=20s", drain, requests("n1", true), 2},
		{"api/timeout delay=20s", "\nat 5s drain n1 deadline=1m\nrun calm=10s", requests("n1", true), 1},
		{"drain/update delay=1s", drain, requests("n1", true), 2},
		{"drain/cancel delay=1s", drain, requests("n1", false), 1},
		{"drain/again delay=1s", drain, requests("n1", true), 2},
		{"job/edit on=web", drain, registers, 1},
		{"job/scale on=web", drain, registers, 1},
		{"job/purge on=web", drain, purges, 1},
		{"node/return delay=9s", drain + "at 6s node n3 down\n", returns, 1},
	} {
		s := parse(t, smallCluster+"at 1s fault "+c.fault+c.events)
		synctest.Test(t, func(t *testing.T) {
			found := 0
			o := live.Options{For: 2 * time.Minute, OnApply: func(_ time.Time, a shims.Applied) {
				if c.is(a.Message) {
					found++
				}
			}}
			result, err := live.Play(s, o)
			must.NoError(t, err)
			must.SliceEmpty(t, result.Findings)
			must.Eq(t, c.count, found, must.Sprintf("%s%s: %v", c.fault, c.events, result.Strikes))
		})
	}
}

// Every fault that can be played strikes.
func TestPlay_everyFaultStrikes(t *testing.T) {
	t.Parallel()
	for _, kind := range scenario.Faults() {
		fault := scenario.Fault{Name: kind.Name, For: 10 * time.Minute, Delay: scenario.Range{Min: time.Second, Max: time.Second}}
		s := parse(t, smallCluster+"at 5s drain n1 deadline=1m\nat 6s node n3 down\nat 1m elect\n")
		s.Events = append([]scenario.Event{{Op: &fault}}, s.Events...)
		if live.Unplayable(s) != nil {
			continue
		}
		t.Run(string(kind.Name), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				result, err := live.Play(s, live.Options{For: 2 * time.Minute})
				must.NoError(t, err)
				must.SliceEmpty(t, result.Findings)
				must.Positive(t, result.Strikes[kind.Name])
			})
		})
	}
}

// A snapshot is restored after an entry of marks, and the drain completes.
func TestPlay_restoreAtMarks(t *testing.T) {
	t.Parallel()
	s := parse(t, smallCluster+"at 1s fault store/restore\nat 5s drain n1 deadline=1m\n")
	result := play(t, s, runSteps(t, s))
	must.Eq(t, 1, result.Strikes[scenario.StoreRestore])
}

// A leader is cut off forever. Another leader completes its drain.
func TestPlay_cutServers(t *testing.T) {
	t.Parallel()
	s := parse(t, smallCluster+"at 5s drain n1 deadline=1m\nat 10s elect s1\nrun calm=11s cut-servers=s1\n")
	result := play(t, s, runSteps(t, s))
	must.False(t, result.State.Node("n1").Draining())
}
