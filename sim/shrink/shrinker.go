package shrink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// shrinker searches smaller scenarios that fail.
type shrinker struct {
	ctx     context.Context // its end ends the search
	play    Play
	options Options
	check   string
	// best is the smallest failing scenario so far, with its size and outcome.
	best    *scenario.Scenario
	size    measure
	outcome Outcome
	// growing allows candidates that are not smaller.
	growing bool
	// rejected are texts that are invalid or do not fail.
	rejected map[textKey]bool
	report   Report
}

// newShrinker plays the scenario once.
func newShrinker(ctx context.Context, s *scenario.Scenario, play Play, o Options) (*shrinker, error) {
	if o.MaxPlays == 0 {
		o.MaxPlays = DefaultMaxPlays
	}
	m := &shrinker{ctx: ctx, play: play, options: o, rejected: map[textKey]bool{}}
	m.best = s.Copy()
	m.best.Prose, m.best.Story, m.best.End = nil, "", ""
	if _, err := reread(m.best); err != nil {
		return nil, fmt.Errorf("shrinking %s: %w", s.Name, err)
	}
	m.report = Report{Before: SizeOf(s), After: SizeOf(s), Plays: 1}
	m.outcome = play(m.best)
	if m.check = o.Check; m.check == "" && len(m.outcome.Failures) > 0 {
		m.check = m.outcome.Failures[0].Check
	}
	failure, fails := m.outcome.of(m.check)
	switch {
	case fails:
	case ctx.Err() != nil:
		return nil, fmt.Errorf("shrinking %s: the first play was stopped: %w", s.Name, context.Cause(ctx))
	case len(m.outcome.Failures) > 0:
		return nil, fmt.Errorf("shrinking %s: %w %q, but %q", s.Name, ErrPasses, m.check, m.outcome.Failures[0].Check)
	default:
		return nil, fmt.Errorf("shrinking %s: %w", s.Name, ErrPasses)
	}
	m.report.Failure = failure
	m.size = measured(m.best, printed(m.best))
	return m, nil
}

// exhausted reports whether the search must end.
func (m *shrinker) exhausted() bool {
	return m.report.Plays >= m.options.MaxPlays || m.ctx.Err() != nil
}

// try accepts a candidate if it is smaller and fails the check.
func (m *shrinker) try(candidate *scenario.Scenario) bool {
	text := printed(candidate)
	size := measured(candidate, text)
	if m.exhausted() || !m.growing && slices.Compare(size[:], m.size[:]) >= 0 {
		return false
	}
	key := keyOf(text)
	if m.rejected[key] {
		return false
	}
	if _, _, err := scenario.Parse(candidate.Name, bytes.NewReader(text)); err != nil {
		m.rejected[key] = true
		return false
	}
	outcome := m.play(candidate)
	m.report.Plays++
	failure, fails := outcome.of(m.check)
	if fails {
		m.best, m.size, m.outcome = candidate, size, outcome
		m.report.After, m.report.Failure = SizeOf(candidate), failure
	} else {
		m.rejected[key] = true
	}
	if m.options.Progress != nil {
		m.options.Progress(m.report)
	}
	return fails
}

// pass applies as many of the edits as possible. It tries all of them, then smaller and smaller
// chunks, from the last to the first. At the end no other edit can be applied alone.
func (m *shrinker) pass(edits []edit) (progress bool) {
	base := m.best
	var applied []edit
	for size := len(edits); size > 0 && !m.exhausted(); {
		found := false
		for to := len(edits); to > 0; {
			from := max(0, to-size)
			if more := slices.Concat(applied, edits[from:to]); m.try(edited(base, more)) {
				applied, found = more, true
				edits = slices.Delete(slices.Clone(edits), from, to)
			}
			to = from
		}
		progress = progress || found
		switch {
		case size > 1:
			size = min((size+1)/2, max(1, len(edits)))
		case !found:
			size = 0
		}
	}
	return progress
}

// finished returns the smallest scenario and the report. Events without effect get Maybe: their
// removal would change the draws, or was not tried.
func (m *shrinker) finished(of *scenario.Scenario, verb string) (*scenario.Scenario, Report, error) {
	s := m.best.Copy()
	for i := range s.Events {
		s.Events[i].Maybe = slices.Contains(m.outcome.NoEffect, i)
	}
	s.Prose = m.prose(of, verb)
	s, err := reread(s)
	return s, m.report, err
}

// textKey is the hash of a text.
type textKey [sha256.Size]byte

func keyOf(text []byte) textKey { return sha256.Sum256(text) }

// printed returns the text of a scenario.
func printed(s *scenario.Scenario) []byte {
	var text bytes.Buffer
	_ = scenario.Print(&text, s) // a buffer returns no error
	return text.Bytes()
}

// reread prints a scenario and reads it.
func reread(s *scenario.Scenario) (*scenario.Scenario, error) {
	again, _, err := scenario.Parse(s.Name+scenario.Extension, bytes.NewReader(printed(s)))
	return again, err
}
