package live

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// beginning is what a scenario begins with.
type beginning struct {
	// writes write it, one transaction each, past all that a scheduler or a client
	// would ask first. They are called for each server and do the same each time.
	writes []func(*statestore.Txn) error
	// register are jobs of which no allocation is named: the scheduler places them.
	register []*cluster.Job
}

// stake is a job and allocations of it.
type stake struct {
	// job is nil if the servers do not know it.
	job    *cluster.Job
	allocs []*cluster.Allocation
}

// stakesAtOnce is how many are written in one transaction: beyond some thousand rows
// each costs many times more.
const stakesAtOnce = 10

// begin makes what the scenario begins with.
func (p *player) begin() beginning {
	declared := map[cluster.JobKey][]scenario.Alloc{}
	for _, a := range p.scenario.Allocs {
		declared[a.Group.Job] = append(declared[a.Group.Job], a)
	}
	b := beginning{writes: []func(*statestore.Txn) error{p.placeNodes}}
	var stakes []stake
	for _, j := range p.scenario.Jobs {
		s := stake{job: setting.Job(j)}
		s.allocs = setting.JobAllocs(declared[j.Key], s.job, p.began, p.ids.alloc)
		switch {
		case j.Unregistered:
			s.job = nil
		case len(s.allocs) == 0 && !j.Stop:
			b.register = append(b.register, s.job)
		}
		stakes = append(stakes, s)
	}
	for some := range slices.Chunk(stakes, stakesAtOnce) {
		b.writes = append(b.writes, func(txn *statestore.Txn) error {
			for _, s := range some {
				if err := s.place(txn, p.began); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return b
}

// placeNodes writes the nodes that are registered.
func (p *player) placeNodes(txn *statestore.Txn) error {
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

// place writes the job and its allocations.
func (s stake) place(txn *statestore.Txn, at time.Time) error {
	if s.job != nil {
		if err := txn.UpsertJob(s.job); err != nil {
			return err
		}
	}
	dropped, err := txn.ApplyPlan(&cluster.Plan{At: at, Places: s.allocs})
	if err == nil && len(dropped) > 0 {
		err = fmt.Errorf("placing allocations: %v were refused", dropped)
	}
	return err
}
