package moved

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// ended judges the end of a drain: no replacement still waits for data on the disks of its node.
func (j *Judge) ended(now time.Time, a shims.Applied, id cluster.DrainID) {
	record := a.After.DrainRecord(id)
	if record == nil || a.Before.DrainRecord(id) != nil || record.Outcome != cluster.OutcomeComplete || j.options.Marked {
		return
	}
	node := record.NodeID
	if opinion.Passed(record, record.EndedAt) || j.trouble[node].After(now.Add(-before)) || !opinion.Reachable(a.Before.Node(node)) {
		return
	}
	m := j.machine(node)
	if m == nil {
		return
	}
	for d := range machine.DisksOf(m).All() {
		row := a.Before.Alloc(d.Alloc)
		if !d.Removed.IsZero() || len(d.Writers) == 0 || !moves(row) || opinion.Live(row) || row.ClientStatus == "lost" || j.untrue[d.Alloc] {
			continue
		}
		if taker := j.taker(a.Before, row); taker != nil && !j.excused(now, a.Before, taker, row, d) {
			j.Add(maxViolations, Ended, invariant.Violation{At: now, Drain: id, Node: node, Alloc: d.Alloc},
				"the drain is complete, and allocation %s on node %s has neither the data nor given it up", taker.ID, taker.NodeID)
		}
	}
}

// taker returns the live replacement of an allocation that may still take its data, or nil.
func (j *Judge) taker(s *statestore.Snapshot, row *cluster.Allocation) *cluster.Allocation {
	for next := s.Alloc(row.NextAllocation); next != nil; next = s.Alloc(next.NextAllocation) {
		if d := j.disk(next.NodeID, next.ID); d != nil && len(d.Writers) > 0 {
			return nil
		}
		if opinion.Live(next) && !opinion.Stopping(next) && moves(next) && (next.DataIn == nil || !next.DataIn.State.Ended()) {
			return next
		}
	}
	return nil
}

// Settled judges what is left of the moves, when no fault has had an effect for some minutes. turns are the running
// copies of the servers.
func (j *Judge) Settled(now time.Time, s *statestore.Snapshot, turns int) {
	copies := 0
	for _, m := range j.options.Machines() {
		copies += machine.CopiesOf(m)
		if !machine.Works(m) || !m.Reachable() {
			continue
		}
		disks := machine.DisksOf(m)
		for d := range disks.All() {
			if in := disks.Incoming(d.Alloc); in != nil && now.Sub(in.At) > slow {
				j.find(now, Stays, m.ID(), d.Alloc, "%d bytes have arrived, the last at %s", in.Bytes, in.At)
			}
			if d.Removed.IsZero() && m.Record(d.Alloc) == nil && !d.StartedAt.IsZero() && now.Sub(d.StartedAt) > slow && !lives(m, d.Alloc) {
				j.find(now, Orphan, m.ID(), d.Alloc, "its disk has the data of %v", d.Writers)
			}
			if r := m.Record(d.Alloc); r != nil && r.DataOut != nil && r.DataOut.State == cluster.DataKept {
				j.kept(now, s, m, d)
			}
		}
		for row := range s.WorkView().LiveAllocsByNode(m.ID()) {
			j.waits(now, s, m, row)
		}
	}
	if turns > copies {
		j.find(now, Stays, "", "", "%d copies have a turn, and %d clients wait for one", turns, copies)
	}
}

// kept judges data that a client keeps.
func (j *Judge) kept(now time.Time, s *statestore.Snapshot, m *machine.Node, d *machine.Disk) {
	ended := j.endedAt[d.Alloc]
	if ended.IsZero() || now.Sub(ended) < j.options.Retention+slow {
		return
	}
	if row := s.Alloc(d.Alloc); row == nil || j.taker(s, row) == nil {
		j.find(now, Stays, m.ID(), d.Alloc, "the client keeps the data of %v, and the allocation ended at %s", d.Writers, ended)
	}
}

// waits judges a replacement that waits for data.
func (j *Judge) waits(now time.Time, s *statestore.Snapshot, m *machine.Node, row *cluster.Allocation) {
	r := m.Record(row.ID)
	if r == nil || r.DataIn == nil || r.DataIn.State == client.DataInPlaced || r.DataIn.State == client.DataInGivenUp || opinion.Stopping(row) || !r.DataIn.StartedAt.IsZero() && now.Sub(r.DataIn.StartedAt) < slow {
		return
	}
	for earlier := s.Alloc(row.PreviousAllocation); earlier != nil; earlier = s.Alloc(earlier.PreviousAllocation) {
		ended := j.endedAt[earlier.ID]
		if opinion.Live(earlier) || now.Sub(ended) < slow || now.Sub(j.placedAt[row.ID]) < slow || j.lives(earlier) {
			return
		}
	}
	j.find(now, Waits, m.ID(), row.ID, "it waits for the data of allocation %s, which has ended", r.DataIn.Peer)
}

// lives reports whether a process of an allocation runs on its machine, for example because it cannot die.
func (j *Judge) lives(row *cluster.Allocation) bool {
	m := j.machine(row.NodeID)
	return m != nil && lives(m, row.ID)
}

func lives(m *machine.Node, alloc cluster.AllocID) bool {
	for p := range m.Machine().EachLiving() {
		if of, _ := machine.SplitCgroup(p.Cgroup); of == alloc {
			return true
		}
	}
	return false
}
