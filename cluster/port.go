package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Bounds on ports.
const (
	// MaxPorts bounds the ports of a group and its tasks together.
	MaxPorts = 100
	// MaxPortLabelBytes bounds the label of a port.
	MaxPortLabelBytes = 64
	// MaxPort is the largest number of a port.
	MaxPort = 65535
	// maxIPBytes bounds an address as text.
	maxIPBytes = 45
	// MaxPortRanges bounds the ranges of a node's reserved ports.
	MaxPortRanges = 1000

	// DefaultMinDynamicPort and DefaultMaxDynamicPort are the range of dynamic ports of a node that names none.
	DefaultMinDynamicPort = 20000
	DefaultMaxDynamicPort = 32000
)

// PortRequest is a port of its node that a group or a task requests.
type PortRequest struct {
	// Label names the port. It is unique among the ports of the group itself, or of the task.
	Label string
	// Static is the number of the port. Zero is a dynamic port: the scheduler chooses the number from the
	// range of the node.
	Static int `codec:",omitempty"`
	// To is the port in the task that the driver maps to the port, or zero. A driver that maps no ports
	// ignores it.
	To int `codec:",omitempty"`
}

// VariableName is the text as the names of environment variables have it.
func VariableName(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, text)
}

// PortRequests yields the ports that the group requests, with the names of their tasks: first those of the
// group itself, whose task is empty. It is the order of [AssignedPorts].
func (g *TaskGroup) PortRequests() iter.Seq2[string, *PortRequest] {
	return partsOf(g, g.Ports, func(t *Task) []PortRequest { return t.Ports })
}

// RequestsPorts reports whether the group or a task of it requests ports.
func (g *TaskGroup) RequestsPorts() bool {
	for range g.PortRequests() {
		return true
	}
	return false
}

// RequestsPorts reports whether a group of the job requests ports.
func (j *Job) RequestsPorts() bool {
	return slices.ContainsFunc(j.TaskGroups, func(g *TaskGroup) bool { return g != nil && g.RequestsPorts() })
}

// AssignedPorts are the ports of an allocation, in the order of [TaskGroup.PortRequests].
type AssignedPorts struct {
	// IP is the address of the node on which its tasks listen.
	IP  string
	All []AssignedPort
}

// AssignedPort is one port of an allocation.
type AssignedPort struct {
	// Task is the task that requests the port, or empty if its group does.
	Task   string `codec:",omitempty"`
	Label  string
	Number int
	// To is that of the request.
	To int `codec:",omitempty"`
}

// ServicePort returns the port with the label for a service of the owner, which is a task, or empty for the group. The
// owner's port wins over that of the task that the service names, and that over the group's. A service of the group may
// have the port of any task. A label that no such port has may be a number, whose ip is empty. The ports may be nil.
func (p *AssignedPorts) ServicePort(owner, taskName, label string) (ip string, number int, is bool) {
	if p != nil {
		for _, task := range []string{owner, taskName, ""} {
			for _, a := range p.All {
				if a.Label == label && a.Task == task {
					return p.IP, a.Number, true
				}
			}
		}
		for _, a := range p.All {
			if a.Label == label && servesPortOf(owner, a.Task) {
				return p.IP, a.Number, true
			}
		}
	}
	number, err := strconv.Atoi(label)
	return "", number, err == nil
}

// servesPortOf reports whether a service of the owner may have a port of the task, which is empty for the group.
func servesPortOf(owner, task string) bool { return owner == "" || task == "" || task == owner }

// PortsInUse are the ports of one node that allocations have.
type PortsInUse map[int]*Allocation

// Add adds the ports of an allocation.
func (u PortsInUse) Add(a *Allocation) {
	if a.Ports == nil {
		return
	}
	for _, p := range a.Ports.All {
		u[p.Number] = a
	}
}

// NodeNetwork is the network of a node whose ports its allocations get.
type NodeNetwork struct {
	// Device is the name of the interface that has IP, or empty.
	Device string `codec:",omitempty"`
	// IP is the address on which tasks listen.
	IP string
	// MinDynamicPort and MaxDynamicPort are the range of dynamic ports, with both ends.
	MinDynamicPort, MaxDynamicPort int
	// Reserved are the ports that no allocation gets, in their order.
	Reserved PortRanges `codec:",omitempty"`
}

// Copy returns a copy that shares nothing with n.
func (n *NodeNetwork) Copy() *NodeNetwork {
	if n == nil {
		return nil
	}
	c := *n
	c.Reserved = slices.Clone(n.Reserved)
	return &c
}

// Equal reports whether both networks are the same. A nil one is no other.
func (n *NodeNetwork) Equal(o *NodeNetwork) bool {
	if n == nil || o == nil {
		return n == o
	}
	return n.Device == o.Device && n.IP == o.IP && n.MinDynamicPort == o.MinDynamicPort && n.MaxDynamicPort == o.MaxDynamicPort &&
		slices.Equal(n.Reserved, o.Reserved)
}

// Check returns what is wrong with the network, or nil. A nil network is that of a node without ports.
func (n *NodeNetwork) Check() error {
	if n == nil {
		return nil
	}
	// All servers must decide alike, so this does not depend on a parser of the library.
	if n.IP == "" || len(n.IP) > maxIPBytes || strings.Trim(n.IP, "0123456789abcdefABCDEF:.") != "" {
		return fmt.Errorf("the network of the node has no valid IP address: %q", CutText(n.IP))
	}
	if len(n.Device) > MaxIDBytes {
		return fmt.Errorf("the name of the node's network interface is longer than %d bytes", MaxIDBytes)
	}
	if n.MinDynamicPort < 1 || n.MaxDynamicPort < n.MinDynamicPort || n.MaxDynamicPort > MaxPort {
		return fmt.Errorf("the range of dynamic ports must be within [1, %d] but found %d to %d", MaxPort, n.MinDynamicPort, n.MaxDynamicPort)
	}
	if len(n.Reserved) > MaxPortRanges {
		return fmt.Errorf("a node reserves at most %d ranges of ports but found %d", MaxPortRanges, len(n.Reserved))
	}
	for _, r := range n.Reserved {
		if r.First < 1 || r.Last < r.First || r.Last > MaxPort {
			return fmt.Errorf("reserved ports must be within [1, %d] but found %s", MaxPort, r)
		}
	}
	return nil
}

// PortRange are the ports from First to Last, with both ends.
type PortRange struct{ First, Last int }

// String returns a text such as "22" or "8000-8010".
func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// PortRanges are ports.
type PortRanges []PortRange

// ParsePortRanges reads a text such as "22,80,8000-8010". Empty is none.
func ParsePortRanges(text string) (all PortRanges, err error) {
	if all, err = parseRanges(text, "port", "22 or 8000-8010", 1, MaxPort); err != nil {
		return nil, err
	}
	if len(all) > MaxPortRanges {
		return nil, fmt.Errorf("there are at most %d ranges of ports but found %d", MaxPortRanges, len(all))
	}
	slices.SortFunc(all, func(a, b PortRange) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last)) })
	return all, nil
}

// parseRanges reads a list of numbers, and of ranges of them, within [least, most]. Empty is none.
func parseRanges(text, noun, example string, least, most int) (all []PortRange, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		var r PortRange
		var errFirst, errLast error
		r.First, errFirst = strconv.Atoi(strings.TrimSpace(first))
		r.Last, errLast = strconv.Atoi(strings.TrimSpace(last))
		if errFirst != nil || errLast != nil || r.First < least || r.Last < r.First || r.Last > most {
			return nil, fmt.Errorf("%q must be a %s or a range of %ss within [%d, %d], such as %s", CutText(part), noun, noun, least, most, example)
		}
		all = append(all, r)
	}
	return all, nil
}

// String returns a text that [ParsePortRanges] reads.
func (all PortRanges) String() string {
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}

// Contain reports whether one of the ranges contains the port.
func (all PortRanges) Contain(port int) bool {
	return slices.ContainsFunc(all, func(r PortRange) bool { return r.First <= port && port <= r.Last })
}

// sortedPorts returns the requests with static ports first, as the API lists them.
func sortedPorts(requests []PortRequest) []PortRequest {
	slices.SortStableFunc(requests, func(a, b PortRequest) int {
		return cmp.Compare(min(1, b.Static), min(1, a.Static))
	})
	return orNil(requests)
}

// validatePorts checks the ports of the group and its tasks together.
func (g *TaskGroup) validatePorts() error {
	var errs []error
	count, labels, numbers := 0, make(map[[2]string]string), make(map[int]string)
	for task, r := range g.PortRequests() {
		count++
		if len(errs) >= maxReasons {
			errs = append(errs, errTooManyReasons)
			break
		}
		place := fmt.Sprintf("Port %q", CutText(r.Label))
		if task != "" {
			place = fmt.Sprintf("Task %q: port %q", CutText(task), CutText(r.Label))
		}
		key := [2]string{task, VariableName(r.Label)}
		switch other, taken := labels[key]; {
		case r.Label == "" || len(r.Label) > MaxPortLabelBytes:
			errs = append(errs, fmt.Errorf("%s: the label must have 1 to %d bytes", place, MaxPortLabelBytes))
		case CheckID(r.Label) != nil:
			errs = append(errs, fmt.Errorf("%s: invalid label: %w", place, CheckID(r.Label)))
		case taken && other == r.Label:
			errs = append(errs, fmt.Errorf("%s is defined twice", place))
		case taken:
			errs = append(errs, fmt.Errorf("%s: the labels %q and %q have the same environment variables", place, other, r.Label))
		}
		labels[key] = r.Label
		if r.Static < 0 || r.Static > MaxPort {
			errs = append(errs, fmt.Errorf("%s: a static port must be between [1, %d] but found %d", place, MaxPort, r.Static))
		}
		if r.To < 0 || r.To > MaxPort {
			errs = append(errs, fmt.Errorf("%s: To must be between [1, %d] but found %d", place, MaxPort, r.To))
		}
		if other, taken := numbers[r.Static]; taken && r.Static > 0 {
			errs = append(errs, fmt.Errorf("%s: port %d is also the port %q of the group", place, r.Static, other))
		}
		numbers[r.Static] = r.Label
	}
	if count > MaxPorts {
		errs = append(errs, fmt.Errorf("A group has at most %d ports but found %d", MaxPorts, count))
	}
	return errors.Join(errs...)
}
