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

// replay is recorded entries, applied without a drainer. The scheduler and the clients
// answer them as they do in a run, and are not measured there either: what they look at
// takes the same place in the processor's caches. What they answer is dropped.
type replay struct{ *drains }

// newReplay restores the state that a run began with.
func newReplay(tb testing.TB, c drainCase, plan townPlan, persisted []byte) replay {
	t := restoreTown(tb, plan, persisted)
	return replay{&drains{leader: &leader{town: t}, ready: t.nodes[c.drained:], now: epoch}}
}

// run applies the entries, with a pause wherever a run has one.
func (r replay) run(meter *measure.Meter, entries []recordedEntry) {
	r.meter = meter
	for _, e := range entries {
		r.index++
		var message shims.Message
		response := e.response
		if e.ofDrainer {
			message = r.write(e)
		} else {
			message, response = r.apply(e)
		}
		meter.Pause()
		r.follow(message, e.data, response)
		r.log = r.log[:0]
		meter.Resume()
	}
}

// apply applies an entry of others'. In a run they have encoded it just before.
func (r replay) apply(e recordedEntry) (shims.Message, shims.Response) {
	r.meter.Pause()
	message, err := shims.Decode(e.data)
	must.NoError(r.tb, err)
	data, err := shims.Encode(message)
	r.meter.Resume()
	must.NoError(r.tb, err)
	response, err := r.fsm.ApplyEntry(r.index, data)
	must.NoError(r.tb, err)
	return message, response
}

// write writes what came of an entry of the drainer's, without judging again what the
// drainer planned: what is left is what the write alone costs.
func (r replay) write(e recordedEntry) shims.Message {
	message, err := shims.Decode(e.data)
	must.NoError(r.tb, err)
	txn := r.fsm.Store().Begin(r.index)
	switch m := message.(type) {
	case *shims.AllocUpdateDesiredTransition:
		must.NoError(r.tb, txn.ApplyMarks(m.At, e.response.(shims.MarksApplied).Accepted, m.Evals))
	case *shims.NodesDrainComplete:
		txn.CompleteDrains(m.At, e.response.(shims.CompletionsApplied).Ended)
	}
	txn.Commit()
	return message
}
