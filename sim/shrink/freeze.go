package shrink

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Freeze returns a scenario that fails the check that s fails, and leaves to chance
// only what the failure does not survive without: faults that strike by chance, or
// again and again, become the strikes that there were, ranges become times, and the
// seed goes last. It has as many events as it needs. Errors and the context are as
// with [Shrink].
func Freeze(ctx context.Context, s *scenario.Scenario, play Play, o Options) (*scenario.Scenario, Report, error) {
	m, err := newShrinker(ctx, s, play, o)
	if err != nil {
		return nil, Report{}, err
	}
	m.growing = true
	for _, name := range chancy(m.best) {
		m.try(struck(m.best, name, m.outcome.Strikes))
	}
	m.pass(settle(least)(m.best))
	m.pass(takeSeed(0)(m.best))
	m.report.Complete = !m.spent()
	return m.finished(s, "Frozen")
}

// chancy are the faults that strike by chance, or again and again.
func chancy(s *scenario.Scenario) (names []scenario.FaultName) {
	for i := range s.Events {
		f, is := s.Events[i].Op.(*scenario.Fault)
		if is && !explicit(f) && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// struck returns the scenario with a fault for each strike of a name, in place of
// those that strike by chance.
func struck(s *scenario.Scenario, name scenario.FaultName, strikes []world.Strike) *scenario.Scenario {
	c := s.Copy()
	c.Events = slices.DeleteFunc(c.Events, func(e scenario.Event) bool {
		f, is := e.Op.(*scenario.Fault)
		return is && f.Name == name && !explicit(f)
	})
	for _, strike := range strikes {
		if strike.Name == name {
			c.Events = append(c.Events, scenario.Event{At: justBefore(strike.At), Op: faultOf(strike)})
		}
	}
	slices.SortStableFunc(c.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	return c
}

// justBefore is when a fault is armed that is to strike at a time: what happens at
// one time happens in an order of its own.
func justBefore(at time.Duration) time.Duration { return max(0, at-time.Nanosecond) }

// faultOf is a fault that strikes as one did.
func faultOf(strike world.Strike) *scenario.Fault {
	f := &scenario.Fault{Name: strike.Name, On: targetOf(strike)}
	if kind := strike.Name.Kind(); kind.Delays != scenario.NoDelay {
		f.Delay = scenario.Range{Min: strike.For, Max: strike.For}
		if kind.Delays == scenario.MustDelay && strike.For == 0 {
			f.Delay.Max = time.Nanosecond
		}
	}
	return f
}

// targetOf is what a strike hit, in the words in which a fault names it.
func targetOf(strike world.Strike) string {
	target := strings.TrimPrefix(strike.Target, "default/")
	switch strike.Name.Kind().On {
	case scenario.NoTarget:
		return ""
	case scenario.OnJob:
		job, _, _ := strings.Cut(target, ".")
		return job
	}
	return target
}

// unfold has faults strike once for each time they struck, if the failure needs
// fewer strikes than there were faults.
func (m *shrinker) unfold() (progress bool) {
	for _, name := range chancy(m.best) {
		before := *m
		candidate := struck(m.best, name, m.outcome.Strikes)
		m.growing = true
		unfolded := m.try(candidate)
		m.growing = false
		if !unfolded {
			continue
		}
		m.pass(dropEvents(m.best))
		if slices.Compare(m.size[:], before.size[:]) < 0 {
			progress = true
			continue
		}
		m.best, m.size, m.outcome = before.best, before.size, before.outcome
		m.report.After, m.report.Failure = before.report.After, before.report.Failure
		m.seen[keyOf(printed(candidate))] = true // not again
	}
	return progress
}
