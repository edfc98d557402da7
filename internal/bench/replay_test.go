package main

import (
	"bytes"
	"hash/fnv"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// restoreCluster returns the cluster of a persisted state.
func restoreCluster(tb testing.TB, plan clusterPlan, state []byte) *testCluster {
	t := &testCluster{tb: tb, fsm: shims.NewFSM(shims.FSMConfig{})}
	must.NoError(tb, t.fsm.Restore(nopCloser{bytes.NewReader(state)}))
	t.index = t.fsm.Store().Snapshot().Index()
	for i := range plan.nodes {
		t.nodes = append(t.nodes, nodeID(i))
	}
	return t
}

type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }

// sum returns a hash of the state.
func (t *testCluster) sum() uint64 {
	sum := fnv.New64a()
	must.NoError(t.tb, statestore.Persist(sum, t.fsm.Store().Snapshot()))
	return sum.Sum64()
}

// replay applies recorded entries without a drainer. The scheduler and the clients do the same work as
// in a run, so that they use the processor's caches in the same way. The replay does not measure them
// and drops their proposals.
type replay struct{ *drains }

// newReplay restores the first state of a run.
func newReplay(tb testing.TB, c drainCase, plan clusterPlan, persisted []byte) replay {
	t := restoreCluster(tb, plan, persisted)
	return replay{&drains{leader: &leader{testCluster: t}, targets: t.nodes[c.drained:], now: epoch}}
}

// run applies the entries, and pauses the meter as a run does.
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
		r.observe(message, e.data, response)
		r.log = r.log[:0]
		meter.Resume()
	}
}

// apply applies an entry of the scheduler or a client. It decodes and encodes the entry, as a run
// encodes it.
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

// write applies the result of an entry of the drainer without the re-check, so its cost is that of the
// write alone.
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
