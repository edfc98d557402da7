package world

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
)

// Propose asks the leader for a write. reply is told what became of it; nil if
// nobody wants to know.
//
// Between plan and apply of another write, see [World.Before], it is committed at
// once.
func (w *World) Propose(m shims.Message, reply func(shims.Answer)) {
	if reply == nil {
		reply = func(shims.Answer) {}
	}
	if w.racing == 0 {
		w.mayComeAgain(m)
		if !w.log.propose(nil, FromOperator, m, reply) {
			reply(rejected())
		}
		return
	}
	answer, err := w.log.commit(m)
	if err != nil {
		w.broken = err
		return
	}
	reply(answer)
}

// newRequests returns what makes requests of the world's states, times and ids.
func (w *World) newRequests() *setting.Requests {
	return &setting.Requests{
		Truth: w.Truth, Now: w.Now, Clock: w.Clock, Races: func() bool { return w.racing > 0 },
		NewEvalID: w.ids.eval, NewDrainID: w.ids.drain,
	}
}

// Requests makes what can be asked for with [World.Propose].
func (w *World) Requests() *setting.Requests { return w.requests }

// Drain asks for a drain of a node, or for another strategy of the one it has.
func (w *World) Drain(id cluster.NodeID, spec cluster.DrainSpec, key string) {
	w.Propose(w.requests.Drain(id, &spec, key), nil)
}

// CancelDrain asks for the end of a node's drain.
func (w *World) CancelDrain(id cluster.NodeID, markEligible bool, key string) {
	w.Propose(w.requests.Cancel(id, markEligible, key), nil)
}

// RegisterJob asks for a job, or for another version of it.
func (w *World) RegisterJob(j *cluster.Job) { w.Propose(w.requests.Register(j), nil) }

// EditJob asks for another version of the job that there is.
func (w *World) EditJob(key cluster.JobKey, edit func(*cluster.Job)) error {
	j := w.Truth().Job(key).Copy()
	if j == nil {
		return fmt.Errorf("editing job %s: there is none", key)
	}
	edit(j)
	w.RegisterJob(j)
	return nil
}

// FailAlloc has an allocation end by itself, as its client then reports.
func (w *World) FailAlloc(a *cluster.Allocation) {
	w.Propose(w.requests.Exit(a, cluster.ClientFailed), nil)
}

// DeleteNode asks for a node to be forgotten.
func (w *World) DeleteNode(id cluster.NodeID) { w.Propose(w.requests.DeleteNode(id), nil) }
