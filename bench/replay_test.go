package main

import (
	"bytes"
	"hash/fnv"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// restoreTown returns the town of a state that was persisted.
func restoreTown(tb testing.TB, plan townPlan, state []byte) *town {
	t := &town{tb: tb, fsm: shims.NewFSM(shims.FSMConfig{})}
	must.NoError(tb, t.fsm.Restore(nopCloser{bytes.NewReader(state)}))
	t.index = t.fsm.Store().Snapshot().Index()
	for i := range plan.nodes {
		t.nodes = append(t.nodes, nodeID(i))
	}
	return t
}

type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }

// sum is equal of equal states.
func (t *town) sum() uint64 {
	sum := fnv.New64a()
	must.NoError(t.tb, t.fsm.Store().Snapshot().Persist(sum))
	return sum.Sum64()
}

// replay applies an entry without judging again what the drainer planned: what is left
// is what the write alone costs. It pauses as a run does, so that what a run leaves for
// the collector is cleared away on both sides alike. Where a run has others make and
// encode their entries in a pause, the entry is decoded and encoded: were entries
// applied one after the other, processor and memory would be quicker than they are in
// any run.
func (t *town) replay(meter *measure.Meter, e recordedEntry) {
	meter.Pause()
	if !e.ofDrainer {
		message, err := shims.Decode(e.data)
		must.NoError(t.tb, err)
		_, err = shims.Encode(message)
		must.NoError(t.tb, err)
	}
	meter.Resume()
	t.index++
	if !e.ofDrainer {
		_, err := t.fsm.ApplyEntry(t.index, e.data)
		must.NoError(t.tb, err)
	} else {
		t.replayMarks(e)
	}
	meter.Pause()
	meter.Resume()
}

func (t *town) replayMarks(e recordedEntry) {
	message, err := shims.Decode(e.data)
	must.NoError(t.tb, err)
	txn := t.fsm.Store().Begin(t.index)
	switch m := message.(type) {
	case *shims.AllocUpdateDesiredTransition:
		must.NoError(t.tb, txn.ApplyMarks(m.At, e.accepted, m.Evals))
	case *shims.NodesDrainComplete:
		txn.CompleteDrains(m.At, e.ended)
	}
	txn.Commit()
}
