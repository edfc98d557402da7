package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Outside is what stays broken for good when all else is calm. What is left must be
// enough: a majority of the servers, and the nodes that what drains needs.
type Outside struct {
	// Servers are servers, from 0, that stand still and never lead again.
	Servers []int
	// Nodes are nodes whose clients say and hear nothing any more.
	Nodes []cluster.NodeID
}

// Calm ends all faults: those that are armed, and what has been done and can be
// undone. Whoever stands still runs, whoever was deposed knows, what is late comes.
// What clients were born with stays, and what is outside is cut off.
//
// The error says that what is outside leaves nobody who could lead, or an election
// failed.
func (w *World) Calm(outside Outside) error {
	if err := w.isMinority(outside.Servers); err != nil {
		return err
	}
	w.faults.armed = nil
	w.faults.calms++
	if err := w.cutServers(outside.Servers); err != nil {
		return err
	}
	for _, s := range w.servers {
		if !s.cut {
			s.pausedUntil = time.Time{}
		}
	}
	for _, l := range slices.Clone(w.deposed) {
		if !l.server.cut {
			l.stepDown()
		}
	}
	for _, id := range outside.Nodes {
		w.clients.cut(id)
	}
	w.log.hasten()
	w.leader.drains.hasten(w.now.Add(w.options.Wake.Max))
	w.leader.schedules.hasten(w.now.Add(w.options.Schedule.Max))
	for len(w.faults.ends) > 0 {
		if err := w.faults.end(w.faults.ends[0]); err != nil {
			return err
		}
	}
	return nil
}

// isMinority says what is wrong with servers that are to be cut off.
func (w *World) isMinority(numbers []int) error {
	if 2*len(numbers) >= len(w.servers) && len(numbers) > 0 {
		return fmt.Errorf("cutting off %d of %d servers: nobody could lead", len(numbers), len(w.servers))
	}
	for _, number := range numbers {
		if number < 0 || number >= len(w.servers) {
			return fmt.Errorf("cutting off server %d: there are %d, from 0", number, len(w.servers))
		}
	}
	return nil
}

// cutServers has servers stand still for good. If one of them leads another takes over,
// and it never hears of that.
func (w *World) cutServers(numbers []int) error {
	for _, number := range numbers {
		s := w.servers[number]
		s.cut, s.pausedUntil = true, w.now.Add(Never)
	}
	if w.leader.server.cut {
		return w.Elect(false)
	}
	return nil
}

// Troubled reports whether a fault is on: one is armed that may strike yet, or what one
// has begun, or what was done to a server, is not over. Clocks that are wrong are no
// trouble, and what clients were born with stays.
func (w *World) Troubled() bool {
	return slices.ContainsFunc(w.faults.armed, func(f *fault) bool { return !f.Ended(w.now) }) ||
		len(w.faults.ends) > 0 || w.faults.pending > 0 || len(w.deposed) > 0 ||
		slices.ContainsFunc(w.servers, func(s *server) bool { return s.paused(w.now) })
}

// Drains reports whether anything is under way by which a node may come to drain, or a
// drainer may write: a request or a write of a drainer that is not settled, a leader that
// does not know that it is none, what faults have yet to do, or one that drains again.
func (w *World) Drains() bool {
	return len(w.deposed) > 0 || w.faults.pending > 0 ||
		slices.ContainsFunc(w.log.queue, func(p *proposal) bool { return p.Source == FromDrainer || p.Source == FromOperator }) ||
		slices.ContainsFunc(w.faults.armed, func(f *fault) bool { return f.Name == scenario.DrainAgain && !f.Ended(w.now) })
}

// hasten has what is under way be settled as soon as if it had just been proposed, and
// depose nobody.
func (l *raftLog) hasten() {
	for _, p := range l.queue {
		p.due = sooner(p.due, l.due(p.Source, l.world.now))
		p.deposes = false
	}
}

// unlessCalm does something after a while, unless faults have ended by then.
func (w *World) unlessCalm(d time.Duration, do func() error) {
	calms := w.faults.calms
	w.faults.pending++
	w.At(w.now.Add(d), func() error {
		w.faults.pending--
		if w.faults.calms != calms {
			return nil
		}
		return do()
	})
}

// undo is how the effect of a fault ends.
type undo struct {
	id int
	do func() error
}

// after has something undone at a time, or when the faults end if that is sooner.
func (w *World) after(d time.Duration, do func() error) {
	w.faults.undos++
	u := undo{id: w.faults.undos, do: do}
	w.faults.ends = append(w.faults.ends, u)
	w.At(w.now.Add(d), func() error { return w.faults.end(u) })
}

// end undoes something, once.
func (f *faults) end(u undo) error {
	i := slices.IndexFunc(f.ends, func(o undo) bool { return o.id == u.id })
	if i < 0 {
		return nil
	}
	f.ends = slices.Delete(f.ends, i, i+1)
	return u.do()
}
