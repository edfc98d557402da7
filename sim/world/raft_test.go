package world_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// With random elections and faults, the log does nothing that raft cannot do.
func TestLog_raft(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for seed := range uint64(80) {
		w := withElectionsAndFaults(t, seed)
		w.sameStates(t)
		must.NoError(t, checkLog(w, found), must.Sprintf("seed %d", seed))
	}
	for _, outcome := range []string{"survived", "lost", "rejected", "unknown and applied", "of a deposed leader"} {
		must.Positive(t, found[outcome], must.Sprintf("no write had the outcome %q: %v", outcome, found))
	}
}

// withElectionsAndFaults runs a fixture with many elections and all faults.
func withElectionsAndFaults(t *testing.T, seed uint64) *fixture {
	t.Helper()
	w := newFixture(t, world.Options{
		Seed: seed, Servers: 3, Views: seed%2 == 0, Late: scenario.Range{Min: 2 * time.Second, Max: 2 * time.Second},
		Commit:   scenario.Range{Min: time.Millisecond, Max: 400 * time.Millisecond},
		Schedule: scenario.Range{Max: 100 * time.Millisecond},
		Drainer:  drainer.NodeDrainerConfig{MaxIDsPerEntry: 2, MaxInFlight: 3},
	})
	for i := range 6 {
		w.place(t, cluster.JobID(fmt.Sprintf("job%d", i)), "n1", "n2", "n3")
	}
	chance := world.Stream(seed, "storm")
	in := func(most time.Duration) time.Duration { return time.Duration(chance.Int64N(int64(most))) }
	for _, kind := range scenario.Faults() {
		f := scenario.Fault{Name: kind.Name}
		if !kind.Lasts {
			f.Probability, f.For, f.Count = 0.2, 30*time.Second, 5
		}
		if kind.Delays != scenario.NoDelay {
			f.Delay = scenario.Range{Max: 3 * time.Second}
		}
		if chance.IntN(3) > 0 {
			w.at(in(time.Minute), func() { must.NoError(t, w.Faults.Arm(f)) })
		}
	}
	for range 20 {
		e := world.Election{Next: chance.IntN(4) - 1, Lost: chance.IntN(2) == 0, Kept: chance.IntN(3)}
		e.Unaware = in(5 * time.Second)
		w.at(in(time.Minute), func() { must.NoError(t, w.Servers.Depose(e)) })
	}
	for _, id := range []cluster.NodeID{"n1", "n2", "n1"} {
		w.at(in(40*time.Second), func() { w.drainNode(id, in(time.Minute)) })
	}
	w.at(in(time.Minute), func() {
		w.Log.Before(isMarks, func() error { return w.Servers.Depose(world.Election{Next: -1, Lost: seed%3 == 0}) })
	})
	w.at(in(time.Minute), func() { w.Servers.Pause(w.Leader(), in(10*time.Second)) })
	w.at(in(time.Minute), func() { must.NoError(t, w.Servers.Restore()) })
	w.run(t, 3*time.Minute)
	return w
}

// proposed identifies a write.
type proposed struct {
	source world.Source
	n      int
}

// checkLog returns an error if raft could not have produced the log and the answers. It counts
// the outcomes in found.
func checkLog(w *fixture, found map[string]int) error {
	logged, err := checkEntries(w)
	if err != nil {
		return err
	}
	for _, p := range w.writes {
		at, is := logged[proposed{world.FromDrainer, p.N}]
		if err := checkWrite(p, at, is, w.ended); err != nil {
			return fmt.Errorf("write %d of term %d: %w", p.N, p.Term, err)
		}
		count(found, w, p, is)
	}
	return nil
}

// checkEntries checks the order of the entries and returns the apply time of each write.
func checkEntries(w *fixture) (map[proposed]time.Duration, error) {
	logged := map[proposed]time.Duration{}
	applied := map[uint64]time.Duration{}
	for _, e := range w.entries {
		applied[e.Index] = e.at
	}
	term, last := 0, map[world.Source]int{}
	for index, e := range w.Log.Entries() {
		k := proposed{e.Source, e.N}
		before, any := last[e.Source]
		_, twice := logged[k]
		switch {
		case e.Term < term:
			return nil, fmt.Errorf("entry %d is of term %d, after one of term %d", index, e.Term, term)
		case !e.Proposed:
			term = e.Term
			continue
		case twice:
			return nil, fmt.Errorf("entry %d, %v, is in the log twice", index, k)
		case any && e.N < before && e.Source != world.FromOperator:
			// Operators send unanswered requests to the next leader.
			return nil, fmt.Errorf("entry %d, %v, comes after number %d", index, k, before)
		}
		term, last[e.Source], logged[k] = e.Term, e.N, applied[index]
	}
	return logged, nil
}

// checkWrite returns an error if raft could not have returned the answer to a write. logged is
// true if the write became an entry, applied at a time.
func checkWrite(p write, at time.Duration, logged bool, ends map[int]time.Duration) error {
	ended, over := ends[p.Term]
	switch outcome := p.answer.Outcome; {
	case p.deposed && logged:
		return errors.New("the log committed it although its leader was deposed before it proposed it")
	case !p.Taken && (logged || p.answered):
		return errors.New("the log did not accept it, but committed or answered it")
	case p.Taken && !p.answered && over:
		return errors.New("its term has ended without an answer")
	case !p.answered:
		return nil
	case outcome == raftwrite.Applied && (!logged || p.Message != nil && at != p.answeredAt):
		return errors.New("the answer is \"applied\", but the log did not apply it at that time")
	case outcome == raftwrite.Applied && over && p.answeredAt > ended:
		return errors.New("the answer \"applied\" came after the end of its term")
	case outcome == raftwrite.Rejected && logged:
		return errors.New("the answer is \"rejected\", but the log committed it")
	}
	return nil
}

func count(found map[string]int, w *fixture, p write, logged bool) {
	ended, over := w.ended[p.Term]
	atEnd := over && p.answered && p.answeredAt == ended && p.Message != nil
	for outcome, happened := range map[string]bool{
		"survived":            atEnd && logged,
		"lost":                atEnd && !logged && !p.deposed,
		"rejected":            p.answered && p.answer.Outcome == raftwrite.Rejected,
		"unknown and applied": p.answered && p.answer.Outcome == raftwrite.Unknown && logged && !atEnd,
		"of a deposed leader": p.deposed,
	} {
		if happened {
			found[outcome]++
		}
	}
}
