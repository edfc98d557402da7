package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// An event without an effect is reported with its line and a reason, unless it is marked with
// maybe.
func TestPlay_noEffect(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"at 6s cancel n1":                                   "",
		"at 9s cancel n2":                                   "8: the node does not drain",
		"at 6s cancel n1,n2":                                "", // one of the two has an effect
		"at 9s maybe cancel n2":                             "",
		"at 9s before report drain n2":                      "",
		"at 9s drain n1 key=k\nat 10s drain n1 key=k":       "9: an earlier request had the same key",
		"at 9s drain n1 key=k twice":                        "",
		"at 0s node n3 ineligible\nat 9s drain n3":          "9: n3 has never had an allocation: it became ineligible before the scheduler placed the jobs",
		"at 0s node n3 ineligible\nat 9s maybe drain n3":    "",
		"at 0s node n2 ineligible\nat 9s drain n2":          "", // it has an allocation
		"at 9s drain n3\nat 1m drain n3":                    "", // it is empty, and has drained
		"at 9s drain n4":                                    "8: node not found",
		"at 9s node n4 down":                                "8: there is no node n4",
		"at 9s node n4 register\nat 10s node n4 ineligible": "",
		"at 9s finish web[0]":                               "",
		"at 9s finish web[0]@n2":                            "8: there is no such allocation",
		"at 9s stop web[0]":                                 "8: the servers refused the plan: evaluation e000002 is gone",
		"at 9s maybe stop web[0]":                           "",
		"at 9s stop web[9]":                                 "8: there is no such allocation",
		"at 9s purge web\nat 10s edit web count=3\nat 10s place web on=n3": "9: there is no job default/web",
		"at 9s stop web\nat 10s place web[4] on=n3":                        "9: group default/web.web: its job is stopped, or has no such group",
		"at 1h before marks restore":                                       "8: no entry of marks comes after that time",
		"at 1h restore\nat 1h forget\nat 1h elect\nat 1h clock ahead=1s":   "",
		"at 1s fault apply/reject on=marks":                                "",
		"at 1h fault apply/reject on=marks":                                "8: apply/reject never strikes",
		"at 1h fault apply/reject on=marks p=0.5":                          "",
		"at 1h maybe fault apply/reject on=marks":                          "",
		"at 1h fault node/crash on=n4 delay=1m":                            "8: node/crash never strikes",
		"at 9s cancel n2\nrun for=8s":                                      "", // the run ends before
		"at 0s fault apply/reject on=operator\nat 1s cancel n2":            "", // the fault hides the effect
	} {
		s, _, err := scenario.Parse("effects.drain", strings.NewReader(`seed 1
node n1..n3
node n4 absent
job web count=2
alloc web[0..1] on=n1..n2

at 5s drain n1 deadline=10m
`+text+"\n"))
		must.NoError(t, err)
		result, err := sim.Play(s, sim.Options{})
		must.NoError(t, err)
		var lines []string
		for _, v := range result.NoEffect {
			must.Eq(t, v.Line, s.Events[v.Event].Line)
			lines = append(lines, fmt.Sprintf("%d: %s", v.Line, v.Why))
		}
		must.Eq(t, want, strings.Join(lines, "\n"), must.Sprint(text))
	}
}
