//race:skip one goroutine
package feasible_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

func node() *cluster.Node {
	return &cluster.Node{
		ID: "n1", Name: "rack1-a", Datacenter: "dc1", NodeClass: "big", ReportsDrivers: true,
		Attributes: map[string]string{"kernel.name": "linux", "kernel.version": "6.18.3", "cpu.numcores": "16", "os.flavours": "a, b,c", "empty": ""},
		Meta:       map[string]string{"rack": "r1", "owner": "linux"},
		Drivers: map[string]*cluster.DriverInfo{
			"raw_exec": {Detected: true, Healthy: true, Attributes: map[string]string{"driver.raw_exec.version": "1.2.0"}},
			"docker":   {Detected: true, Attributes: map[string]string{"driver.docker.version": "27.0.1"}},
		},
	}
}

func TestConstraints(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		left, operand, right string
		want                 bool
	}{
		{"${attr.kernel.name}", "=", "linux", true},
		{"${attr.kernel.name}", "", "linux", true},
		{"linux", "=", "${attr.kernel.name}", true},
		{"${attr.kernel.name}", "=", "${meta.owner}", true},
		{"${attr.kernel.name}", "=", "windows", false},
		{"${attr.kernel.name}", "!=", "windows", true},
		{"${attr.kernel.name}", "!=", "linux", false},
		{"${attr.none}", "=", "", false},
		{"${attr.none}", "!=", "linux", true},
		{"${attr.none}", "!=", "${attr.neither}", false},
		{"${attr.empty}", "is_set", "", true},
		{"${attr.none}", "is_set", "", false},
		{"${attr.none}", "is_not_set", "", true},
		{"${attr.empty}", "is_not_set", "", false},
		{"${attr.cpu.numcores}", ">", "9", true},
		{"${attr.cpu.numcores}", ">=", "16.0", true},
		{"${attr.cpu.numcores}", "<", "16", false},
		{"${attr.cpu.numcores}", "<=", "16", true},
		{"${attr.kernel.name}", "<", "m", true},
		{"${attr.none}", "<", "m", false},
		{"${attr.kernel.name}", "regexp", "^li.*x$", true},
		{"${attr.kernel.name}", "regexp", "^Li", false},
		{"${attr.kernel.name}", "regexp", "(", false},
		{"${attr.kernel.version}", "version", ">= 6.2, < 7", true},
		{"${attr.kernel.version}", "version", "< 6.2", false},
		{"${attr.kernel.version}", "version", "x", false},
		{"${attr.kernel.version}", "semver", "> 6.18.2", true},
		{"${attr.kernel.name}", "semver", "> 6.18.2", false},
		{"${attr.os.flavours}", "set_contains", "c,a", true},
		{"${attr.os.flavours}", "set_contains", "c,d", false},
		{"${attr.os.flavours}", "set_contains_any", "c,d", true},
		{"${attr.os.flavours}", "set_contains_any", "d", false},
		{"${attr.kernel.name}", "distinct_hosts", "true", false},
		{"${driver.raw_exec}", "=", "1", true},
		{"${driver.docker}", "is_set", "", false},
		{"${driver.docker.version}", "version", ">= 20", true},
		{"${attr.driver.raw_exec.version}", "=", "1.2.0", true},
		{"${driver.none.version}", "is_not_set", "", true},
		{"${meta.rack}", "=", "r1", true},
		{"${node.unique.id}", "=", "n1", true},
		{"${node.unique.name}", "regexp", "^rack1-", true},
		{"${node.datacenter}", "=", "dc1", true},
		{"${node.class}", "!=", "small", true},
		{"${node.pool}", "=", "default", true},
		{"${node.colour}", "is_set", "", false},
		{"${job.name}", "is_set", "", false},
	} {
		c := cluster.Constraint{LTarget: test.left, Operand: test.operand, RTarget: test.right}
		for where, demands := range map[string]*feasible.Demands{
			"job":   feasible.Of(&cluster.Job{Constraints: []cluster.Constraint{c}}).Group(&cluster.TaskGroup{}),
			"group": feasible.Of(&cluster.Job{}).Group(&cluster.TaskGroup{Constraints: []cluster.Constraint{c}}),
			"task":  feasible.Of(&cluster.Job{}).Group(&cluster.TaskGroup{Tasks: []*cluster.Task{nil, {Driver: "raw_exec", Constraints: []cluster.Constraint{c}}}}),
		} {
			want := ""
			if !test.want {
				want = c.String()
			}
			must.Eq(t, want, demands.Refusal(node()), must.Sprint(where, c))
			must.Eq(t, want, demands.Unsatisfied(node()))
		}
	}
}

func TestDrivers(t *testing.T) {
	t.Parallel()
	group := func(drivers ...string) *cluster.TaskGroup {
		g := &cluster.TaskGroup{}
		for _, d := range drivers {
			g.Tasks = append(g.Tasks, &cluster.Task{Driver: d})
		}
		return g
	}
	for _, test := range []struct {
		group *cluster.TaskGroup
		want  string
	}{
		{group("raw_exec", "raw_exec"), ""},
		{group("raw_exec", "docker"), "missing drivers: docker"},
		{group("java", "raw_exec", "docker", "java"), "missing drivers: java, docker"},
		{group("raw_exec", ""), "missing drivers: (none given)"},
	} {
		demands := feasible.Of(&cluster.Job{}).Group(test.group)
		must.Eq(t, test.want, demands.Refusal(node()))
		must.Eq(t, "", demands.Unsatisfied(node()))
		must.Eq(t, "", demands.Refusal(&cluster.Node{}), must.Sprint("a node that does not report its drivers"))
	}
}

func TestKillTimeout(t *testing.T) {
	t.Parallel()
	demands := feasible.Of(&cluster.Job{}).Group(&cluster.TaskGroup{Tasks: []*cluster.Task{{Driver: "raw_exec", KillTimeout: 40 * time.Second}, {Driver: "raw_exec", KillTimeout: time.Second}}})
	n := node()
	must.Eq(t, "", demands.Refusal(n), must.Sprint("no bound"))
	n.MaxKillTimeout = 40 * time.Second
	must.Eq(t, "", demands.Refusal(n))
	n.MaxKillTimeout = 30 * time.Second
	must.Eq(t, "kill timeout 40s is above the node's 30s", demands.Refusal(n))
}
