package feasible

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/semver"
)

// Bounds on regular expressions. A match costs their product. See also [cluster.MaxRegexpBytes].
const (
	// MaxRegexpProgram bounds the instructions of a compiled expression.
	MaxRegexpProgram = 250
	// MaxMatchedBytes bounds the text, in bytes. A longer one does not match.
	MaxMatchedBytes = 4 << 10
)

// maxReasons bounds the reasons of one refusal.
const maxReasons = 10

// Check returns which regular expressions and versions of a job's constraints cannot be read, joined,
// or nil. It returns ten at most. The proposer of a job calls it after [cluster.Job.Validate]. An FSM
// must not: which expressions are valid depends on the version of Go.
func Check(j *cluster.Job) error {
	errs := check("", j.Constraints)
	for _, g := range j.TaskGroups {
		in := fmt.Sprintf("Task group %q: ", g.Name)
		errs = append(errs, check(in, g.Constraints)...)
		for _, t := range g.Tasks {
			inTask := in + fmt.Sprintf("Task %q: ", t.Name)
			errs = append(errs, check(inTask, t.Constraints)...)
			for _, r := range t.Devices {
				errs = append(errs, check(inTask+fmt.Sprintf("Device %q: ", r.Name), slices.Concat(r.Constraints, constraintsOf(r.Affinities)))...)
			}
		}
		if len(errs) >= maxReasons {
			return errors.Join(errs[:maxReasons]...)
		}
	}
	return errors.Join(errs...)
}

func constraintsOf(affinities []cluster.Affinity) (all []cluster.Constraint) {
	for _, a := range affinities {
		all = append(all, a.Constraint)
	}
	return all
}

func check(in string, constraints []cluster.Constraint) (errs []error) {
	for _, c := range constraints {
		one := constraint{Constraint: c}
		if err := one.read(); err != nil {
			errs = append(errs, fmt.Errorf("%sConstraint %q: %w", in, c, err))
		}
	}
	return errs
}

// constraint is a constraint that has been read once for many nodes.
type constraint struct {
	cluster.Constraint
	expression *regexp.Regexp
	versions   semver.Constraints
	// last is the last answer, or nil: many nodes have the same facts.
	last *answer
}

// answer is whether a constraint holds between two texts.
type answer struct {
	left, right string
	holds       bool
}

// read returns the constraints. One that cannot be read never holds.
func read(constraints []cluster.Constraint) (all []*constraint) {
	for _, c := range constraints {
		one := &constraint{Constraint: c}
		if one.read() != nil {
			one.expression, one.versions = nil, semver.Constraints{}
		}
		all = append(all, one)
	}
	return all
}

func (c *constraint) read() (err error) {
	switch c.Operand {
	case cluster.OperandRegexp:
		c.expression, err = compile(c.RTarget)
	case cluster.OperandVersion:
		c.versions, err = semver.ParseLoose(c.RTarget)
	case cluster.OperandSemver:
		c.versions, err = semver.Parse(c.RTarget)
	}
	return err
}

// compile compiles a regular expression whose program is bounded.
func compile(text string) (*regexp.Regexp, error) {
	if len(text) > cluster.MaxRegexpBytes {
		return nil, fmt.Errorf("a regular expression has at most %d bytes", cluster.MaxRegexpBytes)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > MaxRegexpProgram {
		return nil, fmt.Errorf("the regular expression needs %d instructions, and at most %d are allowed: use smaller repetitions", len(program.Inst), MaxRegexpProgram)
	}
	return regexp.Compile(text)
}
