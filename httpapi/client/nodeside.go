package client

import (
	"context"
	"net/url"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Register registers a node with its secret, as its client does. A heartbeat is due within the TTL.
func (c *Client) Register(ctx context.Context, n *cluster.Node) (ttl time.Duration, err error) {
	r, _, err := put[wire.HeartbeatResponse](ctx, c, clientPath(n.ID, "/register"), wire.NewRegistration(n))
	return r.HeartbeatTTL, err
}

// Heartbeat sends a heartbeat of a node.
func (c *Client) Heartbeat(ctx context.Context, id cluster.NodeID) (ttl time.Duration, err error) {
	r, _, err := put[wire.HeartbeatResponse](ctx, c, clientPath(id, "/heartbeat"), wire.Nothing{})
	return r.HeartbeatTTL, err
}

// ReportAllocs sends a report of a node's allocations. The index is that of the entry.
func (c *Client) ReportAllocs(ctx context.Context, id cluster.NodeID, reports []cluster.AllocReport) (index uint64, err error) {
	var request wire.AllocsRequest
	for _, r := range reports {
		request.Allocs = append(request.Allocs, wire.NewAllocReport(r))
	}
	r, _, err := put[wire.AllocsResponse](ctx, c, clientPath(id, "/allocations"), request)
	return r.Index, err
}

func clientPath(id cluster.NodeID, what string) string {
	return "/v1/client/" + url.PathEscape(string(id)) + what
}
