package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// reported is the apply time of the first matching report of an allocation on a node, or
// negative.
func (w *fixture) reported(on cluster.NodeID, matches func(cluster.AllocReport) bool) time.Duration {
	return whenThat(w, func(m report) bool {
		for _, r := range m.Reports {
			if r.Node == on && matches(r) {
				return true
			}
		}
		return false
	})
}

func ended(r cluster.AllocReport) bool     { return r.ClientStatus == cluster.ClientComplete }
func judged(r cluster.AllocReport) bool    { return r.Healthy != nil }
func unhealthy(r cluster.AllocReport) bool { return judged(r) && !*r.Healthy }
func running(r cluster.AllocReport) bool   { return r.ClientStatus == cluster.ClientRunning }

func clientCases() []faultCase {
	// The first allocations are no opportunities for the fault, because their clients know them
	// before the fault is armed. So the job gets a new allocation.
	grow := func(t *testing.T, w *fixture) {
		w.at(armed+time.Second, func() {
			w.editJob(web, func(j *cluster.Job) { j.TaskGroups[0].Count = 4 })
		})
		w.at(drains+time.Second, func() { w.drainNode("n4", 0) })
	}
	return []faultCase{{
		fault: scenario.Fault{Name: scenario.ClientSlowStop, On: "@n4"},
		setup: grow,
		keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Eq(t, plain.reported("n4", ended)+kill-stops, struck.reported("n4", ended))
			must.Eq(t, plain.reported("n1", ended), struck.reported("n1", ended))
		},
	}, {
		fault: scenario.Fault{Name: scenario.ClientNeverStop, On: "@n4"},
		setup: grow,
		keeps: terms | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Positive(t, plain.reported("n4", ended))
			must.Negative(t, struck.reported("n4", ended))
			must.True(t, struck.State().Node("n4").Draining())
			must.Eq(t, plain.reported("n1", ended), struck.reported("n1", ended))
		},
	}, {
		fault: scenario.Fault{Name: scenario.ClientFailNew, On: "web", Count: 1},
		keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Negative(t, plain.reported("n4", unhealthy))
			must.Positive(t, struck.reported("n4", unhealthy))
			must.Eq(t, plain.reported("n4", running), struck.reported("n4", running))
		},
	}, {
		fault: scenario.Fault{Name: scenario.ClientMute},
		keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Positive(t, plain.reported("n4", judged))
			must.Negative(t, struck.reported("n4", judged))
			must.Eq(t, plain.reported("n4", running), struck.reported("n4", running))
		},
	}}
}

// The world draws the behaviour of an allocation when its client first sees the allocation. So
// older allocations are no opportunities for a fault.
func TestFaults_earlierAllocations(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{})
	for _, name := range []scenario.FaultName{scenario.ClientFailNew, scenario.ClientMute} {
		must.NoError(t, w.Faults.Arm(scenario.Fault{Name: name, Count: 9}))
	}
	w.run(t, lasts)
	must.SliceEmpty(t, w.strikes)
}

// nodeAndSchedulerCases are the faults of nodes and of the scheduler. A silent client sends
// nothing. The servers change the status of its node after a heartbeat.
func nodeAndSchedulerCases() []faultCase {
	const away = 40 * time.Second
	lost := func(name scenario.FaultName, want cluster.NodeStatus) faultCase {
		return faultCase{
			fault: scenario.Fault{Name: name, On: "n1", Delay: exactly(away)},
			keeps: terms | applied | ending,
			check: func(t *testing.T, plain, struck *fixture) {
				must.Positive(t, plain.reported("n1", ended))
				at := struck.reported("n1", func(cluster.AllocReport) bool { return true })
				must.True(t, at < 0 || at > armed+away)
				must.Eq(t, armed+10*time.Second+commits, whenThat(struck, func(m status) bool { return m.Status == want }))
				must.Eq(t, armed+away+commits, whenThat(struck, func(m status) bool { return m.Status == cluster.NodeReady }))
			},
		}
	}
	return []faultCase{
		lost(scenario.NodeCrash, cluster.NodeDown),
		lost(scenario.NodeDisconnect, cluster.NodeDisconnected),
		{ // the servers do not notice a short silence
			fault: scenario.Fault{Name: scenario.NodeDisconnect, On: "n1", Delay: exactly(9 * time.Second)},
			keeps: late,
			check: func(t *testing.T, plain, struck *fixture) {
				must.Negative(t, when[status](struck))
				must.Eq(t, when[marks](plain), when[marks](struck))
				must.Eq(t, armed+9*time.Second+stops+commits, struck.reported("n1", ended))
			},
		}, {
			fault: scenario.Fault{Name: scenario.SchedSlow, Delay: exactly(3 * time.Second)},
			keeps: late,
			check: func(t *testing.T, plain, struck *fixture) {
				must.Eq(t, when[marks](plain), when[marks](struck))
				must.Eq(t, drains+commits+3*time.Second+commits, when[plan](struck))
			},
		}, { // the job is planned again only after the answer
			fault: scenario.Fault{Name: scenario.SchedLateAnswer, Delay: exactly(time.Minute)},
			setup: func(_ *testing.T, w *fixture) {
				w.at(30*time.Second, func() { w.editJob(web, func(j *cluster.Job) { j.TaskGroups[0].Count++ }) })
			},
			keeps: late,
			check: func(t *testing.T, plain, struck *fixture) {
				must.Eq(t, when[plan](plain), when[plan](struck))
				added := func(m plan) bool { return len(m.Places) > 0 && m.Eval.TriggeredBy == cluster.TriggerJobRegister }
				must.Less(t, armed+time.Minute, whenThat(plain, added))
				must.Greater(t, armed+time.Minute, whenThat(struck, added))
			},
		}, {
			fault: scenario.Fault{Name: scenario.SchedFailEval, On: "web"},
			setup: func(t *testing.T, w *fixture) { w.place(t, "log", "n1", "n2") }, // its evaluation comes first
			keeps: terms | ending,                                                   // failed evaluations are repeated
			check: func(t *testing.T, plain, struck *fixture) {
				failed := 0
				for e := range struck.State().Evals() {
					if e.Status == cluster.EvalFailed {
						failed++
						must.Eq(t, web, e.JobKey())
						must.Eq(t, cluster.TriggerNodeDrain, e.TriggeredBy)
					}
				}
				must.Eq(t, 1, failed)
				must.Eq(t, when[marks](struck), struck.strikes[0].At) // before the scheduler plans for it
			},
		}, {
			fault: scenario.Fault{Name: scenario.SchedUnplaceable, Delay: exactly(away)},
			keeps: terms | applied | ending,
			check: func(t *testing.T, plain, struck *fixture) {
				must.Positive(t, whenThat(plain, places))
				must.Greater(t, armed+away, whenThat(struck, places))
				for _, id := range []cluster.NodeID{"n2", "n3", "n4"} {
					must.Eq(t, cluster.NodeEligible, struck.State().Node(id).SchedulingEligibility)
				}
				// n1 has drained in the meantime. A drain leaves its node ineligible.
				must.Eq(t, cluster.NodeIneligible, struck.State().Node("n1").SchedulingEligibility)
			},
		},
	}
}

func places(m plan) bool { return len(m.Places) > 0 }

// Each evaluation is one opportunity, even if the scheduler processes it several times.
func TestFaults_evaluationsOnce(t *testing.T) {
	t.Parallel()
	struck := 0
	for seed := range uint64(20) {
		w := newFixture(t, world.Options{Seed: seed + 1})
		w.drain()
		w.at(armed, func() {
			slow := scenario.Fault{Name: scenario.ApplySlow, On: "scheduler", Delay: exactly(time.Hour)}
			must.NoError(t, w.Faults.Arm(slow))
			must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.SchedFailEval, For: time.Hour, Probability: 0.01}))
		})
		for i := range 300 { // commits wake the scheduler while the log waits
			w.at(drains+time.Second+time.Duration(i)*time.Millisecond, func() {
				must.NoError(t, w.Setup.Commit(&shims.NodeUpdateStatus{At: w.Now(), Node: "n4", Status: cluster.NodeReady}))
			})
		}
		w.run(t, time.Minute)
		struck += len(w.strikes) - 1
	}
	must.Less(t, 4, struck)
}

// A client that becomes silent does not send the reports that are already pending.
func TestFaults_silentClientSendsNoPendingReport(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Commit: exactly(5 * time.Second)})
	w.drain()
	// n4 reports one second after its allocation is placed. The log needs five seconds to apply
	// that report. The report of n1, due after two seconds, waits for it until n1 is silent.
	const planned = drains + 3*5*time.Second
	const silent, away = planned + 3*time.Second, 8 * time.Second
	w.at(silent, func() {
		must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.NodeCrash, On: "n1", Delay: exactly(away)}))
	})
	w.run(t, lasts)
	must.Eq(t, planned, when[plan](w))
	must.Eq(t, planned+6*time.Second, w.reported("n4", running))
	must.Eq(t, silent+away+5*time.Second, w.reported("n1", ended))
}
