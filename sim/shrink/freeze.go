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

// Freeze returns a scenario that fails the same check as s and depends on chance as little as
// possible. It replaces random or repeated faults by one fault for each strike, ranges by single
// times, and at last removes the seed. It keeps a random part that the failure needs. The result
// may have more events than s. Errors and the context are as with [Shrink].
func Freeze(ctx context.Context, s *scenario.Scenario, play Play, o Options) (*scenario.Scenario, Report, error) {
	m, err := newShrinker(ctx, s, play, o)
	if err != nil {
		return nil, Report{}, err
	}
	m.growing = true
	for _, name := range repeatedFaults(m.best) {
		m.try(withStrikes(m.best, name, m.outcome.Strikes))
	}
	m.pass(singleTimes(least)(m.best))
	m.pass(setSeed(0)(m.best))
	m.report.Complete = !m.exhausted()
	return m.finished(s, "Frozen")
}

// repeatedFaults returns the names of faults that strike by chance or repeatedly.
func repeatedFaults(s *scenario.Scenario) (names []scenario.FaultName) {
	for i := range s.Events {
		f, is := s.Events[i].Op.(*scenario.Fault)
		if is && !strikesOnce(f) && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// withStrikes replaces the random and repeated faults of a name by one fault for each strike.
func withStrikes(s *scenario.Scenario, name scenario.FaultName, strikes []world.Strike) *scenario.Scenario {
	c := s.Copy()
	c.Events = slices.DeleteFunc(c.Events, func(e scenario.Event) bool {
		f, is := e.Op.(*scenario.Fault)
		return is && f.Name == name && !strikesOnce(f)
	})
	for _, strike := range strikes {
		if strike.Name == name {
			c.Events = append(c.Events, scenario.Event{At: justBefore(strike.At), Op: faultOf(strike)})
		}
	}
	slices.SortStableFunc(c.Events, func(a, b scenario.Event) int { return cmp.Compare(a.At, b.At) })
	return c
}

// justBefore returns the time to arm a fault that must strike at a time. Events at the same time
// could come first.
func justBefore(at time.Duration) time.Duration { return max(0, at-time.Nanosecond) }

// faultOf returns a fault that repeats a strike.
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

// targetOf returns the target of a strike in the form of Fault.On.
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

// unfold replaces each random or repeated fault by its strikes, and then drops strikes. It reverts
// this unless the result is smaller.
func (m *shrinker) unfold() (progress bool) {
	for _, name := range repeatedFaults(m.best) {
		before := *m
		candidate := withStrikes(m.best, name, m.outcome.Strikes)
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
		m.rejected[keyOf(printed(candidate))] = true // do not try it again
	}
	return progress
}
