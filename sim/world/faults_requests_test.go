package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The messages of operators.
type (
	request = *shims.NodeUpdateDrain
	version = *shims.JobRegister
	purge   = *shims.JobDeregister
)

// requests are the applied requests about drains, in order.
func (w *fixture) requests() []request {
	var all []request
	for _, e := range w.entries {
		if m, is := e.Message.(request); is {
			all = append(all, m)
		}
	}
	return all
}

// operatorCases are cases for the faults that send requests, set clocks and restore snapshots.
func operatorCases() []faultCase {
	const after = 300 * time.Millisecond
	again := func(delay time.Duration) func(t *testing.T, plain, struck *fixture) {
		return func(t *testing.T, plain, struck *fixture) {
			all := struck.requests()
			must.Len(t, 1, plain.requests())
			must.Len(t, 2, all)
			must.NotEq(t, "", all[0].Key)
			must.Eq(t, all[0].Key, all[1].Key)
			must.NotEq(t, all[0].Drain, all[1].Drain)
			must.Eq(t, all[0].At.Add(delay), all[1].At)
			must.Eq(t, when[marks](plain), when[marks](struck))
			must.Eq(t, when[completions](plain), when[completions](struck)) // the second request changes nothing
		}
	}
	changed := func(t *testing.T, plain, struck *fixture) {
		must.Negative(t, when[version](plain))
		must.Eq(t, when[marks](struck)+after+commits, when[version](struck))
	}
	return []faultCase{{
		fault: scenario.Fault{Name: scenario.APIDup, On: "n1"},
		keeps: terms | applied | ending,
		check: again(0),
	}, {
		fault: scenario.Fault{Name: scenario.APITimeout, Delay: exactly(7 * time.Second)},
		keeps: terms | applied | ending,
		check: again(7 * time.Second),
	}, {
		fault: scenario.Fault{Name: scenario.DrainUpdate, On: "n1", Delay: exactly(after)},
		keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Positive(t, struck.requests()[1].Spec.Deadline)
			must.Eq(t, when[marks](plain), when[marks](struck))
		},
	}, {
		fault: scenario.Fault{Name: scenario.DrainCancel, Delay: exactly(after)},
		keeps: terms,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Nil(t, struck.requests()[1].Spec)
			must.False(t, struck.State().Node("n1").Draining())
		},
	}, {
		fault: scenario.Fault{Name: scenario.DrainAgain, Delay: exactly(time.Minute)},
		keeps: terms | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Len(t, 2, struck.requests())
			must.Len(t, 1, plain.requests())
		},
	}, {
		fault: scenario.Fault{Name: scenario.JobEdit, On: "web", Delay: exactly(after)},
		keeps: terms | applied | ending,
		check: changed,
	}, {
		fault: scenario.Fault{Name: scenario.JobScale, Delay: exactly(after)},
		keeps: terms | applied | ending,
		check: changed,
	}, {
		fault: scenario.Fault{Name: scenario.JobPurge, Delay: exactly(after)},
		keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Eq(t, when[marks](struck)+after+commits, when[purge](struck))
			must.Nil(t, struck.State().Job(web))
		},
	}, {
		fault: scenario.Fault{Name: scenario.NodeReturn, On: "n3", Delay: exactly(after)},
		setup: func(_ *testing.T, w *fixture) {
			w.at(drains+time.Minute, func() { w.Operator.Propose(w.Operator.Requests.NodeStatus("n3", cluster.NodeDown, false), nil) })
		},
		keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.False(t, plain.State().Node("n3").Reachable())
			must.True(t, struck.State().Node("n3").Reachable())
		},
	}, {
		fault: scenario.Fault{Name: scenario.ClockForward, Delay: exactly(time.Hour)},
		keeps: late,
		check: clockIs(time.Hour),
	}, {
		fault: scenario.Fault{Name: scenario.ClockBack, Delay: exactly(10 * time.Minute)},
		keeps: late,
		check: clockIs(-10 * time.Minute),
	}, {
		fault:   scenario.Fault{Name: scenario.ClockSkew, Delay: exactly(2 * time.Second), Count: 2},
		strikes: 2, // the skews do not add up
		keeps:   late,
		check: func(t *testing.T, _, struck *fixture) {
			must.Eq(t, 2*time.Second, struck.Clock().Sub(struck.Now()).Abs())
		},
	}, {
		fault: scenario.Fault{Name: scenario.StoreRestore, Delay: exactly(after)},
		keeps: ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Eq(t, []time.Duration{when[marks](struck) + after}, struck.elected)
			must.Eq(t, plain.Leader(), struck.Leader())
		},
	}}
}

// clockIs checks how far the leader's clock is ahead at the end.
func clockIs(ahead time.Duration) func(t *testing.T, plain, struck *fixture) {
	return func(t *testing.T, plain, struck *fixture) {
		must.Eq(t, plain.Now(), plain.Clock())
		must.Eq(t, ahead, struck.Clock().Sub(struck.Now()))
	}
}
