package moved

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Restored records that the servers lost entries, so they may have lost ends of moves.
func (j *Judge) Restored() { j.restored = true }

// written judges the entry with which the servers get that a replacement has the data: from then on the data of
// the earlier allocation is not kept for them.
func (j *Judge) written(now time.Time, a shims.Applied, to cluster.AllocID) {
	row := a.After.Alloc(to)
	if !hasData(row) || hasData(a.Before.Alloc(to)) {
		return
	}
	for earlier := a.After.Alloc(row.PreviousAllocation); earlier != nil; earlier = a.After.Alloc(earlier.PreviousAllocation) {
		if earlier.ID == row.DataIn.Peer && earlier.DataOut.StateOf() == cluster.DataKept {
			j.find(now, Unended, earlier.NodeID, earlier.ID, "allocation %s has its data, and for the servers the data is still kept", to)
		}
	}
}

// hasData reports whether the servers have the report that data has moved into an allocation.
func hasData(row *cluster.Allocation) bool {
	return row != nil && row.DataIn.StateOf() == cluster.DataCopied
}

// dropped judges a client that no longer keeps the data of an ended allocation. For the servers it keeps the data, so
// neither a replacement has it nor was it given up. The move to an allocation of the same node is not reported yet.
func (j *Judge) dropped(now time.Time, s *statestore.Snapshot, m *machine.Node, d *machine.Disk) {
	if len(d.Writers) == 0 || j.restored || j.untrue[d.Alloc] || !j.lostAt[m.ID()].IsZero() {
		return // no task has written, or the client has an excuse
	}
	r := m.Record(d.Alloc)
	removed := r == nil && !d.Removed.IsZero()
	ended := r != nil && r.Ended && (r.DataOut == nil || r.DataOut.State != cluster.DataKept && !r.DataOut.Moved)
	if !removed && !ended {
		return
	}
	row := s.Alloc(d.Alloc)
	switch {
	case row == nil || row.DataOut.StateOf() != cluster.DataKept:
	case ended:
		j.find(now, Dropped, m.ID(), d.Alloc, "the client no longer keeps the data of %v, and for the servers it is kept", d.Writers)
	case !j.taken(d.Alloc, "") && !passedOn(m, d):
		j.find(now, Dropped, m.ID(), d.Alloc, "the client has removed the data of %v, and for the servers it is kept", d.Writers)
	}
}

// passedOn reports whether another disk of the machine has the data that had come to a disk and that no task of the
// disk's allocation has used.
func passedOn(m *machine.Node, d *machine.Disk) bool {
	for other := range machine.DisksOf(m).All() {
		if other != d && other.Removed.IsZero() && len(d.Writers) > 0 && slices.Contains(other.Writers, d.Writers[len(d.Writers)-1]) {
			return true
		}
	}
	return false
}

const (
	// patience is how long a copy may bring nothing, and slack is longer than a client takes to give it up.
	patience = time.Minute
	slack    = 30 * time.Second
)

// stream is a copy that runs or is retried.
type stream struct {
	// bytes have arrived, the last of them at since, or none and it began then. It was last open at seen.
	bytes       int64
	since, seen time.Time
}

// stalled judges the copies of a client. A copy without an open stream may wait for its turn.
func (j *Judge) stalled(now time.Time, m *machine.Node) {
	for _, id := range machine.StreamsOf(m) {
		bytes := int64(0)
		if in := machine.DisksOf(m).Incoming(id); in != nil {
			bytes = in.Bytes
		}
		st := j.streams[id]
		if st == nil || st.bytes != bytes || now.Sub(st.seen) > patience || !machine.Works(m) || j.clientAt[m.ID()].After(st.since) {
			st = &stream{bytes: bytes, since: now}
			j.streams[id] = st
		}
		if st.seen = now; now.Sub(st.since) > patience+slack {
			j.find(now, Stalled, m.ID(), id, "nothing has arrived since %s, and the client requests it again and again", st.since)
		}
	}
}
