package shrink

import (
	"reflect"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The passes that make values simpler.

// leaveOut sets values to their defaults.
func leaveOut(s *scenario.Scenario) (edits []edit) {
	for _, v := range values(s) {
		if !v.IsZero() {
			edits = append(edits, func(d *draft) { v.in(d.Scenario).SetZero() })
		}
	}
	return edits
}

// singleTimes replaces ranges by single times.
func singleTimes(to func(scenario.Range) time.Duration) func(*scenario.Scenario) []edit {
	return func(s *scenario.Scenario) (edits []edit) {
		for _, v := range values(s) {
			if r, is := as[scenario.Range](v.Value); is && r.Min != r.Max {
				edits = append(edits, setValue(v.path, scenario.Range{Min: to(r), Max: to(r)}))
			}
		}
		return edits
	}
}

func least(r scenario.Range) time.Duration { return r.Min }
func most(r scenario.Range) time.Duration  { return r.Max }

// round makes times multiples of a unit: the next lower one, or with up the next higher one.
func round(unit time.Duration, up bool) func(*scenario.Scenario) []edit {
	rounded := func(t time.Duration) (time.Duration, bool) {
		below := t.Truncate(unit)
		switch {
		case t <= 0 || t == below || t == scenario.Never:
			return t, false
		case up:
			return below + unit, t >= unit/2
		}
		return below, below > 0
	}
	return func(s *scenario.Scenario) (edits []edit) {
		for _, v := range values(s) {
			if r, is := as[scenario.Range](v.Value); is {
				from, lower := rounded(r.Min)
				to, upper := rounded(r.Max)
				if lower || upper {
					edits = append(edits, setValue(v.path, scenario.Range{Min: from, Max: to}))
				}
			} else if t, is := as[time.Duration](v.Value); is {
				if t, changed := rounded(t); changed {
					edits = append(edits, setValue(v.path, t))
				}
			}
		}
		return edits
	}
}

// lowerNumbers lowers whole numbers.
func lowerNumbers(by func(int) int) func(*scenario.Scenario) []edit {
	return func(s *scenario.Scenario) (edits []edit) {
		for _, v := range values(s) {
			if n, is := whole(v.Value); is && by(n) > 0 && by(n) < n {
				edits = append(edits, func(d *draft) { reflect.Indirect(v.in(d.Scenario)).SetInt(int64(by(n))) })
			}
		}
		return edits
	}
}

// few is the largest number that is lowered by one. Larger numbers are only halved.
const few = 10

func oneLessOfFew(n int) int {
	if n > few {
		return n
	}
	return n - 1
}

// whole returns the value if it is a whole number, but not a time.
func whole(v reflect.Value) (n int, is bool) {
	if v = reflect.Indirect(v); !v.IsValid() || !v.CanInt() || v.Type() == reflect.TypeFor[time.Duration]() {
		return 0, false
	}
	return int(v.Int()), true
}

// numbers returns the sum of all whole numbers.
func numbers(s *scenario.Scenario) (sum int) {
	for _, v := range values(s) {
		if n, is := whole(v.Value); is {
			sum += n
		}
	}
	return sum
}

// setSeed lowers the seed.
func setSeed(seed uint64) newPass {
	return func(s *scenario.Scenario) []edit {
		if s.Seed <= seed {
			return nil
		}
		return []edit{func(d *draft) { d.Seed = seed }}
	}
}
