package world

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Setup commits entries directly, without a step. Use it for nodes, jobs and allocations that
// exist before the run starts.
type Setup struct{ world *World }

// Commit commits a message.
func (s Setup) Commit(m shims.Message) error {
	answer, err := s.world.Log.commit(m)
	if err != nil {
		return err
	}
	if refused, is := answer.Response.(shims.Refused); is {
		return fmt.Errorf("%s refused: %w", m.Type(), refused.Err)
	}
	return answer.Err
}

// Write changes the state directly. It skips the checks of the scheduler and the clients, and
// wakes only the readers of the state. Each replica calls do once when it applies the entry,
// which may be much later. So do must make the same change each time.
func (s Setup) Write(do func(*statestore.Txn) error) error {
	_, err := s.world.Log.commitEntry(logEntry{write: do, Entry: Entry{Term: s.world.Term()}})
	return err
}

// Placement is a job with its allocations.
type Placement struct {
	Job    *cluster.Job
	Allocs []*cluster.Allocation
}

// jobsPerWrite is the number of jobs in one transaction. In a transaction of several thousand
// rows, each row takes many times longer.
const jobsPerWrite = 10

// Place writes jobs and their allocations.
func (s Setup) Place(placements ...Placement) error {
	at := s.world.now
	var err error
	for chunk := range slices.Chunk(placements, jobsPerWrite) {
		err = errors.Join(err, s.Write(func(txn *statestore.Txn) error {
			for _, p := range chunk {
				err := txn.UpsertJob(p.Job)
				if err == nil {
					err = place(txn, at, p.Allocs)
				}
				if err != nil {
					return fmt.Errorf("placing %s: %w", p.Job.Key(), err)
				}
			}
			return nil
		}))
	}
	for _, p := range placements {
		for _, a := range p.Allocs {
			s.world.clients.changed(a.NodeID)
		}
	}
	return err
}

// PlaceOrphans writes allocations whose job does not exist.
func (s Setup) PlaceOrphans(allocs ...*cluster.Allocation) error {
	at := s.world.now
	return s.Write(func(txn *statestore.Txn) error {
		if err := place(txn, at, allocs); err != nil {
			return fmt.Errorf("placing orphans: %w", err)
		}
		return nil
	})
}

func place(txn *statestore.Txn, at time.Time, allocs []*cluster.Allocation) error {
	dropped, err := txn.ApplyPlan(&cluster.Plan{At: at, Places: allocs})
	if err == nil && len(dropped) > 0 {
		err = fmt.Errorf("%v were refused", dropped)
	}
	return err
}

// NewAllocID returns a new allocation id.
func (s Setup) NewAllocID() cluster.AllocID { return s.world.ids.alloc() }
