package wire

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// DataMove is the move of the data of an ephemeral disk from an allocation to its replacement. Ours.
type DataMove struct {
	// State is waiting, copying, kept, copied or given up.
	State string
	// Peer is the other allocation, or empty.
	Peer string `json:",omitempty"`
	// Why is what a replacement waits for, why the data was given up, or what was left out of data that is copied.
	Why string `json:",omitempty"`
	// Bytes counts the bytes that have arrived. Skipped counts FIFOs, sockets, devices and mounted file
	// systems, which are not copied.
	Bytes   int64 `json:",omitempty"`
	Skipped int64 `json:",omitempty"`
	// StartedAt is when the copy started, EndedAt when the servers got its end.
	StartedAt Time `json:",omitzero"`
	EndedAt   Time `json:",omitzero"`
}

func newDataMove(m *cluster.DataMove) *DataMove {
	if m == nil {
		return nil
	}
	return &DataMove{
		State: string(m.State), Peer: string(m.Peer), Why: m.Why, Bytes: m.Bytes, Skipped: m.Skipped,
		StartedAt: NewTime(m.StartedAt), EndedAt: NewTime(m.EndedAt),
	}
}

// move returns the move as the state has it.
func (w *DataMove) move() *cluster.DataMove {
	if w == nil {
		return nil
	}
	return &cluster.DataMove{
		State: cluster.DataState(w.State), Peer: cluster.AllocID(w.Peer), Why: w.Why, Bytes: w.Bytes, Skipped: w.Skipped,
		StartedAt: w.StartedAt.Time, EndedAt: w.EndedAt.Time,
	}
}

// reported returns a move that a client reports, or what is wrong with it. The servers have the time of its end.
func (w *DataMove) reported(field string) (*cluster.DataMove, error) {
	m := w.move()
	if m == nil {
		return nil, nil
	}
	m.EndedAt = time.Time{}
	switch m.State {
	case cluster.DataWaiting, cluster.DataCopying, cluster.DataKept, cluster.DataCopied, cluster.DataGivenUp:
	default:
		return nil, fmt.Errorf("%s.State must be waiting, copying, kept, copied or given up but found %q", field, w.State)
	}
	if m.Bytes < 0 || m.Skipped < 0 {
		return nil, fmt.Errorf("%s.Bytes and %s.Skipped must be >= 0", field, field)
	}
	return m, nil
}

// The request for the data of an ephemeral disk, of a node's client to a server and of a server to a node's client:
//
//	GET /v1/client/allocation/ALLOC/data?folder=F&after=PATH&offset=N
//
// To a server, ALLOC is the allocation that receives the data, which is on the node of the caller. To a client it is the
// ended allocation whose data it is. The parameter folder is repeated. The stream continues after the path and the
// bytes of it that have arrived. The status of an answer without a stream is:
//
//	410  the data does not exist any more, or never did; the text is the reason
//	503  with Retry-After: the allocation has not ended, or other copies run first; the text is the reason
//
// After any other status and after a cut the client of a node sends the request again. It gives up when that lasts for
// a minute, and the data has begun to arrive or the status is below 500 or 502: the other node cannot be reached.
const (
	// DataFolder is the parameter with a folder, such as "alloc/data".
	DataFolder = "folder"
	// DataAfter is the parameter with the path of the last entry that has arrived.
	DataAfter = "after"
	// DataOffset is the parameter with the bytes of that entry that have arrived.
	DataOffset = "offset"
	// DataSource is the header of the answer that names the allocation whose data it is.
	DataSource = "X-Nodedrain-Data-Source"
)

// DataNotCopied are the allocations of an ended drain whose data was given up or was not copied. Ours.
type DataNotCopied struct {
	Count int
	// Allocs are at most 20 of them.
	Allocs []string
}

func newDataNotCopied(d *cluster.DataNotCopied) *DataNotCopied {
	if d == nil {
		return nil
	}
	return &DataNotCopied{Count: d.Count, Allocs: IDs(d.Allocs)}
}
