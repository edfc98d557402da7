package shortage

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
	"github.com/seed-f9cf0b39/nodedrain/cluster/variables"
)

// Unknown returns a warning for each variable that a task or a constraint of the job names and that no node
// has now. Without nodes it returns none.
func Unknown(s State, j *cluster.Job) (warnings []string) {
	nodes := slices.Collect(s.Nodes())
	unset := func(name string) bool {
		return len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n *cluster.Node) bool { _, set := variables.OfNode(n, name); return set })
	}
	inConstraints := func(in string, constraints []cluster.Constraint) {
		for _, c := range constraints {
			name, is := cluster.Target(c.LTarget)
			if is && c.Operand != cluster.OperandIsNotSet && c.Operand != cluster.OperandNotEqual && unset(name) {
				warnings = append(warnings, fmt.Sprintf("%s: constraint %q: no node has %s now, so no node can run its tasks", in, c, c.LTarget))
			}
		}
	}
	inConstraints("job", j.Constraints)
	for _, g := range j.TaskGroups {
		in := fmt.Sprintf("group %q", g.Name)
		inConstraints(in, g.Constraints)
		for _, t := range g.Tasks {
			inConstraints(fmt.Sprintf("%s: task %q", in, t.Name), t.Constraints)
		}
		for _, name := range feasible.Variables(j, g) {
			if unset(name) {
				warnings = append(warnings, fmt.Sprintf("%s: no node has the variable ${%s} now, so no node can run its tasks", in, name))
			}
		}
	}
	return warnings
}
