package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/nomad/api"
)

// operator drains nodes, one after the other, through any server that answers, and records the
// acknowledged requests.
type operator struct {
	servers *servers
	nodes   []string

	// draining is held for reading during a drain, and for writing while none may run.
	draining sync.RWMutex

	mu   sync.Mutex
	book []*request // guarded by mu
	errs []error    // failures; guarded by mu
}

// request is a drain request and its expected outcome.
type request struct {
	node, key string
	outcomes  []string
}

// work drains nodes of its own share until the context ends. It finishes the drain that it has
// begun.
func (o *operator) work(ctx context.Context, nodes []string, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	for round := 0; ctx.Err() == nil; round++ {
		node := nodes[round%len(nodes)]
		if err := o.drainOnce(node, random.IntN(4)); err != nil {
			o.mu.Lock()
			o.errs = append(o.errs, fmt.Errorf("node %s: %w", node, err))
			o.mu.Unlock()
			return
		}
	}
}

// betweenDrains waits until the running drains have ended, and calls f while none begins.
func (o *operator) betweenDrains(f func()) {
	o.draining.Lock()
	defer o.draining.Unlock()
	f()
}

// drainOnce drains a node in one of some ways, waits for the end, and takes the node
// back.
func (o *operator) drainOnce(node string, way int) error {
	o.draining.RLock()
	defer o.draining.RUnlock()
	spec := &api.DrainSpec{Deadline: time.Minute}
	r := &request{node: node, key: uuid.NewString(), outcomes: []string{"complete", "deadline reached"}}
	switch way {
	case 0:
		spec.Deadline, r.outcomes = 0, []string{"complete"}
	case 1:
		spec.Deadline, r.outcomes = -1, []string{"forced", "complete"}
	case 2:
		r.outcomes = []string{"cancelled", "complete"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if err := o.drain(ctx, r, spec); err != nil {
		return err
	}
	if way == 2 {
		if err := o.cancel(ctx, node); err != nil {
			return err
		}
	}
	if err := o.ended(ctx, node); err != nil {
		return err
	}
	return o.servers.do(ctx, func(c *api.Client) error {
		_, err := c.Nodes().ToggleEligibility(node, true, nil)
		return err
	})
}

// drain requests a drain, again with the same key until a server answers, and records the answer.
func (o *operator) drain(ctx context.Context, r *request, spec *api.DrainSpec) error {
	return o.servers.do(ctx, func(c *api.Client) error {
		answer, err := c.Nodes().UpdateDrainOpts(r.node, &api.DrainOptions{DrainSpec: spec}, &api.WriteOptions{IdempotencyToken: r.key})
		if err != nil {
			return err
		}
		if answer.LastIndex == 0 {
			return errors.New("a drain was acknowledged without an index")
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.book = append(o.book, r)
		return nil
	})
}

func (o *operator) cancel(ctx context.Context, node string) error {
	return o.servers.do(ctx, func(c *api.Client) error {
		_, err := c.Nodes().UpdateDrainOpts(node, &api.DrainOptions{MarkEligible: true}, nil)
		return err
	})
}

// ended waits for a node's drain to end.
func (o *operator) ended(ctx context.Context, node string) error {
	var index uint64
	for {
		var n *api.Node
		err := o.servers.do(ctx, func(c *api.Client) error {
			read, meta, err := c.Nodes().Info(node, (&api.QueryOptions{WaitIndex: index, WaitTime: 5 * time.Second}).WithContext(ctx))
			if err == nil {
				n, index = read, meta.LastIndex
			}
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("waiting for its drain to end: %w", err)
		case n.DrainStrategy == nil:
			return nil
		}
	}
}

// judge compares the servers' records with the operator's: each acknowledged drain exists once,
// with a permitted outcome.
func (o *operator) judge(records []record) []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	errs := slices.Clone(o.errs)
	byNode := map[string][]record{}
	for _, r := range records {
		byNode[r.NodeID] = append(byNode[r.NodeID], r)
	}
	requested := map[string][]*request{}
	for _, r := range o.book {
		requested[r.node] = append(requested[r.node], r)
	}
	for _, node := range o.nodes {
		have, want := byNode[node], requested[node]
		slices.SortFunc(have, func(a, b record) int { return int(a.CreateIndex) - int(b.CreateIndex) })
		if kept := 10; len(want) > kept { // a node's oldest records go
			want = want[len(want)-kept:]
		}
		if len(have) != len(want) {
			errs = append(errs, fmt.Errorf("node %s: %d drains were acknowledged, %d are on record", node, len(want), len(have)))
			continue
		}
		for i, r := range want {
			if !slices.Contains(r.outcomes, have[i].Outcome) {
				errs = append(errs, fmt.Errorf("node %s: drain %s ended as %q, not as one of %q", node, have[i].ID, have[i].Outcome, r.outcomes))
			}
		}
	}
	return errs
}

// record is an ended drain as the API lists it.
type record struct {
	ID, NodeID, Outcome string
	CreateIndex         uint64
}
