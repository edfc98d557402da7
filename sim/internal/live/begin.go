package live

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// jobRows are a job and its allocations.
type jobRows struct {
	// job is nil if the job is not registered.
	job    *cluster.Job
	allocs []*cluster.Allocation
}

// jobsPerWrite is the number of jobs in one transaction. In a transaction of several thousand
// rows, each row takes many times longer.
const jobsPerWrite = 10

// initialState returns a store with the initial state of the scenario. It also returns the jobs
// without declared allocations: the caller registers them, and the scheduler places them.
func (p *player) initialState() (store *statestore.Store, register []*cluster.Job, err error) {
	store = statestore.New()
	index := uint64(1)
	if err := write(store, index, p.writeNodes); err != nil {
		return nil, nil, err
	}
	rows, register := p.declaredJobs()
	for len(rows) > 0 {
		some := rows[:min(len(rows), jobsPerWrite)]
		rows = rows[len(some):]
		index++
		err := write(store, index, func(txn *statestore.Txn) error {
			for _, r := range some {
				if err := r.write(txn, p.began); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return store, register, nil
}

// write performs one transaction.
func write(store *statestore.Store, index uint64, do func(*statestore.Txn) error) error {
	txn := store.Begin(index)
	defer txn.Abort()
	if err := do(txn); err != nil {
		return err
	}
	txn.Commit()
	return nil
}

// declaredJobs returns the jobs of the scenario with their allocations, and the jobs to register.
func (p *player) declaredJobs() (rows []jobRows, register []*cluster.Job) {
	declared := map[cluster.JobKey][]scenario.Alloc{}
	for _, a := range p.scenario.Allocs {
		declared[a.Group.Job] = append(declared[a.Group.Job], a)
	}
	for _, j := range p.scenario.Jobs {
		r := jobRows{job: setting.Job(p.scenario, j)}
		r.allocs = setting.JobAllocs(declared[j.Key], r.job, p.began, p.ids.alloc)
		switch {
		case j.Unregistered:
			r.job = nil
		case len(r.allocs) == 0 && !j.Stop:
			register = append(register, r.job)
		}
		rows = append(rows, r)
	}
	return rows, register
}

// writeNodes writes the registered nodes, and the cluster version of servers of this build.
func (p *player) writeNodes(txn *statestore.Txn) error {
	txn.RaiseClusterVersion(cluster.MaxVersion)
	for _, declared := range p.scenario.Nodes {
		if declared.Unregistered {
			continue
		}
		for _, n := range setting.Nodes(declared) {
			if err := txn.UpsertNode(n, p.began); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes the job and its allocations to the transaction.
func (r jobRows) write(txn *statestore.Txn, at time.Time) error {
	if r.job != nil {
		if err := txn.UpsertJob(r.job); err != nil {
			return err
		}
	}
	dropped, err := txn.ApplyPlan(&cluster.Plan{At: at, Places: r.allocs})
	if err == nil && len(dropped) > 0 {
		err = fmt.Errorf("placing allocations: %v were refused", dropped)
	}
	return err
}
