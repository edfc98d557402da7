package shortage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
	"github.com/seed-f9cf0b39/nodedrain/cluster/variables"
)

// Unknown returns a warning for each variable that a task, a check or a constraint of the job names and that no node
// has now, and for requests for devices of one model of which each node has too few. Without nodes it returns none of
// these. Variables in meta and in names of checks have a warning too: nothing replaces them.
func Unknown(s State, j *cluster.Job) (warnings []string) {
	u := unknown{nodes: slices.Collect(s.Nodes())}
	u.constraints("job", j.Constraints)
	u.meta("job", j.Meta)
	for _, g := range j.TaskGroups {
		in := fmt.Sprintf("group %q", g.Name)
		u.constraints(in, g.Constraints)
		u.meta(in, g.Meta)
		for _, t := range g.Tasks {
			inTask := fmt.Sprintf("%s: task %q", in, t.Name)
			u.constraints(inTask, t.Constraints)
			u.meta(inTask, t.Meta)
			for i := range t.Devices {
				u.devices(inTask, &t.Devices[i])
			}
		}
		needed, broken := feasible.Variables(j, g)
		if broken != "" {
			u.warn("%s: a variable in %q has no closing brace, so no node can run its tasks", in, cluster.CutText(broken))
		}
		for _, name := range needed {
			if u.unset(name) {
				u.warn("%s: no node has the variable ${%s} now, so no node can run its tasks", in, name)
			}
		}
		u.checks(in, j, g)
		u.models(in, feasible.Of(j).Group(g).Devices())
	}
	return u.warnings
}

type unknown struct {
	nodes    []*cluster.Node
	warnings []string
}

func (u *unknown) warn(format string, args ...any) {
	u.warnings = append(u.warnings, fmt.Sprintf(format, args...))
}

func (u *unknown) unset(name string) bool {
	return len(u.nodes) > 0 && !slices.ContainsFunc(u.nodes, func(n *cluster.Node) bool { _, set := variables.OfNode(n, name); return set })
}

// targets returns the facts without which the constraint never holds.
func targets(c cluster.Constraint) (names []string) {
	sides := []string{c.LTarget, c.RTarget}
	switch c.Operand {
	case cluster.OperandIsNotSet, cluster.OperandNotEqual:
		return nil
	case cluster.OperandIsSet:
		sides = sides[:1]
	}
	for _, side := range sides {
		if name, is := cluster.Target(side); is {
			names = append(names, name)
		}
	}
	return names
}

func (u *unknown) constraints(in string, constraints []cluster.Constraint) {
	for _, c := range constraints {
		if (c.Operand == cluster.OperandIsSet || c.Operand == cluster.OperandIsNotSet) && c.RTarget != "" {
			u.warn("%s: constraint %q: its right side %q has no effect", in, c, cluster.CutText(c.RTarget))
		}
		for _, name := range targets(c) {
			if u.unset(name) {
				u.warn("%s: constraint %q: no node has ${%s} now, so no node can run its tasks", in, c, name)
			}
		}
	}
}

// devices warns of attributes that no device with the name of the request has.
func (u *unknown) devices(in string, r *cluster.DeviceRequest) {
	check := func(what, effect string, c cluster.Constraint) {
		for _, name := range targets(c) {
			attribute, is := strings.CutPrefix(name, "device.attr.")
			if is && len(u.nodes) > 0 && !slices.ContainsFunc(u.nodes, func(n *cluster.Node) bool { return hasAttribute(n, r, attribute) }) {
				u.warn("%s: device %q: %s %q: no such device has ${%s} now, so %s", in, r.Name, what, c, name, effect)
			}
		}
	}
	for _, c := range r.Constraints {
		check("constraint", "no node can run its tasks", c)
	}
	for _, a := range r.Affinities {
		check("affinity", "it has no effect", a.Constraint)
	}
}

// checks warns of what fails each run of a check, and of variables in names of checks.
func (u *unknown) checks(in string, j *cluster.Job, g *cluster.TaskGroup) {
	for owner, s := range g.ServiceDefinitions() {
		in := in
		if owner != "" {
			in += fmt.Sprintf(": task %q", owner)
		}
		for i := range s.Checks {
			c := &s.Checks[i]
			what := fmt.Sprintf("%s: service %q: check %q", in, cluster.CutText(s.Name), cluster.CutText(c.Name))
			needed, broken := feasible.CheckVariables(j, g, owner, s, c)
			if broken != "" {
				u.warn("%s: a variable in %q has no closing brace, so the check always fails", what, cluster.CutText(broken))
			}
			for _, name := range needed {
				if u.unset(name) {
					u.warn("%s: no node has the variable ${%s} now, so the check always fails", what, name)
				}
			}
			if names := variables.Names(c.Name); len(names) > 0 && !strings.HasPrefix(c.Name, fmt.Sprintf("service: %q check", s.Name)) {
				u.warn("%s: ${%s} stays as it is: variables in the name of a check are not replaced", what, names[0])
			}
		}
	}
}

// models warns of requests that only devices of several models together would fulfil.
func (u *unknown) models(in string, d feasible.Devices) {
	several := ""
	for _, n := range u.nodes {
		why := d.Missing(n)
		if why == "" {
			return
		}
		if strings.Contains(why, feasible.OfOneModel) {
			several = why
		}
	}
	if several != "" {
		u.warn("%s: no node can run its tasks now: %s: a request gets devices of one model", in, several)
	}
}

func hasAttribute(n *cluster.Node, r *cluster.DeviceRequest, name string) bool {
	return slices.ContainsFunc(n.Devices, func(g *cluster.DeviceGroup) bool {
		_, has := g.Attributes[name]
		return has && r.Matches(g.Kind)
	})
}

func (u *unknown) meta(in string, meta map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if names := variables.Names(meta[key]); len(names) > 0 {
			u.warn("%s: meta %q: ${%s} stays as it is: variables in meta are not replaced", in, key, names[0])
		}
	}
}
