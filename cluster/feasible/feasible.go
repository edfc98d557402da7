package feasible

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/semver"
)

// MissingDrivers is the reason of a node without a driver that can start tasks of the group.
const MissingDrivers = "missing drivers"

// Demands are what a group demands of a node. The zero value demands nothing. Demands do not change,
// and are safe for concurrent use.
type Demands struct {
	constraints []constraint
	drivers     []string
	killTimeout time.Duration
}

// constraint is a constraint that has been read once for many nodes.
type constraint struct {
	cluster.Constraint
	expression *regexp.Regexp
	versions   semver.Constraints
}

// Of returns the demands of the group of the job. A constraint that [cluster.Constraint.Validate]
// refuses never holds.
func Of(j *cluster.Job, g *cluster.TaskGroup) Demands {
	d := Demands{}
	d.add(j.Constraints)
	d.add(g.Constraints)
	for _, t := range g.Tasks {
		if t == nil {
			continue
		}
		d.add(t.Constraints)
		d.killTimeout = max(d.killTimeout, t.KillTimeout)
		if t.Driver != "" && !slices.Contains(d.drivers, t.Driver) {
			d.drivers = append(d.drivers, t.Driver)
		}
	}
	return d
}

func (d *Demands) add(constraints []cluster.Constraint) {
	for _, c := range constraints {
		one := constraint{Constraint: c}
		switch c.Operand {
		case cluster.OperandRegexp:
			one.expression, _ = regexp.Compile(c.RTarget)
		case cluster.OperandVersion:
			one.versions, _ = semver.ParseLoose(c.RTarget)
		case cluster.OperandSemver:
			one.versions, _ = semver.Parse(c.RTarget)
		}
		d.constraints = append(d.constraints, one)
	}
}

// Refusal returns why the group may not run on the node, or the empty string.
func (d *Demands) Refusal(n *cluster.Node) string {
	if why := d.Unsatisfied(n); why != "" {
		return why
	}
	for _, driver := range d.drivers {
		if !n.HasDriver(driver) {
			return MissingDrivers
		}
	}
	if n.MaxKillTimeout > 0 && d.killTimeout > n.MaxKillTimeout {
		return fmt.Sprintf("kill timeout %s is above the node's %s", d.killTimeout, n.MaxKillTimeout)
	}
	return ""
}

// Unsatisfied returns the first constraint that does not hold on the node, or the empty string. It
// judges neither drivers nor kill timeouts: a running allocation stays when its driver is unhealthy.
func (d *Demands) Unsatisfied(n *cluster.Node) string {
	for i := range d.constraints {
		if c := &d.constraints[i]; !c.holds(n) {
			return c.String()
		}
	}
	return ""
}

func (c *constraint) holds(n *cluster.Node) bool {
	left, isLeft := resolve(n, c.LTarget)
	switch c.Operand {
	case cluster.OperandIsSet:
		return isLeft
	case cluster.OperandIsNotSet:
		return !isLeft
	}
	right, isRight := resolve(n, c.RTarget)
	switch {
	case c.Operand == cluster.OperandNotEqual:
		return isLeft != isRight || left != right
	case !isLeft || !isRight:
		return false
	}
	switch c.Operand {
	case "", cluster.OperandEqual:
		return left == right
	case cluster.OperandLess:
		return order(left, right) < 0
	case cluster.OperandLessOrEqual:
		return order(left, right) <= 0
	case cluster.OperandGreater:
		return order(left, right) > 0
	case cluster.OperandGreaterOrEqual:
		return order(left, right) >= 0
	case cluster.OperandRegexp:
		return c.expression != nil && c.expression.MatchString(left)
	case cluster.OperandVersion, cluster.OperandSemver:
		return c.versions.Match(left)
	case cluster.OperandSetContains:
		return contained(left, right) == len(list(right))
	case cluster.OperandSetContainsAny:
		return contained(left, right) > 0
	}
	return false
}

// order compares two numbers by value, and other texts by their bytes.
func order(left, right string) int {
	a, errA := strconv.ParseInt(left, 10, 64)
	b, errB := strconv.ParseInt(right, 10, 64)
	if errA == nil && errB == nil {
		return cmp.Compare(a, b)
	}
	x, errX := strconv.ParseFloat(left, 64)
	y, errY := strconv.ParseFloat(right, 64)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(left, right)
}

// contained counts the items of the right list that the left list has.
func contained(left, right string) (count int) {
	has := list(left)
	for _, item := range list(right) {
		if slices.Contains(has, item) {
			count++
		}
	}
	return count
}

func list(text string) []string {
	items := strings.Split(text, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// resolve returns the value of a target on the node, and false for a fact that is not set.
func resolve(n *cluster.Node, target string) (value string, set bool) {
	name, is := cluster.Target(target)
	if !is {
		return target, true
	}
	kind, name, _ := strings.Cut(name, ".")
	switch kind {
	case "attr":
		if value, set = n.Attributes[name]; set {
			return value, true
		}
		if driver, is := strings.CutPrefix(name, "driver."); is {
			return ofDriver(n, driver)
		}
		return "", false
	case "driver":
		return ofDriver(n, name)
	case "meta":
		value, set = n.Meta[name]
		return value, set
	case "node":
		return ofNode(n, name)
	}
	return "", false
}

func ofNode(n *cluster.Node, name string) (value string, set bool) {
	switch name {
	case "unique.id":
		return string(n.ID), true
	case "unique.name":
		return n.Name, true
	case "datacenter":
		return n.Datacenter, true
	case "class":
		return n.NodeClass, n.NodeClass != ""
	case "pool":
		return cmp.Or(n.NodePool, cluster.DefaultNodePool), true
	}
	return "", false
}

// ofDriver returns a fact of a driver: "name", or "name.attribute".
func ofDriver(n *cluster.Node, fact string) (value string, set bool) {
	name, _, isAttribute := strings.Cut(fact, ".")
	d := n.Drivers[name]
	switch {
	case d == nil:
		return "", false
	case isAttribute:
		value, set = d.Attributes["driver."+fact]
		return value, set
	case n.HasDriver(name):
		return "1", true
	}
	return "", false
}
