package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Self describes the server that answers.
func (c *Client) Self(ctx context.Context) (*wire.AgentSelf, error) {
	self, _, err := get[*wire.AgentSelf](ctx, c, "/v1/agent/self", nil)
	return self, err
}

// Members lists the servers, as the answering server has them.
func (c *Client) Members(ctx context.Context) (*wire.ServerMembers, error) {
	members, _, err := get[*wire.ServerMembers](ctx, c, "/v1/agent/members", nil)
	return members, err
}

// RaftConfiguration lists the servers that the answering server has, and how each of them is. It
// needs no leader.
func (c *Client) RaftConfiguration(ctx context.Context) (*wire.RaftConfiguration, error) {
	servers, _, err := get[*wire.RaftConfiguration](ctx, c, "/v1/operator/raft/configuration", Query{Stale: true}.values())
	return servers, err
}

// Collect deletes ended allocations, evaluations and stopped jobs that nothing needs, of every age.
// It returns how many.
func Collect(ctx context.Context, c *Client) (*wire.Collected, error) {
	collected, _, err := put[*wire.Collected](ctx, c, "/v1/system/gc", wire.Nothing{})
	return collected, err
}

// Join adds a server, or brings its address up to date.
func (c *Client) Join(ctx context.Context, r wire.JoinRequest) error {
	return do(ctx, c, http.MethodPost, "/v1/operator/raft/join", nil, r)
}

// Remove takes a server away, by its id.
func (c *Client) Remove(ctx context.Context, id string) error {
	return do(ctx, c, http.MethodDelete, "/v1/operator/raft/peer", url.Values{"id": {id}}, wire.Nothing{})
}

// Search lists ids that begin with a prefix.
func (c *Client) Search(ctx context.Context, r wire.SearchRequest) (*wire.SearchResponse, error) {
	found, _, err := put[*wire.SearchResponse](ctx, c, "/v1/search", r)
	return found, err
}
