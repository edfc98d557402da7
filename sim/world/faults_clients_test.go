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

// reported is when an allocation was first reported so on a node, or below zero.
func (w *town) reported(on cluster.NodeID, so func(cluster.AllocReport) bool) time.Duration {
	return whenThat(w, func(m report) bool {
		for _, r := range m.Reports {
			if r.Node == on && so(r) {
				return true
			}
		}
		return false
	})
}

func ended(r cluster.AllocReport) bool   { return r.ClientStatus == cluster.ClientComplete }
func judged(r cluster.AllocReport) bool  { return r.Healthy != nil }
func unwell(r cluster.AllocReport) bool  { return judged(r) && !*r.Healthy }
func running(r cluster.AllocReport) bool { return r.ClientStatus == cluster.ClientRunning }

func storiesOfClients() []faultStory {
	// What is there from the beginning has been seen by the time at which faults are
	// armed: there has to be another.
	grow := func(t *testing.T, w *town) {
		w.at(armed+time.Second, func() {
			must.NoError(t, w.EditJob(web, func(j *cluster.Job) { j.TaskGroups[0].Count = 4 }))
		})
		w.at(drains+time.Second, func() { w.Drain("n4", cluster.DrainSpec{}, "") })
	}
	return []faultStory{{
		fault:  scenario.Fault{Name: scenario.ClientSlowStop, On: "@n4"},
		begin:  grow,
		leaves: terms | applied | ending,
		check: func(t *testing.T, plain, struck *town) {
			must.Eq(t, plain.reported("n4", ended)+kill-stops, struck.reported("n4", ended))
			must.Eq(t, plain.reported("n1", ended), struck.reported("n1", ended))
		},
	}, {
		fault:  scenario.Fault{Name: scenario.ClientNeverStop, On: "@n4"},
		begin:  grow,
		leaves: terms | ending,
		check: func(t *testing.T, plain, struck *town) {
			must.Positive(t, plain.reported("n4", ended))
			must.Negative(t, struck.reported("n4", ended))
			must.True(t, struck.State().Node("n4").Draining())
			must.Eq(t, plain.reported("n1", ended), struck.reported("n1", ended))
		},
	}, {
		fault:  scenario.Fault{Name: scenario.ClientFailNew, On: "web", Count: 1},
		leaves: terms | applied | ending,
		check: func(t *testing.T, plain, struck *town) {
			must.Negative(t, plain.reported("n4", unwell))
			must.Positive(t, struck.reported("n4", unwell))
			must.Eq(t, plain.reported("n4", running), struck.reported("n4", running))
		},
	}, {
		fault:  scenario.Fault{Name: scenario.ClientMute},
		leaves: terms | applied | ending,
		check: func(t *testing.T, plain, struck *town) {
			must.Positive(t, plain.reported("n4", judged))
			must.Negative(t, struck.reported("n4", judged))
			must.Eq(t, plain.reported("n4", running), struck.reported("n4", running))
		},
	}}
}

// What a client is born with it has from its birth: allocations that were seen before,
// or judged, are no opportunity for verdicts.
func TestFaults_bornWithAVerdict(t *testing.T) {
	t.Parallel()
	w := newTown(t, world.Options{})
	for _, name := range []scenario.FaultName{scenario.ClientFailNew, scenario.ClientMute} {
		must.NoError(t, w.Arm(scenario.Fault{Name: name, Count: 9}))
	}
	w.run(t, lasts)
	must.SliceEmpty(t, w.strikes)
}

// storiesOfTheRest are of nodes and of the scheduler. A node's silence is found out if
// it is long, and told; its client says nothing before it is over.
func storiesOfTheRest() []faultStory {
	const away = 40 * time.Second
	lost := func(name scenario.FaultName, said cluster.NodeStatus) faultStory {
		return faultStory{
			fault:  scenario.Fault{Name: name, On: "n1", Delay: exactly(away)},
			leaves: terms | applied | ending,
			check: func(t *testing.T, plain, struck *town) {
				must.Positive(t, plain.reported("n1", ended))
				at := struck.reported("n1", func(cluster.AllocReport) bool { return true })
				must.True(t, at < 0 || at > armed+away)
				must.Eq(t, armed+10*time.Second+commits, whenThat(struck, func(m status) bool { return m.Status == said }))
				must.Eq(t, armed+away+commits, whenThat(struck, func(m status) bool { return m.Status == cluster.NodeReady }))
			},
		}
	}
	return []faultStory{
		lost(scenario.NodeCrash, cluster.NodeDown),
		lost(scenario.NodeDisconnect, cluster.NodeDisconnected),
		{ // a short silence is not found out
			fault:  scenario.Fault{Name: scenario.NodeDisconnect, On: "n1", Delay: exactly(9 * time.Second)},
			leaves: late,
			check: func(t *testing.T, plain, struck *town) {
				must.Negative(t, when[status](struck))
				must.Eq(t, when[marks](plain), when[marks](struck))
				must.Eq(t, armed+9*time.Second+stops+commits, struck.reported("n1", ended))
			},
		}, {
			fault:  scenario.Fault{Name: scenario.SchedSlow, Delay: exactly(3 * time.Second)},
			leaves: late,
			check: func(t *testing.T, plain, struck *town) {
				must.Eq(t, when[marks](plain), when[marks](struck))
				must.Eq(t, drains+commits+3*time.Second+commits, when[plan](struck))
			},
		}, {
			fault:  scenario.Fault{Name: scenario.SchedFailEval, On: "web"},
			begin:  func(t *testing.T, w *town) { w.place(t, "log", "n1", "n2") }, // its evaluation comes first
			leaves: terms | ending,                                                // what has failed is evaluated again
			check: func(t *testing.T, plain, struck *town) {
				failed := 0
				for e := range struck.State().Evals() {
					if e.Status == cluster.EvalFailed {
						failed++
						must.Eq(t, web, e.JobKey())
						must.Eq(t, cluster.TriggerNodeDrain, e.TriggeredBy)
					}
				}
				must.Eq(t, 1, failed)
				must.Eq(t, when[marks](struck), struck.strikes[0].At) // before anything is planned for it
			},
		}, {
			fault:  scenario.Fault{Name: scenario.SchedUnplaceable, Delay: exactly(away)},
			leaves: terms | applied | ending,
			check: func(t *testing.T, plain, struck *town) {
				must.Positive(t, whenThat(plain, places))
				must.Greater(t, armed+away, whenThat(struck, places))
				for _, id := range []cluster.NodeID{"n2", "n3", "n4"} {
					must.Eq(t, cluster.NodeEligible, struck.State().Node(id).SchedulingEligibility)
				}
				// It has drained meanwhile, and stays as a drain leaves it.
				must.Eq(t, cluster.NodeIneligible, struck.State().Node("n1").SchedulingEligibility)
			},
		},
	}
}

func places(m plan) bool { return len(m.Places) > 0 }

// An evaluation is an opportunity once, however often the scheduler looks while it
// waits.
func TestFaults_evaluationsOnce(t *testing.T) {
	t.Parallel()
	struck := 0
	for seed := range uint64(20) {
		w := newTown(t, world.Options{Seed: seed + 1})
		w.drain()
		w.at(armed, func() {
			slow := scenario.Fault{Name: scenario.ApplySlow, On: "scheduler", Delay: exactly(time.Hour)}
			must.NoError(t, w.Arm(slow))
			must.NoError(t, w.Arm(scenario.Fault{Name: scenario.SchedFailEval, For: time.Hour, Probability: 0.01}))
		})
		for i := range 300 { // what is written while the log waits is committed at once
			w.at(drains+time.Second+time.Duration(i)*time.Millisecond, func() {
				must.NoError(t, w.Commit(&shims.NodeUpdateStatus{At: w.Now(), Node: "n4", Status: cluster.NodeReady}))
			})
		}
		w.run(t, time.Minute)
		struck += len(w.strikes) - 1
	}
	must.Less(t, 4, struck)
}

// A client that falls silent says nothing more, not even what it was about to say.
func TestFaults_silentAtOnce(t *testing.T) {
	t.Parallel()
	w := newTown(t, world.Options{Commit: exactly(5 * time.Second)})
	w.drain()
	// n4 reports a second after its allocation is placed, and the log takes five for
	// that: n1 has to wait with what it has to say after two, and is silent by then.
	const planned = drains + 3*5*time.Second
	const silent, away = planned + 3*time.Second, 8 * time.Second
	w.at(silent, func() {
		must.NoError(t, w.Arm(scenario.Fault{Name: scenario.NodeCrash, On: "n1", Delay: exactly(away)}))
	})
	w.run(t, lasts)
	must.Eq(t, planned, when[plan](w))
	must.Eq(t, planned+6*time.Second, w.reported("n4", running))
	must.Eq(t, silent+away+5*time.Second, w.reported("n1", ended))
}
