package world

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// cordonAll makes all eligible nodes ineligible for a while.
func (fs *Faults) cordonAll(by *fault) {
	var cordons []*change
	state := fs.world.Truth()
	for n := range state.Nodes() {
		if n.SchedulingEligibility == cluster.NodeEligible {
			cordons = append(cordons, fs.cordon(n.ID, state.Index()))
		}
	}
	if len(cordons) == 0 || !fs.lucky(by, target{}) {
		return
	}
	d := fs.struck(by, target{})
	for _, c := range cordons {
		_ = c.start() // it never fails
	}
	fs.undoAfter(d, func() error {
		for _, c := range cordons {
			if err := c.end(); err != nil {
				return err
			}
		}
		return nil
	})
}

// cordon is a change of a node's eligibility. If a drain on the node has ended after the
// given index, the eligibility stays as that drain has left it.
func (fs *Faults) cordon(id cluster.NodeID, since uint64) *change {
	w := fs.world
	return &change{
		operator: w.Operator,
		apply: func() shims.Message {
			n := w.Truth().Node(id)
			if n == nil || n.SchedulingEligibility == cluster.NodeIneligible {
				return nil
			}
			return w.Operator.Requests.Eligibility(id, cluster.NodeIneligible)
		},
		revert: func() shims.Message {
			state := w.Truth()
			n := state.Node(id)
			if n == nil || n.Draining() || n.SchedulingEligibility == cluster.NodeEligible {
				return nil
			}
			for d := range state.DrainsByNode(id) {
				if d.EndIndex > since {
					return nil
				}
			}
			return w.Operator.Requests.Eligibility(id, cluster.NodeEligible)
		},
	}
}
