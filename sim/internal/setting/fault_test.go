package setting_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// An armed fault hits its target, which is a word or a selector.
func TestArmed_Hits(t *testing.T) {
	t.Parallel()
	web := cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: "web"}, Name: "web"}
	a := &cluster.Allocation{Namespace: "default", JobID: "web", TaskGroup: "web", Name: "web.web[2]", NodeID: "n1"}
	other := cluster.GroupKey{Job: cluster.JobKey{Namespace: "blue", ID: "web"}, Name: "web"}
	for _, c := range []struct {
		name scenario.FaultName
		on   string
		at   setting.Target
		hits bool
	}{
		{scenario.ApplyReject, "", setting.Target{Words: []string{"drainer", "marks"}}, true},
		{scenario.ApplyReject, "marks", setting.Target{Words: []string{"drainer", "marks"}}, true},
		{scenario.ApplyReject, "plan", setting.Target{Words: []string{"drainer", "marks"}}, false},
		{scenario.NodeCrash, "n1", setting.Target{Words: []string{"n1"}}, true},
		{scenario.ClientNeverStop, "web[2]", setting.Target{Alloc: a}, true},
		{scenario.ClientNeverStop, "web[1]", setting.Target{Alloc: a}, false},
		{scenario.ClientNeverStop, "@n2", setting.Target{Alloc: a}, false},
		{scenario.ApplyPartialRefuse, "web", setting.Target{Group: &web}, true},
		{scenario.ApplyPartialRefuse, "web", setting.Target{Group: &other}, false},
		{scenario.ApplyPartialRefuse, "web", setting.Target{}, false},
	} {
		armed, err := setting.Arm(scenario.Fault{Name: c.name, On: c.on}, noon)
		must.NoError(t, err)
		must.Eq(t, c.hits, armed.Hits(c.at), must.Sprintf("%s on %q, %s", c.name, c.on, c.at))
	}
	_, err := setting.Arm(scenario.Fault{Name: scenario.ClientMute, On: "web[x]"}, noon)
	must.ErrorContains(t, err, `arming client/mute on "web[x]"`)
}

// A fault without For ends after Count strikes, or after one. A fault with For ends after this
// time, or after Count strikes.
func TestArmed_Ended(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault   scenario.Fault
		strikes int
		after   time.Duration
		ended   bool
	}{
		{scenario.Fault{}, 0, time.Hour, false},
		{scenario.Fault{}, 1, 0, true},
		{scenario.Fault{Count: 2}, 1, time.Hour, false},
		{scenario.Fault{Count: 2}, 2, 0, true},
		{scenario.Fault{For: time.Minute}, 9, time.Minute - 1, false},
		{scenario.Fault{For: time.Minute}, 0, time.Minute, true},
		{scenario.Fault{For: time.Minute, Count: 2}, 2, 0, true},
	} {
		armed, err := setting.Arm(c.fault, noon)
		must.NoError(t, err)
		for range c.strikes {
			armed.Strike()
		}
		must.Eq(t, c.ended, armed.Ended(noon.Add(c.after)), must.Sprintf("%+v", c))
	}
}
