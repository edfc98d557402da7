package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// World is one simulated cluster in one goroutine. It is not safe for concurrent use. [New] sets
// its fields; do not replace them.
type World struct {
	// Loop holds the virtual time and runs the events.
	*Loop
	// Servers are the servers, and the terms of their leaders.
	Servers *Servers
	// Log is the raft log.
	Log *RaftLog
	// Operator sends the requests of operators.
	Operator *Operator
	// Faults are the armed faults.
	Faults *Faults
	// Setup writes nodes, jobs and allocations directly.
	Setup Setup

	options Options
	chance  chance
	ids     ids
	clients *fleet
	// controllers are those of the storage plugins.
	controllers *controllers
	// observer calls the functions of all observers. observed are its fields with such functions.
	observer Observer
	observed map[int]bool
}

// New returns a world without nodes, or with those of [Options].From. Its first server leads.
func New(o Options) (*World, error) {
	o = o.withDefaults()
	w := &World{options: o, chance: newChance(o.Seed), observer: noObserver(), observed: map[int]bool{}}
	w.Log = &RaftLog{world: w}
	w.Loop = newLoop(o, w.Log.Len)
	if o.From != nil {
		begun := o.From.Snapshot().Index()
		w.Log.entries = make([]logEntry, begun) // like barriers: a replica has applied them
		w.ids.after = fmt.Sprintf("x%06d-", begun)
	}
	w.Operator = newOperator(w)
	w.Faults = &Faults{world: w, evals: map[cluster.EvalID]bool{}}
	w.Setup = Setup{w}
	w.controllers = newControllers(w)
	w.Servers = newServers(w)
	var err error
	if w.clients, err = newFleet(w); err != nil {
		return nil, fmt.Errorf("simulating clients: %w", err)
	}
	w.add(Log, w.Log)
	if err := w.Servers.lead(w.Servers.all[0]); err != nil {
		return nil, err
	}
	w.add(Clients, w.clients)
	return w, nil
}

// Leader is the number of the server that leads, from 0.
func (w *World) Leader() int { return w.Servers.leader.server.number }

// Term is the number of the current term, from 1.
func (w *World) Term() int { return w.Servers.terms }

// Clock is the time on the leader's clock.
func (w *World) Clock() time.Time { return w.Servers.leader.clock() }

// State returns the state that the leader's drainer reads: the newest state of its server,
// unless a fault hides that state.
func (w *World) State() *statestore.Snapshot { return w.Servers.leader.reader.state() }

// Truth returns the newest state of all servers. A new leader may still read an older one.
func (w *World) Truth() *statestore.Snapshot { return w.Servers.newest().state() }

// Hidden returns the facts of the world that are in no snapshot of the state.
func (w *World) Hidden() Hidden { return Hidden{w} }

// DrainMayStart reports whether a drain may start, or a drainer may write, without a new request.
// This is true if the queue holds a request or a write of a drainer, if a deposed leader has not
// stepped down, if a fault has a delayed effect, or if [scenario.DrainAgain] is armed.
func (w *World) DrainMayStart() bool {
	return len(w.Servers.deposed) > 0 || w.Faults.pending > 0 ||
		slices.ContainsFunc(w.Log.queue, func(p *proposal) bool { return p.Source == FromDrainer || p.Source == FromOperator }) ||
		slices.ContainsFunc(w.Faults.armed, func(f *fault) bool { return f.Name == scenario.DrainAgain && !f.Ended(w.now) })
}

// applied calls the clients, the observers and the faults when the first server has applied an
// entry.
func (w *World) applied(a shims.Applied) {
	w.clients.applied(a)
	w.observer.Applied(a)
	w.Operator.runOperationFaults(a)
}

// Hidden gives the facts of a world that are in no snapshot of the state.
type Hidden struct{ world *World }

// Held reports whether the world delays a due step of the leader's drainer, or hides the newest
// state from it. The reason is a late wake-up, a paused process, an old view, or a term that is
// not established.
func (h Hidden) Held() bool {
	w := h.world
	l := w.Servers.leader
	return l.reader.held() || w.now.Before(l.established) || l.server.paused(w.now) || l.drainerAlarm.pending()
}

// Ended reports whether an allocation's client has reported the end of its tasks, and has the
// answer that the report was applied.
func (h Hidden) Ended(id cluster.AllocID) bool { return h.world.clients.ended[id] }

// ids makes ids that sort in the order of their creation.
type ids struct {
	// after is what makes them differ from the ids of the state that the world began with, and sort after them.
	after                 string
	allocs, evals, drains int
}

func (i *ids) alloc() cluster.AllocID {
	i.allocs++
	return cluster.AllocID(fmt.Sprintf("a%s%06d", i.after, i.allocs))
}

func (i *ids) eval() cluster.EvalID {
	i.evals++
	return cluster.EvalID(fmt.Sprintf("e%s%06d", i.after, i.evals))
}

func (i *ids) drain() cluster.DrainID {
	i.drains++
	return cluster.DrainID(fmt.Sprintf("d%s%06d", i.after, i.drains))
}
