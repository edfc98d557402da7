package sim

import (
	"errors"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// begin writes what the world begins with: nodes, jobs, and the allocations of each.
// A job of which no allocation is named is registered, and the scheduler places it.
func (p *player) begin() error {
	w, s := p.world, p.scenario
	var nodes []*cluster.Node
	for _, n := range s.Nodes {
		if !n.Unregistered {
			nodes = append(nodes, setting.Nodes(n)...)
		}
	}
	errs := []error{w.Begin(func(txn *statestore.Txn) error {
		for _, n := range nodes {
			if err := txn.UpsertNode(n.Copy(), p.start); err != nil {
				return err
			}
		}
		return nil
	})}
	allocs := map[cluster.JobKey][]scenario.Alloc{}
	for _, a := range s.Allocs {
		allocs[a.Group.Job] = append(allocs[a.Group.Job], a)
	}
	var placements []world.Placement
	for _, j := range s.Jobs {
		job := setting.Job(j)
		placed := setting.JobAllocs(allocs[j.Key], job, w.Now(), w.NewAllocID)
		switch {
		case j.Unregistered:
			errs = append(errs, w.PlaceOrphans(placed...))
		case len(placed) > 0:
			placements = append(placements, world.Placement{Job: job, Allocs: placed})
		default:
			placements = append(placements, world.Placement{Job: job})
		}
	}
	errs = append(errs, w.PlaceAll(placements))
	for _, j := range s.Jobs {
		if !j.Unregistered && len(allocs[j.Key]) == 0 && !j.Stop {
			errs = append(errs, w.Commit(w.Requests().Register(setting.Job(j))))
		}
	}
	return errors.Join(errs...)
}
