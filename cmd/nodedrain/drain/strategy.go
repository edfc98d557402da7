package drain

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Strategy has the flags of a drain strategy.
type Strategy struct {
	Deadline          string
	NoDeadline, Force bool
	IgnoreSystem      bool
	// MaxSurge is max_surge for all groups that the drain moves.
	MaxSurge int
	surgeSet bool
}

// Options are its flags.
func (s *Strategy) Options() cli.Options {
	return cli.Options{
		cli.Flag(&s.Deadline, "deadline D", "Time after which all remaining allocations leave, such as 30m or 2h. Default: 1h."),
		cli.Flag(&s.NoDeadline, "no-deadline", "The drain has no deadline."),
		cli.Flag(&s.Force, "force", "All allocations leave now."),
		cli.Flag(&s.IgnoreSystem, "ignore-system", "Leave system jobs on the node."),
		cli.Value(s.setMaxSurge, "max-surge N", "Place up to N replacements of each group before the allocations that they replace stop. A group with a larger max_surge keeps its own. "+
			"Groups whose allocations must stop first do so."),
	}
}

const (
	// defaultDeadline is the deadline if the flags set none.
	defaultDeadline = time.Hour
	// forceDeadline is the deadline that Nomad's command sends for -force. The servers treat every
	// negative deadline as force.
	forceDeadline = -time.Second
)

// Given reports whether a flag is set.
func (s *Strategy) Given() bool {
	return s.Deadline != "" || s.NoDeadline || s.Force || s.IgnoreSystem || s.surgeSet
}

// setMaxSurge sets max_surge.
func (s *Strategy) setMaxSurge(text string) (err error) {
	s.MaxSurge, err = wire.ParseMaxSurge(text)
	s.surgeSet = true
	return err
}

// Spec is the request of the flags with the deadline.
func (s *Strategy) Spec(limit time.Duration) *wire.DrainSpec {
	return &wire.DrainSpec{Deadline: limit, IgnoreSystemJobs: s.IgnoreSystem, MaxSurge: s.MaxSurge}
}

// Conflict returns the error of an invalid combination of flags, or empty. The texts are those of Nomad's
// command.
func (s *Strategy) Conflict() string {
	switch {
	case s.Deadline != "" && (s.Force || s.NoDeadline):
		return "-deadline can't be combined with -force or -no-deadline"
	case s.Force && s.NoDeadline:
		return "-force and -no-deadline are mutually exclusive"
	}
	return ""
}

// Limit returns the deadline of the flags. Its error does not point to the help: the flags were parsed.
func (s *Strategy) Limit() (time.Duration, error) {
	switch {
	case s.Force:
		return forceDeadline, nil
	case s.NoDeadline:
		return 0, nil
	case s.Deadline == "":
		return defaultDeadline, nil
	}
	limit, err := time.ParseDuration(s.Deadline)
	switch {
	case err != nil:
		return 0, cli.Errorf("Failed to parse deadline %q: %v", s.Deadline, err)
	case limit <= 0:
		return 0, cli.Error("A positive drain duration must be given")
	}
	return limit, nil
}
