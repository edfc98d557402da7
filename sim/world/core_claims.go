package world

import (
	"errors"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// claimRequest is a request of a client for a claim or a release, which the servers have not answered yet.
type claimRequest struct {
	node *coreNode
	// client is the number of the client that sent it.
	client  int
	request storage.Request
	// release: the client releases the claim. proposed: the leader has proposed the release.
	release, proposed bool
	claimed           func(storage.Claimed, error)
	released          func(error)
}

// Errors of servers after which the client retries.
var (
	errAttaching = errors.New("a controller must attach the volume to the node")
	errDetaching = errors.New("a controller must detach the volume from the node")
	errNoAnswer  = errors.New("the servers do not answer")
)

func (a *claimRequest) key() cluster.ClaimKey {
	return cluster.ClaimKey{Volume: a.request.Volume, Alloc: a.request.Alloc}
}

// claim requests a claim. The next step of the nodes answers.
func (n *coreNode) claim(q storage.Request, reply func(storage.Claimed, error)) {
	n.cores.requests = append(n.cores.requests, &claimRequest{node: n, client: n.registration.client, request: q, claimed: reply})
}

// release releases a claim.
func (n *coreNode) release(q storage.Request, reply func(error)) {
	n.cores.requests = append(n.cores.requests, &claimRequest{node: n, client: n.registration.client, request: q, release: true, released: reply})
}

// serve answers the requests of nodes that reach the servers. Other nodes get no answer.
func (c *cores) serve() error {
	for len(c.requests) > 0 {
		requests := c.requests
		c.requests = nil
		for _, a := range requests {
			r := &a.node.registration
			switch {
			case !a.node.reachable():
				continue
			case a.client != r.client && !a.proposed: // the servers refuse an earlier client
				continue
			case r.due && !a.proposed:
				r.claims = append(r.claims, a)
				continue
			}
			if err := c.serveOne(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// serveOne answers a request. The leader first checks with the other servers that it still leads, and
// then reads the claims.
func (c *cores) serveOne(a *claimRequest) error {
	v, claim := c.read(a)
	if !a.release {
		got, err := claimed(v, claim)
		return a.answer(func() { a.claimed(got, err) })
	}
	switch {
	case claim != nil && !claim.State.OnNode():
		return a.answer(func() { a.released(errDetaching) })
	case claim == nil:
		return a.answer(func() { a.released(nil) })
	case a.proposed: // the claim has been replaced meanwhile
		return a.answer(func() { a.released(errNoAnswer) })
	}
	return c.propose(a)
}

// read returns the claim of a request, and its volume. Both are nil if there is no claim.
func (c *cores) read(a *claimRequest) (*cluster.Volume, *cluster.VolumeClaim) {
	state := c.fleet.world.Truth()
	claim := state.WorkView().Claim(a.key())
	if claim != nil && claim.Node != a.node.id {
		claim = nil
	}
	return state.Volume(a.request.Volume), claim
}

// claimed converts a claim to an answer, like the client of package client/node.
func claimed(v *cluster.Volume, c *cluster.VolumeClaim) (storage.Claimed, error) {
	switch {
	case c == nil:
		return storage.Claimed{}, storage.Errorf(storage.Refused, "the servers no longer have the claim of the allocation")
	case !c.State.OnNode():
		return storage.Claimed{}, storage.Errorf(storage.Refused, "the claim is released: its state is %q", c.State)
	case v == nil:
		return storage.Claimed{}, storage.Errorf(storage.Refused, "the volume was deregistered by force")
	case c.WaitsForController():
		return storage.Claimed{}, errAttaching
	}
	return storage.Claimed{
		Plugin: v.Plugin, ExternalID: v.ExternalID, Options: v.MountOptions, PublishContext: c.PublishContext, Context: v.Context, Secrets: v.Secrets,
	}, nil
}

// propose proposes that the node has unmounted a volume. After that the request
// is served again.
func (c *cores) propose(a *claimRequest) error {
	w := c.fleet.world
	m := &shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{
		At: w.Clock(), Changes: []cluster.ClaimChange{{Claim: a.key(), Node: a.node.id, Cause: cluster.CauseNode}},
	}}
	a.proposed = true
	taken := w.Log.propose(nil, FromClients, m, func(answer shims.Answer) {
		if answer.Outcome == raftwrite.Applied {
			c.requests = append(c.requests, a)
			return
		}
		c.refused = append(c.refused, a)
	})
	if !taken {
		return a.answer(func() { a.released(errNoAnswer) })
	}
	return nil
}

// answer passes an answer to the client at the present time.
func (a *claimRequest) answer(do func()) error { return a.node.disturb(do) }

// refuse answers the requests whose entries were not applied.
func (c *cores) refuse() error {
	refused := c.refused
	c.refused = nil
	for _, a := range refused {
		if a.node.reachable() {
			if err := a.answer(func() { a.released(errNoAnswer) }); err != nil {
				return err
			}
		}
	}
	return nil
}
