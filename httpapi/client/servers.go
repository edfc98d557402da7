package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Servers sends the requests about the servers. The zero value is not usable: see [Client.Servers].
type Servers struct{ client *Client }

// Servers returns the requests about the servers.
func (c *Client) Servers() Servers { return Servers{c} }

// Self describes the server that answers.
func (s Servers) Self(ctx context.Context) (*wire.AgentSelf, error) {
	self, _, err := get[*wire.AgentSelf](ctx, s.client, "/v1/agent/self", nil)
	return self, err
}

// Members lists the servers, as the answering server has them.
func (s Servers) Members(ctx context.Context) (*wire.ServerMembers, error) {
	members, _, err := get[*wire.ServerMembers](ctx, s.client, "/v1/agent/members", nil)
	return members, err
}

// RaftConfiguration lists the servers that the answering server has, and how each of them is. It
// needs no leader.
func (s Servers) RaftConfiguration(ctx context.Context) (*wire.RaftConfiguration, error) {
	servers, _, err := get[*wire.RaftConfiguration](ctx, s.client, "/v1/operator/raft/configuration", Query{Stale: true}.values())
	return servers, err
}

// Collect deletes ended allocations, evaluations and stopped jobs that nothing needs, of every age.
// It returns how many.
func Collect(ctx context.Context, c *Client) (*wire.Collected, error) {
	collected, _, err := put[*wire.Collected](ctx, c, "/v1/system/gc", wire.Nothing{})
	return collected, err
}

// Join adds a server, or brings its address up to date.
func (s Servers) Join(ctx context.Context, r wire.JoinRequest) error {
	return do(ctx, s.client, http.MethodPost, "/v1/operator/raft/join", nil, r)
}

// Remove removes a server from the cluster, by its id.
func (s Servers) Remove(ctx context.Context, id string) error {
	return do(ctx, s.client, http.MethodDelete, "/v1/operator/raft/peer", url.Values{"id": {id}}, wire.Nothing{})
}

// Search lists ids that begin with a prefix.
func (c *Client) Search(ctx context.Context, r wire.SearchRequest) (*wire.SearchResponse, error) {
	found, _, err := put[*wire.SearchResponse](ctx, c, "/v1/search", r)
	return found, err
}
