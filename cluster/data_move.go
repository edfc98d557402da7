package cluster

import "time"

// DataState is how far the data of an ephemeral disk has moved.
type DataState string

// The values of [DataState].
const (
	// DataWaiting: the replacement waits for the end of the allocation that has the data, or for its turn.
	DataWaiting DataState = "waiting"
	// DataCopying: the client of the replacement copies the data.
	DataCopying DataState = "copying"
	// DataKept: the allocation has ended, and its client keeps the data for a replacement.
	DataKept DataState = "kept"
	// DataCopied: the replacement has the data.
	DataCopied DataState = "copied"
	// DataGivenUp: the replacement starts without the data, or no replacement has taken it in time.
	DataGivenUp DataState = "given up"
)

// Ended reports whether the move has ended, with the data or without it.
func (s DataState) Ended() bool { return s == DataCopied || s == DataGivenUp }

// DataMove is the move of the data of an ephemeral disk from an allocation to its replacement, on the row
// of one of them. It is never written to.
type DataMove struct {
	State DataState
	// Peer is the other allocation, or empty.
	Peer AllocID `codec:",omitempty"`
	// Why is the reason of the state: what a replacement waits for, or why the data was given up. For data that is
	// copied it is what was left out of it, or empty.
	Why string `codec:",omitempty"`
	// Bytes counts the bytes that have arrived. Skipped counts FIFOs, sockets, devices and mounted file systems, which
	// are not copied.
	Bytes   int64 `codec:",omitempty"`
	Skipped int64 `codec:",omitempty"`
	// StartedAt is when the copy started, by the client's clock. EndedAt is the proposer's time of the
	// entry with the end. Either is zero before.
	StartedAt time.Time `codec:",omitempty"`
	EndedAt   time.Time `codec:",omitempty"`
}

// MaxFailedCopies bounds the chain of replacements through which one takes the data of an allocation,
// because those before it ended before they had the data.
const MaxFailedCopies = 64

// StateOf returns the state of a move, or an empty state for nil.
func (m *DataMove) StateOf() DataState {
	if m == nil {
		return ""
	}
	return m.State
}

// Kept reports whether the client of an ended allocation keeps its data for a replacement.
func (m *DataMove) Kept() bool { return m.StateOf() == DataKept }

// Pending reports whether an allocation does not start yet, because its data has not arrived.
func (m *DataMove) Pending() bool { return m != nil && !m.State.Ended() }

// WithoutWhy returns the move without its reason, which repeats errors of clients. For nil it returns nil.
func (m *DataMove) WithoutWhy() *DataMove {
	if m == nil || m.Why == "" {
		return m
	}
	c := *m
	c.Why = ""
	return &c
}

// Equal reports whether both moves are the same.
func (m *DataMove) Equal(o *DataMove) bool {
	if m == nil || o == nil {
		return m == o
	}
	return m.State == o.State && m.Peer == o.Peer && m.Why == o.Why && m.Bytes == o.Bytes && m.Skipped == o.Skipped &&
		m.StartedAt.Equal(o.StartedAt) && m.EndedAt.Equal(o.EndedAt)
}

// Copied reports whether the replacement has all the data.
func (m *DataMove) Copied() bool { return m.StateOf() == DataCopied && m.Why == "" }

// bare returns what decisions read: the state, the time of the end, and whether something of the data was left out.
func (m *DataMove) bare() *DataMove {
	if m == nil {
		return nil
	}
	b := &DataMove{State: m.State, Peer: m.Peer, EndedAt: m.EndedAt}
	if m.State == DataCopied {
		b.Why = m.Why
	}
	return b
}

// sameForDecisions reports whether bare returns the same for both.
func (m *DataMove) sameForDecisions(o *DataMove) bool {
	if m == nil || o == nil {
		return m == o
	}
	return m.State == o.State && m.Peer == o.Peer && m.EndedAt == o.EndedAt && m.Copied() == o.Copied()
}

// KeepsData reports whether the client has ended the allocation and keeps its data for a replacement.
func KeepsData(a *Allocation) bool {
	return (a.ClientStatus == ClientComplete || a.ClientStatus == ClientFailed) && a.DataOut.Kept()
}

// DataTaker follows the replacements of an ended allocation whose client keeps its data. One that has ended before it
// had the data leaves the data to the next one. taker may still take the data, or is nil. last is then the
// allocation whose next replacement would take the data, or nil if none would.
func DataTaker(a *Allocation, alloc func(AllocID) *Allocation) (taker, last *Allocation) {
	for range MaxFailedCopies {
		if a.NextAllocation == "" {
			return nil, a
		}
		next := alloc(a.NextAllocation)
		switch {
		case next == nil || next.DataIn.StateOf().Ended():
			return nil, nil
		case next.Terminal():
			a = next
		case mayTakeData(next):
			return next, nil
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// mayTakeData reports whether a live allocation has not started yet, with data or without. A client that
// reports no moves of data starts the allocation at once.
func mayTakeData(a *Allocation) bool {
	return a.DataIn.Pending() || a.DataIn == nil && a.ClientStatus != ClientRunning
}

// MovesData reports whether a replacement on another node gets the data of the group's allocations. The
// group may be nil.
func (g *TaskGroup) MovesData() bool { return g != nil && g.EphemeralDisk.Migrate }
