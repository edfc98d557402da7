package demo

import (
	"fmt"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// observer shows a witness the log of a group of servers. The witness sees each entry once,
// from the first server that applies it, so the end of a server does not hide any. It is safe
// for concurrent use.
type observer struct {
	// notice is called with each entry by each server that applies it: a reader of one
	// server's state needs the calls of that server. Never nil; it must not block.
	notice func(witness.Entry)

	mu      sync.Mutex
	witness *witness.Witness // guarded by mu
	last    uint64           // index of the last entry shown; guarded by mu
}

func newObserver(o witness.Options, notice func(witness.Entry)) *observer {
	return &observer{notice: notice, witness: witness.New(o)}
}

// applied takes one entry from any server. Each server applies the whole log in order, so a
// new entry follows the last one.
func (o *observer) applied(a shims.Applied) {
	entry := applied.Entry(a)
	o.notice(entry)
	o.mu.Lock()
	defer o.mu.Unlock()
	if a.Index <= o.last {
		return
	}
	o.last = a.Index
	o.witness.Observe(entry)
}

// report audits the state of a server that has applied the last entry, and reports. The
// servers must have been shut down. With an error the report lacks the audit.
func (o *observer) report(servers []*server.Server) (witness.Report, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range servers {
		if snap := s.Store().Snapshot(); snap.Index() == o.last {
			o.witness.Audit(snap)
			return o.witness.Report(), nil
		}
	}
	return o.witness.Report(), fmt.Errorf("no server has the state after entry %d, the last that the witness saw", o.last)
}
