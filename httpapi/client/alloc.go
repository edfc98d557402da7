package client

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Alloc sends requests about one allocation. Most are answered by its node: a server hands them on. Their
// error is an [*Error] if the allocation or its node does not exist, or if the node has no connection to
// the servers. It is safe for concurrent use. The zero value is not usable: see [Client.Alloc].
type Alloc struct {
	client *Client
	id     string
}

// Alloc returns the requests about an allocation, by its whole id.
func (c *Client) Alloc(id string) Alloc { return Alloc{c, id} }

// Files lists a folder by name. The path is below the allocation's folder, which is "/".
func (a Alloc) Files(ctx context.Context, path string) ([]wire.FileInfo, error) {
	files, _, err := get[[]wire.FileInfo](ctx, a.client, a.fs("ls"), url.Values{"path": {path}})
	return files, err
}

// Stat describes a file or a folder.
func (a Alloc) Stat(ctx context.Context, path string) (wire.FileInfo, error) {
	info, _, err := get[wire.FileInfo](ctx, a.client, a.fs("stat"), url.Values{"path": {path}})
	return info, err
}

// Open reads a file. The caller closes it. A read that fails does not continue elsewhere.
func (a Alloc) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	response, err := a.client.connection.send(ctx, http.MethodGet, a.fs("cat"), url.Values{"path": {path}}, nil)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, readError(response)
	}
	return response.Body, nil
}

// Signal sends a signal to tasks.
func (a Alloc) Signal(ctx context.Context, r wire.SignalRequest) error {
	return do(ctx, a.client, http.MethodPut, a.node("signal"), nil, r)
}

// Restart restarts tasks.
func (a Alloc) Restart(ctx context.Context, r wire.RestartRequest) error {
	return do(ctx, a.client, http.MethodPut, a.node("restart"), nil, r)
}

// Stop stops the allocation. The servers answer it, and the scheduler replaces the allocation.
func (a Alloc) Stop(ctx context.Context) (wire.AllocStopResponse, error) {
	stopped, _, err := put[wire.AllocStopResponse](ctx, a.client, "/v1/allocation/"+pathElement(a.id)+"/stop", wire.Nothing{})
	return stopped, err
}

// Stats reads the resources that the allocation uses.
func (a Alloc) Stats(ctx context.Context) (*wire.AllocStats, error) {
	stats, _, err := get[*wire.AllocStats](ctx, a.client, a.node("stats"), nil)
	return stats, err
}

// Checks reads the states of the checks, by id.
func (a Alloc) Checks(ctx context.Context) (wire.AllocCheckStatuses, error) {
	all, _, err := get[wire.AllocCheckStatuses](ctx, a.client, a.node("checks"), nil)
	return all, err
}

func (a Alloc) fs(what string) string { return "/v1/client/fs/" + what + "/" + pathElement(a.id) }

func (a Alloc) node(what string) string {
	return "/v1/client/allocation/" + pathElement(a.id) + "/" + what
}

// NodeStats reads the resources of a node that are in use. The node answers, see [Alloc].
func (c *Client) NodeStats(ctx context.Context, id string) (*wire.HostStats, error) {
	stats, _, err := get[*wire.HostStats](ctx, c, "/v1/client/stats", url.Values{"node_id": {id}})
	return stats, err
}
