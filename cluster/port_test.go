package cluster_test

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func TestJob_Validate_ports(t *testing.T) {
	t.Parallel()
	many := make([]cluster.PortRequest, cluster.MaxPorts)
	for i := range many {
		many[i] = cluster.PortRequest{Label: strings.Repeat("p", i+1)[:min(i+1, 60)] + string(rune('a'+i%26)) + string(rune('a'+i/26))}
	}
	for name, test := range map[string]struct {
		group, task []cluster.PortRequest
		want        string
	}{
		"none":                    {},
		"good":                    {group: []cluster.PortRequest{{Label: "http"}, {Label: "ssh", Static: 22, To: 2222}}, task: []cluster.PortRequest{{Label: "http", Static: 65535}}},
		"no label":                {group: []cluster.PortRequest{{}}, want: `Task group "g": Port "": the label must have 1 to 64 bytes`},
		"a control character":     {group: []cluster.PortRequest{{Label: "a\n"}}, want: "invalid label: it contains a control character"},
		"twice":                   {group: []cluster.PortRequest{{Label: "a"}, {Label: "a"}}, want: `Task group "g": Port "a" is defined twice`},
		"one variable":            {group: []cluster.PortRequest{{Label: "a-b"}, {Label: "a_b"}}, want: `the labels "a-b" and "a_b" have the same environment variables`},
		"a large number":          {group: []cluster.PortRequest{{Label: "a", Static: 65536}}, want: `a static port must be between [1, 65535] but found 65536`},
		"a large To":              {task: []cluster.PortRequest{{Label: "a", To: 65536}}, want: `Task group "g": Task "t": port "a": To must be between [1, 65535] but found 65536`},
		"one number twice":        {group: []cluster.PortRequest{{Label: "a", Static: 80}}, task: []cluster.PortRequest{{Label: "b", Static: 80}}, want: `port "b": port 80 is also the port "a" of the group`},
		"too many":                {group: many, task: []cluster.PortRequest{{Label: "a"}}, want: "A group has at most 100 ports but found 101"},
		"as many as there may be": {group: many},
	} {
		t.Run(name, func(t *testing.T) {
			j := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "g", Ports: test.group, Tasks: []*cluster.Task{{Name: "t", Ports: test.task}}}}}
			j.Canonicalize()
			if err := j.Validate(); test.want == "" {
				must.NoError(t, err)
			} else {
				must.ErrorContains(t, err, test.want)
			}
		})
	}
}

func TestPortRanges(t *testing.T) {
	t.Parallel()
	all, err := cluster.ParsePortRanges("8000-8010, 22,80")
	must.NoError(t, err)
	must.Eq(t, "22,80,8000-8010", all.String())
	for port, want := range map[int]bool{21: false, 22: true, 23: false, 7999: false, 8000: true, 8010: true, 8011: false} {
		must.Eq(t, want, all.Contain(port), must.Sprint(port))
	}
	none, err := cluster.ParsePortRanges(" ")
	must.NoError(t, err)
	must.Nil(t, none)
	for _, text := range []string{"0", "-1", "65536", "x", "10-9", "1,,2", "1-"} {
		_, err := cluster.ParsePortRanges(text)
		must.ErrorContains(t, err, "must be a port or a range of ports", must.Sprint(text))
	}
	must.ErrorContains(t, (&cluster.NodeNetwork{IP: "ten", MinDynamicPort: 1, MaxDynamicPort: 2}).Check(), "no valid IP address")
	must.ErrorContains(t, (&cluster.NodeNetwork{IP: "::1", MinDynamicPort: 3, MaxDynamicPort: 2}).Check(), "found 3 to 2")
	must.ErrorContains(t, (&cluster.NodeNetwork{IP: "::1", MinDynamicPort: 1, MaxDynamicPort: 2, Reserved: cluster.PortRanges{{}}}).Check(), "reserved ports")
	must.NoError(t, (&cluster.NodeNetwork{IP: "::1", MinDynamicPort: 1, MaxDynamicPort: 65535, Reserved: all}).Check())
}
