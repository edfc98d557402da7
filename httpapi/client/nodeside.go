package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// NodeSide sends the requests of the client of one registered node. It is safe for concurrent use. The zero
// value is not usable: see [Client.NodeSide].
type NodeSide struct {
	client *Client
	id     cluster.NodeID
}

// NodeSide returns the requests of a node's client.
func (c *Client) NodeSide(id cluster.NodeID) NodeSide { return NodeSide{c, id} }

// Register registers a node with its secret, as its client does. A heartbeat is due within the TTL.
func (c *Client) Register(ctx context.Context, n *cluster.Node) (wire.HeartbeatResponse, error) {
	r, _, err := put[wire.HeartbeatResponse](ctx, c, c.NodeSide(n.ID).path("/register"), wire.NewRegistration(n))
	return r, err
}

// Heartbeat sends a heartbeat of the node.
func (s NodeSide) Heartbeat(ctx context.Context) (wire.HeartbeatResponse, error) {
	r, _, err := put[wire.HeartbeatResponse](ctx, s.client, s.path("/heartbeat"), wire.Nothing{})
	return r, err
}

// ReportAllocs sends a report of the node's allocations.
func (s NodeSide) ReportAllocs(ctx context.Context, reports []cluster.AllocReport) (wire.AllocsResponse, error) {
	var request wire.AllocsRequest
	for _, r := range reports {
		request.Allocs = append(request.Allocs, wire.NewAllocReport(r))
	}
	r, _, err := put[wire.AllocsResponse](ctx, s.client, s.path("/allocations"), request)
	return r, err
}

// Since is what a node's client has: the state of a cluster at an index. The zero value is nothing.
type Since struct {
	ClusterID string
	Index     uint64
	// History distinguishes the state from another one with the same index: servers that start from an
	// older copy of their data use indexes again. It is empty below cluster version 9.
	History string
	// Shown is the newest state that the answer to a write of the client has shown, or zero. In an answer it
	// is zero.
	Shown wire.StateID
}

// Changes are what the servers have changed of a node's allocations. [NodeAllocs.Merge] merges them
// with what the client has.
type Changes struct {
	// Since is the state to name in the next request. Its ClusterID is empty if the answering server is
	// of an older release, or does not have its cluster.
	Since
	// Complete means that Allocs are all allocations of the node that are not client-terminal; from a
	// server of an older release also those that are. Otherwise they are those that the servers have
	// changed, in any status.
	Complete bool
	Allocs   []*cluster.Allocation
	// Unreadable are allocations, beside Allocs, that the client cannot read in full. The client reports
	// those that it does not run as failed.
	Unreadable []Unreadable
	// Nameless has a reason for each allocation whose id cannot be read. The client can only log it.
	Nameless []string
	// Live are the ids of all allocations of the node that are not client-terminal, or whose data the client
	// keeps: the client stops all others, and gives up their data. Nil is no statement about others. It is never nil if the answer is complete and names its
	// cluster, and Nameless is empty.
	Live []cluster.AllocID
}

// Unreadable is an allocation with a field that the client cannot read.
type Unreadable struct {
	// Alloc has the fields that can be read, and its id. Its job is nil.
	Alloc *cluster.Allocation
	// Reason is a sentence without its subject, such as "Job is nested 10001 levels deep".
	Reason string
}

// Changes reads what the servers have changed of the node's allocations since a state, and waits for a
// change, for at most wait. Reports of the client are no change. Without a known state it reads all
// allocations, and does not wait. The answer is complete, too, if the servers do not have the changes since
// that state: for example because an older state was restored, or because they have lost it, or what the
// client has written since. The index of such an answer may be lower.
func (s NodeSide) Changes(ctx context.Context, since Since, wait time.Duration) (Changes, error) {
	values := Query{Index: since.Index, Wait: wait}.values()
	values.Set("changes", since.ClusterID)
	if since.History != "" {
		values.Set("history", since.History)
	}
	if since.Shown != (wire.StateID{}) {
		values.Set("shown", fmt.Sprintf("%d-%s", since.Shown.Index, since.Shown.History))
	}
	text, answer, err := read(ctx, s.client, nodePath(string(s.id), "/allocations"), values)
	if err != nil {
		return Changes{}, err
	}
	w, err := wire.ReadAllocChanges(text)
	if err != nil {
		return Changes{}, fmt.Errorf("reading the changes of the node's allocations: %w", err)
	}
	c := Changes{Since: Since{ClusterID: w.ClusterID, Index: max(w.Index, answer.Index), History: w.History}, Complete: w.Complete, Nameless: w.Nameless}
	var ids []cluster.AllocID
	for _, one := range w.Allocs {
		ids = append(ids, cluster.AllocID(one.ID))
		a, err := one.Allocation()
		if err == nil && one.Unreadable == "" {
			c.Allocs = append(c.Allocs, a)
			continue
		}
		c.Unreadable = append(c.Unreadable, unreadable(one, err))
	}
	switch {
	case w.Live != nil:
		c.Live = make([]cluster.AllocID, len(w.Live))
		for i, id := range w.Live {
			c.Live[i] = cluster.AllocID(id)
		}
	case w.Complete && w.ClusterID != "" && len(w.Nameless) == 0:
		c.Live = append([]cluster.AllocID{}, ids...)
	}
	return c, nil
}

// unreadable returns an allocation without its job, which cannot be read or converted.
func unreadable(w *wire.Allocation, err error) Unreadable {
	without := *w
	without.Job = nil
	a, _ := without.Allocation() // only a job can fail
	u := Unreadable{Alloc: a, Reason: w.Unreadable}
	if u.Reason == "" {
		u.Reason = err.Error()
	}
	return u
}

// Data requests the data of an ephemeral disk for an allocation of the node: see [wire.DataSource]. It waits for the answer
// until the context ends, also if the answer is an [*Error] for others. The caller closes its body.
func (s NodeSide) Data(ctx context.Context, alloc cluster.AllocID, query url.Values) (*http.Response, error) {
	at := s.client.connection.begin()
	one := &request{connection: s.client.connection, at: at, method: http.MethodGet, path: s.client.Alloc(string(alloc)).node("data"), values: query}
	response, err := one.do(ctx)
	if err != nil {
		s.client.connection.leave(at)
		return nil, fmt.Errorf("%s: %w", at.base, err)
	}
	return response, nil
}

func (s NodeSide) path(what string) string {
	return "/v1/client/" + pathElement(string(s.id)) + what
}
