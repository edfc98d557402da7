package swarm_test

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// observed plays a scenario and returns its events.
func observed(t *testing.T, text string) map[swarm.Event]int {
	t.Helper()
	s, _, err := scenario.Parse("test"+scenario.Extension, strings.NewReader(text))
	must.NoError(t, err)
	o := swarm.NewObserver()
	_, err = sim.Play(s, sim.Options{Watch: o.Watch, Reports: o.Reports})
	must.NoError(t, err)
	return o.Events()
}

// A simple drain has no rare event.
func TestObserver_simpleDrain(t *testing.T) {
	t.Parallel()
	found := observed(t, `
node n1..n3
job web count=2
alloc web[0..1] on=n1,n2
at 1s drain n1
`)
	must.MapContainsKeys(t, found, []swarm.Event{"class/paced", "outcome/complete", "reason/stopping"})
	for event := range found {
		common := strings.HasPrefix(string(event), "class/") || strings.HasPrefix(string(event), "outcome/") || strings.HasPrefix(string(event), "reason/")
		must.True(t, common, must.Sprintf("%s", event))
	}
}

// Each event is counted in a scenario in which it happens.
func TestObserver(t *testing.T) {
	t.Parallel()
	const fixture = "node n1..n4\njob web count=2\nalloc web[0..1] on=n1,n2\n"
	const batch = "node n1..n4\njob sum type=batch count=1 lost-after=10m\nalloc sum[0] on=n1\n"
	for _, test := range []struct {
		name, text string
		want       []swarm.Event
	}{
		{"cancelled with marks in flight", fixture + `
at 1s before marks cancel n1
at 1s drain n1`, []swarm.Event{"marks/refused", "marks/of-cancelled", "outcome/cancelled"}},

		{"drained again with marks in flight", fixture + `
at 1s before marks cancel n1
at 1s before marks drain n1
at 1s drain n1`, []swarm.Event{"marks/of-redrained"}},

		{"another strategy with marks in flight", fixture + `
at 1s before marks drain n1 deadline=1h
at 1s drain n1 deadline=force`, []swarm.Event{"marks/of-old-revision"}},

		{"one of two marks is refused", `
node n1..n4
job web1..web2 count=2
alloc web1..web2[0..1] on=n1
at 1s before marks fail web1[0]
at 1s drain n1`, []swarm.Event{"marks/partly-refused"}},

		{"an allocation is placed with the completion in flight", fixture + `
at 1s before completion place web[2] on=n3 count=3
at 1s drain n3`, []swarm.Event{"end/refused", "end/too-early", "marks/of-late"}},

		{"drained again with the completion in flight", fixture + `
at 1s before completion cancel n3
at 1s before completion drain n3
at 1s drain n3`, []swarm.Event{"end/of-redrained"}},

		{"another strategy with the completion in flight", fixture + `
at 1s before completion drain n3 deadline=1h
at 1s drain n3`, []swarm.Event{"end/of-old-revision"}},

		{"several drains end in one entry", "cluster wake=1s\n" + fixture + `
at 1s drain n3,n4`, []swarm.Event{"end/of-many"}},

		{"the entry survives its term", "cluster servers=2 commit=1s\n" + fixture + `
at 10s drain n1
at 11500ms elect`, []swarm.Event{"entry/survives"}},

		{"the entry is applied late", fixture + `
at 1s fault apply/ambiguous-late on=marks delay=2s
at 1s drain n1`, []swarm.Event{"entry/late"}},

		{"one entry is rejected, another not accepted", fixture + `
at 1s fault apply/reject on=marks
at 1500ms fault apply/full on=completion
at 1s drain n1`, []swarm.Event{"entry/rejected", "entry/not-taken", "fault/apply/reject"}},

		{"two entries in flight", "drainer max-ids=2\n" + `
node n1..n4
job web1..web2 count=2
alloc web1..web2[0..1] on=n1
at 1s drain n1`, []swarm.Event{"entry/abreast"}},

		{"a term ends before its drainer reads a state", "cluster servers=3 establish=5s\n" + fixture + `
at 10s elect
at 12s elect`, []swarm.Event{"term/blind"}},

		{"an old leader acts as a leader", "cluster servers=2\n" + batch + `
at 1s drain n1 deadline=10s
at 10s elect believes=5s`, []swarm.Event{"term/deposed", "term/deposed-asks"}},

		{"a restore", batch + `
at 1s drain n1
at 5s restore`, []swarm.Event{"term/restore"}},

		{"one entry for two nodes", `
cluster wake=1s
node n1..n4
job web count=4
alloc web[0..3] on=n1,n2
at 1s drain n1,n2 deadline=force`, []swarm.Event{"marks/of-many-nodes", "class/forced", "outcome/forced"}},

		{"an evaluation fails", fixture + `
at 1s fault sched/fail-eval
at 1s drain n1`, []swarm.Event{"marks/reevaluated"}},

		{"an operator confirms an unconfirmed drain", fixture + `
at 1s node n1 down
at 2s drain n1
at 1m confirm n1`, []swarm.Event{"outcome/unconfirmed", "drain/confirmed"}},

		{"a drain leaves an allocation running", fixture + `
client web[0] stop=never
at 1s drain n1 deadline=10s`, []swarm.Event{"end/leaves-running", "reason/stopping"}},

		{"a stage ends in a later term", `
cluster servers=2
node n1..n4
job web count=2
job logs type=system
alloc web[0..1] on=n1,n2
alloc logs[0..3] on=n1..n4
client * stop=5s
at 1s drain n1
at 3s elect`, []swarm.Event{"drain/stage-across-terms", "class/stage"}},

		{"a deadline without a leader", "cluster servers=2 establish=10s\n" + batch + `
at 20s drain n1 deadline=10s
at 25s elect`, []swarm.Event{"drain/deadline-no-leader", "outcome/deadline reached"}},

		{"a deadline on a disconnected node", batch + `
at 1s drain n1 deadline=10s
at 5s node n1 disconnected`, []swarm.Event{"drain/deadline-away", "class/deadline", "reason/disconnected"}},

		{"a cancel withdraws marks", "cluster schedule=5s\n" + fixture + `
at 10s drain n1
at 11s cancel n1`, []swarm.Event{"drain/cancel-withdraws"}},

		{"a cancel while an allocation stops", fixture + `
client * stop=4s
at 1s drain n1
at 3s cancel n1`, []swarm.Event{"drain/cancel-too-late"}},

		{"drains are paused", fixture + `
at 0s drain n1 deadline=1h
at 0s hold n1
at 10s hold all
at 20s resume n1
at 30s resume all
at 40s resume n1`, []swarm.Event{"drain/paused", "drain/all-paused", "drain/resume-moves-deadline", "drain/resume-under-all", "reason/paused"}},

		{"a drain is paused with its completion in flight", fixture + `
at 1s drain n1
at 2s before completion hold n1`, []swarm.Event{"end/of-paused"}},

		{"a request is repeated", batch + `
at 1s drain n1 deadline=force key=k twice
at 1m drain n1 deadline=force key=k`, []swarm.Event{"drain/repeated", "drain/repeated-after-end"}},

		{"a job is purged while it runs", batch + `
at 1s drain n1
at 5s purge sum`, []swarm.Event{"drain/purged"}},

		{"a draining node is deleted", batch + `
at 1s drain n1
at 5s node n1 delete`, []swarm.Event{"outcome/node gone"}},

		{"three nodes drain", `
node n1..n4
job sum type=batch count=3
alloc sum[0..2] on=n1..n3
at 1s drain n1..n3`, []swarm.Event{"drain/many"}},

		{"a plan is refused", fixture + `
at 1s before plan node n3,n4 ineligible
at 1s drain n1`, []swarm.Event{"plan/refused"}},

		{"clocks are set", "cluster servers=2\n" + batch + `
at 0s clock s2 ahead=2s
at 1s drain n1
at 5s elect s2
at 6s clock s2 ahead=1h
at 7s clock s2 ahead=-1m`, []swarm.Event{"clock/skewed", "clock/forward", "clock/back"}},

		{"the drainer loses its memory", "cluster servers=2\n" + batch + `
at 1s drain n1
at 5s forget`, []swarm.Event{"term/forgets"}},

		{"jobs are edited", batch + "job api count=3\nalloc api[0..2] on=n1,n2,n3\nclient api stop=20s\n" + `
at 1s drain n1
at 2s edit api max-parallel=2
at 3s edit api count=4
at 4s edit api.api rename=other`, []swarm.Event{"job/limit", "job/scaled", "job/regrouped"}},

		{"a node returns", batch + `
at 1s drain n1
at 2s node n2 down
at 9s node n2 ready`, []swarm.Event{"node/returned"}},

		{"a lost allocation keeps its slot", `
node n1..n3
job web count=1 no-replace
alloc web on=n1
at 1s node n1 down
at 2s drain n2`, []swarm.Event{"plan/holds-lost"}},

		{"an original is stopped", `
node n1..n3
job web count=1 lost-after=1h keep-replacement
alloc web on=n1
at 1s node n1 disconnected
at 1m node n1 ready
at 2m drain n2`, []swarm.Event{"plan/keeps-replacement"}},

		{"the last failure in a row", `
node n1..n3
job web count=2
alloc web[0] on=n1 failures=10
alloc web[1] on=n2
at 1s fail web[0]
at 2s drain n2`, []swarm.Event{"alloc/given-up"}},

		{"no node has room", `
node n1..n2 max-allocs=1
job web count=2 max-parallel=2
alloc web[0..1] on=n1,n2
at 1s drain n1`, []swarm.Event{"plan/blocked"}},
		{"devices", `cluster clients=real
node n1..n2 devices=gpu:2
job web count=1 lost-after=5s devices=gpu:1,gpu:1
alloc web on=n1
at 1s node n2 ineligible
at 2s fault node/disconnect on=n1 delay=40s
at 60s fault device/sick on=n1 delay=10s
at 90s node n2 eligible
at 91s drain n1`, []swarm.Event{"device/given", "device/two-requests", "device/of-lost", "device/sick-in-use"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			found := observed(t, test.text)
			for _, event := range test.want {
				must.Positive(t, found[event], must.Sprintf("%s: %v", event, found))
			}
		})
	}
}
