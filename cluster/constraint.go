package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Constraint restricts the nodes that a group may run on. LTarget and RTarget are texts or name a
// fact of the node, such as ${attr.kernel.name}: see package scheduler.
type Constraint struct {
	LTarget string
	RTarget string
	// Operand is one of the constants below. An empty one is [OperandEqual].
	Operand string
}

// The operands of [Constraint].
const (
	OperandEqual          = "="
	OperandNotEqual       = "!="
	OperandLess           = "<"
	OperandLessOrEqual    = "<="
	OperandGreater        = ">"
	OperandGreaterOrEqual = ">="
	// OperandRegexp needs a regular expression of at most [MaxRegexpBytes] as RTarget.
	OperandRegexp = "regexp"
	// OperandVersion and OperandSemver need constraints on versions as RTarget, such as
	// ">= 1.2, < 2".
	OperandVersion = "version"
	OperandSemver  = "semver"
	// OperandSetContains needs all of a list as RTarget, OperandSetContainsAny one of it. The texts
	// of a list stand between commas.
	OperandSetContains    = "set_contains"
	OperandSetContainsAny = "set_contains_any"
	// OperandIsSet and OperandIsNotSet do not read RTarget.
	OperandIsSet    = "is_set"
	OperandIsNotSet = "is_not_set"
)

// Bounds on constraints.
const (
	// MaxConstraints bounds the constraints of a job, a group or a task.
	MaxConstraints = 100
	// MaxConstraintBytes bounds each target, in bytes.
	MaxConstraintBytes = 1024
	// MaxRegexpBytes bounds a regular expression, in bytes. MaxJobRegexps bounds those of a job with
	// its groups and tasks.
	MaxRegexpBytes = 128
	MaxJobRegexps  = 10
)

// String returns the constraint as operators write it.
func (c Constraint) String() string {
	switch c.Operand {
	case OperandIsSet, OperandIsNotSet:
		return c.LTarget + " " + c.Operand
	case "":
		return c.LTarget + " " + OperandEqual + " " + c.RTarget
	}
	return c.LTarget + " " + c.Operand + " " + c.RTarget
}

// Validate returns why servers cannot honour the constraint, or nil. It reads neither regular
// expressions nor versions: an FSM calls it, and servers that were built with different versions of Go
// must decide alike. The proposer calls [feasible.Check] too.
//
// [feasible.Check]: https://pkg.go.dev/github.com/seed-f9cf0b39/nodedrain/cluster/feasible#Check
func (c Constraint) Validate() error { return c.validate(checkTarget) }

// validate is Validate with another check of targets.
func (c Constraint) validate(checkTarget func(string) error) error {
	if len(c.LTarget) > MaxConstraintBytes || len(c.RTarget) > MaxConstraintBytes {
		return fmt.Errorf("Constraint: a target has at most %d bytes", MaxConstraintBytes)
	}
	if c.LTarget == "" {
		if !c.knownOperand() { // such as distinct_hosts, which has no sides
			return fmt.Errorf("Constraint %q: the operand %q is not supported", strings.TrimSpace(c.String()), c.Operand)
		}
		return fmt.Errorf("Constraint %q: the left side is missing", c)
	}
	err := errors.Join(checkTarget(c.LTarget), checkTarget(c.RTarget))
	if err != nil {
		return fmt.Errorf("Constraint %q: %w", c, err)
	}
	if !c.knownOperand() {
		return fmt.Errorf("Constraint %q: the operand %q is not supported", c, c.Operand)
	}
	switch c.Operand {
	case OperandSetContains, OperandSetContainsAny, OperandVersion, OperandSemver:
		if c.RTarget == "" {
			err = errors.New("the right side is missing")
		}
	case OperandRegexp:
		if len(c.RTarget) > MaxRegexpBytes {
			err = fmt.Errorf("a regular expression has at most %d bytes", MaxRegexpBytes)
		}
	}
	if err != nil {
		return fmt.Errorf("Constraint %q: %w", c, err)
	}
	return nil
}

// knownOperand reports whether servers evaluate the operand.
func (c Constraint) knownOperand() bool {
	switch c.Operand {
	case "", OperandEqual, OperandNotEqual, OperandLess, OperandLessOrEqual, OperandGreater, OperandGreaterOrEqual, OperandIsSet, OperandIsNotSet,
		OperandSetContains, OperandSetContainsAny, OperandVersion, OperandSemver, OperandRegexp:
		return true
	}
	return false
}

// checkTarget refuses the name of a fact that no node has.
func checkTarget(text string) error {
	name, is := Target(text)
	if !is {
		return nil
	}
	if kind, rest, _ := strings.Cut(name, "."); rest != "" && (kind == "attr" || kind == "meta" || kind == "driver") {
		return nil
	}
	switch name {
	case "node.unique.id", "node.unique.name", "node.datacenter", "node.class", "node.pool":
		return nil
	}
	return fmt.Errorf("the target %q is not supported", text)
}

func checkConstraints(constraints []Constraint) error {
	if len(constraints) > MaxConstraints {
		return fmt.Errorf("There are at most %d constraints but found %d", MaxConstraints, len(constraints))
	}
	var errs []error
	for _, c := range constraints {
		if len(errs) >= maxReasons {
			errs = append(errs, errTooManyReasons)
			break
		}
		if err := c.Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func constraintBytes(constraints []Constraint) int {
	size := 0
	for _, c := range constraints {
		size += len(c.LTarget) + len(c.RTarget) + len(c.Operand)
	}
	return size
}

// Constrained reports whether the job, the group, a task of the group or one of its requests for devices
// has constraints.
func (j *Job) Constrained(g *TaskGroup) bool {
	return len(j.Constraints) > 0 || len(g.Constraints) > 0 || slices.ContainsFunc(g.Tasks, (*Task).constrained)
}

func (t *Task) constrained() bool {
	return t != nil && (len(t.Constraints) > 0 ||
		slices.ContainsFunc(t.Devices, func(r DeviceRequest) bool { return len(r.Constraints) > 0 }))
}

// regexps counts the regular expressions of the job, its groups and its tasks.
func (j *Job) regexps() int {
	count := regexpsOf(j.Constraints)
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		count += regexpsOf(g.Constraints)
		for _, t := range g.Tasks {
			if t != nil {
				count += regexpsOf(t.Constraints) + t.deviceRegexps()
			}
		}
	}
	return count
}

func regexpsOf(constraints []Constraint) (count int) {
	for _, c := range constraints {
		if c.Operand == OperandRegexp {
			count++
		}
	}
	return count
}

// Target returns the name inside ${}, and false for a text that is none.
func Target(text string) (name string, is bool) {
	name, is = strings.CutPrefix(text, "${")
	if !is {
		return "", false
	}
	return strings.CutSuffix(name, "}")
}
