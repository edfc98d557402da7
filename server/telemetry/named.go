package telemetry

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// MaxNamedDrains bounds, in each series that names drains, how many drains it names.
const MaxNamedDrains = 20

// observedDrain is what the scrapes keep of a running drain.
type observedDrain struct {
	revision cluster.Revision
	// endsBy is the first bound of the drain's revision; zero if it has none.
	endsBy time.Time
	// left are the allocations left, and since is when a scrape first found that number, or last found the drain
	// paused.
	left  [cluster.StageCount]int
	since time.Time
}

// observe returns what is known of each running drain, and keeps it for the next scrape.
func (p *puller) observe(all []rules.Status, now time.Time) map[cluster.DrainID]observedDrain {
	p.mu.Lock()
	defer p.mu.Unlock()
	observed := make(map[cluster.DrainID]observedDrain, len(all))
	for i := range all {
		d := all[i].Drain
		s, known := p.last[d.ID]
		if !known || s.revision != d.Revision {
			s.revision, s.endsBy = d.Revision, all[i].EndsBy
		}
		if !known || s.left != all[i].Left || !all[i].PausedSince.IsZero() {
			s.left, s.since = all[i].Left, now
		}
		observed[d.ID] = s
	}
	p.last = observed
	return observed
}

// state returns the state of a drain. The deadline and the bound of a paused drain do not come.
func (s observedDrain) state(d *rules.Status, now time.Time) string {
	switch {
	case !d.PausedSince.IsZero():
		return stateDraining
	case !s.endsBy.IsZero() && now.After(s.endsBy):
		return statePastBound
	case d.Drain.Strategy.Passed(now):
		return statePastDeadline
	}
	return stateDraining
}

// namedDrain is a drain with a duration and the value of the series' third label.
type namedDrain struct {
	drain       cluster.DrainID
	node, label string
	took        time.Duration
}

// reasonNothingLeft is the reason of a drain with no allocation on its node.
const reasonNothingLeft = "nothing_left"

// unchanged returns the drains with the time since their number of allocations left changed. Its
// label is the worst reason. A drain that is paused or only lets batch work finish is not in it.
func unchanged(all []rules.Status, observed map[cluster.DrainID]observedDrain, now time.Time) (named []namedDrain) {
	for i := range all {
		if reason := stuckBy(&all[i]); reason != "" && all[i].PausedSince.IsZero() {
			named = append(named, namedDrain{all[i].Drain.ID, all[i].NodeName, reason, now.Sub(observed[all[i].Drain.ID].since)})
		}
	}
	return named
}

// stuckBy is the worst reason of the drain's allocations, without those that may finish or stay.
// It is empty if there are no others.
func stuckBy(s *rules.Status) string {
	if s.Waiting == [rules.ReasonCount]int{} {
		return reasonNothingLeft
	}
	for r := rules.ReasonCount; r > 0; r-- {
		if reason := r - 1; s.Waiting[reason] > 0 && reason != rules.ReasonBatchRunning && reason != rules.ReasonLeftByRequest {
			return identifier(reason.String())
		}
	}
	return ""
}

// late returns the drains that have passed their deadline, with the time since then. Its label is
// the state. A forced drain is late from the moment at which it was forced.
func late(all []rules.Status, observed map[cluster.DrainID]observedDrain, now time.Time) (named []namedDrain) {
	for i := range all {
		d := all[i].Drain
		state := observed[d.ID].state(&all[i], now)
		if state == stateDraining {
			continue
		}
		deadline := d.Strategy.ForceDeadline
		if d.Strategy.Forced() {
			deadline = d.UpdatedAt
		}
		named = append(named, namedDrain{d.ID, all[i].NodeName, state, now.Sub(deadline)})
	}
	return named
}

// timeLeft returns the drains with an estimated end, with the time until then.
func timeLeft(all []rules.Status, now time.Time) (named []namedDrain) {
	for i := range all {
		if ends := all[i].EndsAbout; !ends.IsZero() {
			named = append(named, namedDrain{drain: all[i].Drain.ID, node: all[i].NodeName, took: max(0, ends.Sub(now))})
		}
	}
	return named
}

// The causes of a pause.
const (
	// pausedItself: the drain has a pause of its own. It stays paused after a resume of all.
	pausedItself = "drain"
	// pausedWithAll: only the pause of all drains holds it.
	pausedWithAll = "all"
)

// pauseCause returns the cause of a drain's pause, or empty if the drain is not paused.
func pauseCause(s *rules.Status) string {
	switch {
	case s.PausedSince.IsZero():
		return ""
	case s.Drain.Paused != nil:
		return pausedItself
	}
	return pausedWithAll
}

// paused returns the paused drains, with the time since then. Its label is the cause.
func paused(all []rules.Status, now time.Time) (named []namedDrain) {
	for i := range all {
		if cause := pauseCause(&all[i]); cause != "" {
			named = append(named, namedDrain{all[i].Drain.ID, all[i].NodeName, cause, now.Sub(all[i].PausedSince)})
		}
	}
	return named
}

// longest returns the [MaxNamedDrains] drains with the longest times, those past their bound first.
func longest(named []namedDrain) []namedDrain {
	slices.SortFunc(named, func(a, b namedDrain) int {
		if past := (a.label == statePastBound); past != (b.label == statePastBound) {
			if past {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.drain, b.drain))
	})
	return named[:min(len(named), MaxNamedDrains)]
}
