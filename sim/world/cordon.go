package world

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// cordonAll makes all eligible nodes ineligible for the delay of a fault.
func (fs *Faults) cordonAll(by *fault) {
	var cordons []*change
	state := fs.world.Truth()
	for n := range state.Nodes() {
		if n.SchedulingEligibility == cluster.NodeEligible {
			cordons = append(cordons, fs.cordon(n.ID, state.Index()))
		}
	}
	if len(cordons) == 0 || !fs.drawStrike(by, target{}) {
		return
	}
	d := fs.recordStrike(by, target{})
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

// cordon returns a change that makes a node ineligible. If a drain of the node ends after the
// given index, reverting the change does nothing: the drain decided the eligibility.
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
