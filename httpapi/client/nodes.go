package client

import (
	"context"
	"net/url"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
)

// NodesQuery selects from the list of nodes.
type NodesQuery struct {
	Query
	// OS adds the name of each node's operating system.
	OS bool
}

// Nodes lists the nodes by id.
func (c *Client) Nodes(ctx context.Context, q NodesQuery) ([]*wire.NodeListStub, Answer, error) {
	values := q.values()
	if q.OS {
		values.Set("os", "true")
	}
	return get[[]*wire.NodeListStub](ctx, c, "/v1/nodes", values)
}

// Node reads a node by its whole id. If there is none, [NotFound] holds of the error.
func (c *Client) Node(ctx context.Context, id string, q Query) (*wire.Node, Answer, error) {
	return get[*wire.Node](ctx, c, nodePath(id, ""), q.values())
}

// NodeAllocations lists the allocations on a node, ended ones included.
func (c *Client) NodeAllocations(ctx context.Context, id string, q Query) ([]*wire.Allocation, Answer, error) {
	return get[[]*wire.Allocation](ctx, c, nodePath(id, "/allocations"), q.values())
}

// UpdateDrain begins, changes or ends the drain of a node. A request with a key that a drain of the
// node already has changes nothing, so that a request of unknown outcome can be repeated. An empty key
// is no key.
func (c *Client) UpdateDrain(ctx context.Context, id string, r wire.DrainRequest, key string) (*wire.DrainResponse, Answer, error) {
	values := url.Values{}
	if key != "" {
		values.Set("idempotency_token", key)
	}
	return putWith[*wire.DrainResponse](ctx, c, nodePath(id, "/drain"), values, r)
}

// UpdateEligibility sets whether a node gets new work.
func (c *Client) UpdateEligibility(ctx context.Context, id string, r wire.EligibilityRequest) (*wire.EligibilityResponse, Answer, error) {
	return put[*wire.EligibilityResponse](ctx, c, nodePath(id, "/eligibility"), r)
}

// PurgeNode deletes a node. If there is none, [NotFound] holds of the error.
func PurgeNode(ctx context.Context, c *Client, id string) (*wire.NodeUpdateResponse, Answer, error) {
	return put[*wire.NodeUpdateResponse](ctx, c, nodePath(id, "/purge"), wire.Nothing{})
}

// NodeDrain reads the running or last drain of a node, and why the allocations left have not moved.
func (c *Client) NodeDrain(ctx context.Context, id string, q Query) (*wire.NodeDrain, Answer, error) {
	return get[*wire.NodeDrain](ctx, c, nodePath(id, "/drain"), q.values())
}

// Drains lists running drains and ended ones.
func (c *Client) Drains(ctx context.Context, q Query) (*wire.DrainList, Answer, error) {
	return get[*wire.DrainList](ctx, c, "/v1/drains", q.values())
}

// DrainStory reads a drain and its journal. It needs the whole id of the drain. If there is none, [NotFound] holds of the
// error.
func DrainStory(ctx context.Context, c *Client, id string, q Query) (*wire.DrainStory, Answer, error) {
	return get[*wire.DrainStory](ctx, c, "/v1/drain/"+pathElement(id), q.values())
}

// PlanDrains returns what drains would do. It changes nothing. The server needs seconds for many nodes.
func PlanDrains(ctx context.Context, c *Client, r drainplan.Request) (*drainplan.Answer, Answer, error) {
	return put[*drainplan.Answer](ctx, c, "/v1/drains/plan", r)
}

// ConfirmDrain declares that no task of an ended drain runs on its node, as if the clients had reported
// the ends of the allocations that the record of the drain counts as unconfirmed. It needs the whole id
// of the drain. If there is no record, [NotFound] holds of the error.
func (c *Client) ConfirmDrain(ctx context.Context, id string) (*wire.DrainConfirmResponse, Answer, error) {
	return put[*wire.DrainConfirmResponse](ctx, c, "/v1/drain/"+pathElement(id)+"/confirm", wire.Nothing{})
}

// PauseDrains pauses the drain of a node, or all drains, also later ones, if node is empty. ResumeDrains ends the pause.
// They need the whole id of the node. A repeated request changes nothing. If there is no node, [NotFound] holds of the
// error.
func PauseDrains(ctx context.Context, c *Client, node string) (*wire.DrainPauseResponse, Answer, error) {
	return put[*wire.DrainPauseResponse](ctx, c, drainsPath(node)+"/pause", wire.Nothing{})
}

// ResumeDrains ends what PauseDrains began.
func ResumeDrains(ctx context.Context, c *Client, node string) (*wire.DrainPauseResponse, Answer, error) {
	return put[*wire.DrainPauseResponse](ctx, c, drainsPath(node)+"/resume", wire.Nothing{})
}

// DrainPause reads the pause of all drains. It returns nil if there is none.
func DrainPause(ctx context.Context, c *Client, q Query) (*wire.DrainPause, Answer, error) {
	return get[*wire.DrainPause](ctx, c, "/v1/drains/pause", q.values())
}

// drainsPath is the path of a node's drain, or of all drains for an empty node.
func drainsPath(node string) string {
	if node == "" {
		return "/v1/drains"
	}
	return nodePath(node, "/drain")
}

func nodePath(id, what string) string { return "/v1/node/" + pathElement(id) + what }
