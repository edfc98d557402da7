package sim

import (
	"errors"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// setup writes the scenario's nodes, jobs and allocations into the world. The scheduler
// places the jobs for which the scenario has no allocations.
func (p *player) setup() error {
	w, s := p.world, p.scenario
	var nodes []*cluster.Node
	for _, n := range s.Nodes {
		if !n.Unregistered {
			nodes = append(nodes, setting.Nodes(n)...)
		}
	}
	allocs := map[cluster.JobKey][]scenario.Alloc{}
	for _, a := range s.Allocs {
		allocs[a.Group.Job] = append(allocs[a.Group.Job], a)
	}
	var placements []world.Placement
	var all []*cluster.Allocation
	allocated := make([][]*cluster.Allocation, len(s.Jobs))
	jobs := make([]*cluster.Job, len(s.Jobs))
	for i, j := range s.Jobs {
		jobs[i] = setting.Job(s, j)
		allocated[i] = setting.JobAllocs(allocs[j.Key], jobs[i], w.Now(), w.Setup.NewAllocID)
		all = append(all, allocated[i]...)
	}
	setting.Provide(s, nodes, all, p.start)
	errs := []error{p.writeNodes(nodes), setting.Equip(nodes, all)}
	for i, j := range s.Jobs {
		job, placed := jobs[i], allocated[i]
		if j.Unregistered {
			errs = append(errs, w.Setup.PlaceOrphans(placed...))
		} else {
			placements = append(placements, world.Placement{Job: job, Allocs: placed})
		}
	}
	errs = append(errs, w.Setup.Place(placements...), w.Setup.Attach())
	for _, j := range s.Jobs {
		if !j.Unregistered && len(allocs[j.Key]) == 0 && !j.Stop {
			errs = append(errs, w.Setup.Commit(w.Operator.Requests.Register(setting.Job(s, j))))
		}
	}
	return errors.Join(errs...)
}

// writeNodes writes the nodes and the volumes of the beginning.
func (p *player) writeNodes(nodes []*cluster.Node) error {
	return p.world.Setup.Write(func(txn *statestore.Txn) error {
		for _, n := range nodes {
			if err := txn.UpsertNode(n.Copy(), p.start); err != nil {
				return err
			}
		}
		for _, d := range p.scenario.Volumes {
			if d.Unregistered {
				continue
			}
			for _, v := range setting.Volumes(d) {
				if err := txn.UpsertVolume(v, p.start); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
