package shrink

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// newPass returns the edits of one pass for a scenario.
type newPass func(*scenario.Scenario) []edit

// shrink repeats all passes until none makes progress.
func (m *shrinker) shrink() {
	m.endAfterFailure()
	m.pass(dropEvents(m.best))
	m.unfold()
	for progress := true; progress && !m.exhausted(); {
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
	m.report.Complete = !m.exhausted()
}

// endAfterFailure makes the run end soon after the failure, so that all later plays are shorter.
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

// passes returns the passes of a round. The order makes later passes cheap.
func passes() []newPass {
	all := []newPass{
		dropEvents, dropJobs, dropNodes, dropGroups, dropAllocs, dropClients, dropFromLists,
		setSeed(0), leaveOut, singleStrikes, lowerCounts(half), lowerCounts(oneLess), singleTimes(least), singleTimes(most),
		lighter(lightest), lighter(nextLighter), lowerNumbers(half), lowerNumbers(oneLessOfFew),
		closeGaps(0), closeGaps(time.Second), closeGaps(10 * time.Second),
	}
	for _, unit := range [...]time.Duration{10 * time.Minute, time.Minute, 10 * time.Second, time.Second, 100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond} {
		all = append(all, round(unit, false), round(unit, true))
	}
	return append(all, join, sortEvents, setSeed(1), setSeed(2), setSeed(3))
}
