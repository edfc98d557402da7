package foretell

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plan"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

const (
	// maxSteps bounds the steps of a world.
	maxSteps = 10_000_000
	// settling bounds the virtual time of each part of a world.
	settling = 24 * time.Hour
)

// options returns the options of a world of the cluster. The delays are the ordinary ones of the swarm.
func (d *draft) options(seed uint64) world.Options {
	return world.Options{
		Seed: seed, Views: true, MaxSteps: maxSteps,
		Commit:   scenario.Range{Min: time.Millisecond, Max: 20 * time.Millisecond},
		Schedule: scenario.Range{Min: time.Millisecond, Max: 50 * time.Millisecond},
		Wake:     scenario.Range{Min: time.Millisecond, Max: 5 * time.Millisecond},
	}
}

// errUnsettled means that something still happens in a world after a day.
var errUnsettled = errors.New("a day is over, and the world is not at rest")

// settle runs a world until nothing happens any more.
func settle(w *world.World) error {
	idle, err := w.Run(w.Now().Add(settling))
	if err == nil && !idle {
		err = errUnsettled
	}
	return err
}

// begin runs the cluster until the question, and returns its state and the time of the question.
func (d *draft) begin() (from *statestore.Store, at time.Time, err error) {
	o := d.options(d.seed)
	o.Client = d.clients(d.seed, 1)
	w, err := world.New(o)
	if err != nil {
		return nil, at, err
	}
	for _, n := range d.nodes {
		if err := w.Setup.Commit(&shims.NodeRegister{At: w.Now(), Node: n}); err != nil {
			return nil, at, err
		}
	}
	for _, j := range d.jobs {
		w.Operator.Propose(w.Operator.Requests.Register(j), nil)
	}
	if err := settle(w); err != nil {
		return nil, at, fmt.Errorf("starting jobs: %w", err)
	}
	for _, id := range d.earlier {
		w.Operator.Propose(w.Operator.Requests.Drain(id, &cluster.DrainSpec{Deadline: time.Hour}, ""), nil)
		if err := settle(w); err != nil {
			return nil, at, fmt.Errorf("draining %s before the question: %w", id, err)
		}
		w.Operator.Propose(w.Operator.Requests.Eligibility(id, cluster.NodeEligible), nil)
		if err := settle(w); err != nil {
			return nil, at, fmt.Errorf("after the drain of %s before the question: %w", id, err)
		}
	}
	return w.Servers.Fork(), w.Now().Add(d.rest), nil
}

// happened is what came of the drains of the question in one world.
type happened struct {
	// took is the time to the end of the last drain; endless if one does not end.
	took time.Duration
	// taken counts the allocations that the deadline took.
	taken int
	// lowest is the least number of healthy allocations of each group with a marked allocation.
	lowest map[cluster.GroupKey]int
}

// play plays the drains in a world of its own that begins with the state.
func (d *draft) play(from *statestore.Store, q plan.Question, seed uint64, slower float64) (*happened, error) {
	o := d.options(seed)
	o.From, o.Begin, o.Client = from, q.At, d.clients(seed, slower)
	w, err := world.New(o)
	if err != nil {
		return nil, err
	}
	h := &happened{lowest: map[cluster.GroupKey]int{}}
	running, ended := map[cluster.NodeID]cluster.DrainID{}, 0
	w.Observe(world.Observer{Applied: func(a world.Applied) {
		for id, drain := range running {
			switch n := a.After.Node(id); {
			case n.Draining():
				running[id] = n.Drain.ID
			case drain != "":
				h.took, ended = w.Now().Sub(q.At), ended+1
				record, _ := a.After.Story(drain)
				h.taken += record.Marked[cluster.MarkDeadline] + record.Marked[cluster.MarkForced]
				delete(running, id)
			}
		}
		h.lower(a)
	}})
	for _, id := range q.Nodes {
		running[id] = ""
		w.Operator.Propose(w.Operator.Requests.Drain(id, &q.Spec, ""), nil)
	}
	if err := settle(w); err != nil {
		return nil, fmt.Errorf("draining %v with seed %d: %w", q.Nodes, seed, err)
	}
	if ended < len(q.Nodes) {
		h.took = endless
	}
	return h, nil
}

// lower notes the health of the groups of which the drains have marked allocations.
func (h *happened) lower(a world.Applied) {
	if marks, is := a.Response.(shims.MarksApplied); is {
		for _, m := range marks.Accepted {
			if _, noted := h.lowest[m.Group]; !noted {
				h.lowest[m.Group] = a.Before.DrainView().Healthy(m.Group)
			}
		}
	}
	for k, lowest := range h.lowest {
		h.lowest[k] = min(lowest, a.After.DrainView().Healthy(k))
	}
}
