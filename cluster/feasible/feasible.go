package feasible

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/variables"
)

// MissingDrivers begins the reason of a node without a driver that can start tasks of the group. The names
// of the missing drivers follow.
const MissingDrivers = "missing drivers"

// Job reads what the groups of a job demand of nodes, each constraint once. Only one goroutine uses
// it and its [Demands].
type Job struct {
	job *cluster.Job
	// shared are the constraints of the job itself.
	shared []*constraint
	groups map[*cluster.TaskGroup]*Demands
}

// Of returns the demands of the job. It must not change meanwhile.
func Of(j *cluster.Job) *Job {
	return &Job{job: j, shared: read(j.Constraints), groups: make(map[*cluster.TaskGroup]*Demands)}
}

// Group returns the demands of a group of the job. A constraint that [Check] refuses never holds.
func (j *Job) Group(g *cluster.TaskGroup) *Demands {
	d := j.groups[g]
	if d == nil {
		names, _ := Variables(j.job, g)
		d = &Demands{
			constraints: append(slices.Clip(j.shared), read(g.Constraints)...), variables: names,
			client: ClientOf(g), devices: devicesOf(g), group: g,
		}
		for _, t := range g.Tasks {
			if t != nil {
				d.constraints = append(d.constraints, read(t.Constraints)...)
			}
		}
		j.groups[g] = d
	}
	return d
}

// Demands are what a group demands of a node.
type Demands struct {
	constraints []*constraint
	variables   []string
	client      Client
	devices     Devices
	group       *cluster.TaskGroup
}

// Devices returns what the group demands of the devices of a node.
func (d *Demands) Devices() Devices { return d.devices }

// Client is what a group demands of the client of a node. Unlike constraints, the FSM judges it: it
// reads no regular expression.
type Client struct {
	drivers     []string
	killTimeout time.Duration
}

// ClientOf returns what the group demands of a client.
func ClientOf(g *cluster.TaskGroup) Client {
	c := Client{}
	for _, t := range g.Tasks {
		if t == nil {
			continue
		}
		c.killTimeout = max(c.killTimeout, t.KillTimeout)
		if !slices.Contains(c.drivers, t.Driver) {
			c.drivers = append(c.drivers, t.Driver)
		}
	}
	return c
}

// Refusal returns why the client of the node cannot run the group, or the empty string.
func (c Client) Refusal(n *cluster.Node) string {
	var missing []string
	for _, driver := range c.drivers {
		if !n.HasDriver(driver) {
			missing = append(missing, cmp.Or(driver, "(none given)"))
		}
	}
	if len(missing) > 0 {
		return cluster.CutText(MissingDrivers + ": " + strings.Join(missing, ", "))
	}
	if n.MaxKillTimeout > 0 && c.killTimeout > n.MaxKillTimeout {
		return fmt.Sprintf("kill timeout %s is above the node's %s", c.killTimeout, n.MaxKillTimeout)
	}
	return ""
}

// Refusal returns why the group may not run on the node, or the empty string. It does not judge which devices
// are healthy and free, and which ports and cores are free.
func (d *Demands) Refusal(n *cluster.Node) string {
	if why := d.Unsatisfied(n); why != "" {
		return why
	}
	if why := d.client.Refusal(n); why != "" {
		return why
	}
	for _, name := range d.variables {
		if _, set := variables.OfNode(n, name); !set {
			return fmt.Sprintf("missing variable ${%s}", name)
		}
	}
	if why := d.devices.Missing(n); why != "" {
		return why
	}
	if why := MissingCores(d.group, n); why != "" {
		return why
	}
	return MissingPorts(d.group, n)
}

// Unsatisfied returns the first constraint that does not hold on the node, or the empty string. It
// judges neither drivers nor devices nor kill timeouts: a running allocation stays when its driver is unhealthy.
func (d *Demands) Unsatisfied(n *cluster.Node) string {
	for _, c := range d.constraints {
		if !c.holds(n) {
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
	if c.last == nil || c.last.left != left || c.last.right != right {
		c.last = &answer{left: left, right: right, holds: c.compare(left, right)}
	}
	return c.last.holds
}

func (c *constraint) compare(left, right string) bool {
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
		return c.expression != nil && len(left) <= MaxMatchedBytes && c.expression.MatchString(left)
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
	return variables.OfNode(n, name)
}
