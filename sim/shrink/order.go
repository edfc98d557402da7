package shrink

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// passOf makes the edits of one pass, for the scenario as it is then.
type passOf func(*scenario.Scenario) []edit

// shrink repeats all passes until none finds anything.
func (m *shrinker) shrink() {
	m.endAfterFailure()
	m.pass(dropEvents(m.best))
	m.unfold()
	for progress := true; progress && !m.spent(); {
		progress = false
		for _, edits := range passes() {
			if m.pass(edits(m.best)) {
				progress = true
			}
		}
		if m.unfold() {
			progress = true
		}
	}
	m.report.Complete = !m.spent()
}

// endAfterFailure has the run end soon after it has failed: all plays that follow are
// shorter for it.
func (m *shrinker) endAfterFailure() {
	at := m.report.Failure.At
	if at == 0 {
		return
	}
	end := at.Truncate(time.Second) + 2*time.Second
	if m.best.Run.For == 0 || end < m.best.Run.For {
		m.growing = true
		m.pass([]edit{func(d *draft) { d.Run.For = end }})
		m.growing = false
	}
}

// passes are all passes of a round, in the order in which they make what follows
// cheapest.
func passes() []passOf {
	all := []passOf{
		dropEvents, dropJobs, dropNodes, dropGroups, dropAllocs, dropClients, dropListed,
		takeSeed(0), leaveOut, strikeOnce, lowerCounts(half), lowerCounts(oneLess), settle(least), settle(most),
		lighter(lightest), lighter(nextLighter), lowerNumbers(half), lowerNumbers(oneLessOfFew),
		closeGaps(0), closeGaps(time.Second), closeGaps(10 * time.Second),
	}
	for _, unit := range [...]time.Duration{10 * time.Minute, time.Minute, 10 * time.Second, time.Second, 100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond} {
		all = append(all, round(unit, false), round(unit, true))
	}
	return append(all, join, inOrder, takeSeed(1), takeSeed(2), takeSeed(3))
}
