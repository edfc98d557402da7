package feasible_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

// on returns a job with the constraint on its task.
func on(c cluster.Constraint) *cluster.Job {
	return &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{{Name: "t", Constraints: []cluster.Constraint{c}}}}}}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ operand, right, want string }{
		{"regexp", "^rack-[0-9]{1,3}$", ""},
		{"regexp", `(?i)^(\d{1,3}\.){3}\d{1,3}$`, ""},
		{"regexp", "(", "error parsing regexp: missing closing ): `(`"},
		{"regexp", ".{1000}", "the regular expression needs 1002 instructions, and at most 250 are allowed: use smaller repetitions"},
		{"regexp", strings.Repeat("x", 129), "a regular expression has at most 128 bytes"},
		{"version", ">= 1.2, < 2", ""},
		{"version", ">= x", `"x" is not a version`},
		{"semver", ">= 1.2", `"1.2" is not a semantic version of three numbers`},
		{"=", "(", ""},
	} {
		err := feasible.Check(on(cluster.Constraint{LTarget: "${attr.x}", Operand: test.operand, RTarget: test.right}))
		if test.want == "" {
			must.NoError(t, err)
		} else {
			must.EqError(t, err, fmt.Sprintf(`Task group "g": Task "t": Constraint %q: %s`, "${attr.x} "+test.operand+" "+test.right, test.want))
		}
	}
	wrong := cluster.Constraint{LTarget: "x", Operand: "version", RTarget: "x"}
	j := on(wrong)
	j.Constraints, j.TaskGroups[0].Constraints = []cluster.Constraint{wrong}, []cluster.Constraint{wrong}
	must.EqError(t, feasible.Check(j), `Constraint "x version x": "x" is not a version
Task group "g": Constraint "x version x": "x" is not a version
Task group "g": Task "t": Constraint "x version x": "x" is not a version`)
	for range 100 {
		j.TaskGroups = append(j.TaskGroups, j.TaskGroups[0])
	}
	must.Eq(t, 10, strings.Count(feasible.Check(j).Error(), "\n")+1)
}

// The writer of a job must not stall servers. The worst expressions that a job may have are judged for a
// large cluster in little time, and a job that no proposer has checked is not matched.
func TestRegexps_CostIsBounded(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", cluster.MaxConstraintBytes)
	worst := "(.*x?){20}" + strings.Repeat("(.?){10}", 2) + "z"
	must.NoError(t, feasible.Check(on(cluster.Constraint{LTarget: text, Operand: "regexp", RTarget: worst})))
	for _, expression := range []string{worst, strings.Repeat(".{1000}", 18), "(.*x?){300}" + strings.Repeat("(.?){1000}", 90) + "z"} {
		g := &cluster.TaskGroup{}
		for range cluster.MaxJobRegexps {
			g.Constraints = append(g.Constraints, cluster.Constraint{LTarget: text, Operand: "regexp", RTarget: expression})
		}
		begin := time.Now()
		demands := feasible.Of(&cluster.Job{}).Group(g)
		for range 10_000 {
			must.NotEq(t, "", demands.Refusal(node()))
		}
		must.Less(t, 20*time.Second, time.Since(begin), must.Sprint("it took minutes for each node"))
	}
}

// A text that is too long matches nothing.
func TestRegexps_LongTexts(t *testing.T) {
	t.Parallel()
	demands := feasible.Of(&cluster.Job{}).Group(&cluster.TaskGroup{Constraints: []cluster.Constraint{{LTarget: "${meta.x}", Operand: "regexp", RTarget: "^a"}}})
	n := node()
	n.Meta["x"] = strings.Repeat("a", feasible.MaxMatchedBytes)
	must.Eq(t, "", demands.Refusal(n))
	n.Meta["x"] += "a"
	must.Eq(t, "${meta.x} regexp ^a", demands.Refusal(n))
}

// One reading of a job serves many nodes with other facts.
func TestJob_JudgesManyNodes(t *testing.T) {
	t.Parallel()
	g := &cluster.TaskGroup{}
	job := feasible.Of(&cluster.Job{Constraints: []cluster.Constraint{{LTarget: "${attr.kernel.name}", Operand: "regexp", RTarget: "^li"}}})
	other := job.Group(&cluster.TaskGroup{Constraints: []cluster.Constraint{{LTarget: "a", RTarget: "b"}}})
	for range 3 {
		n := node()
		must.Eq(t, "", job.Group(g).Refusal(n))
		must.Eq(t, "a = b", other.Refusal(n))
		n.Attributes["kernel.name"] = "windows"
		must.Eq(t, "${attr.kernel.name} regexp ^li", job.Group(g).Refusal(n))
	}
}
