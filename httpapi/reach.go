package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
)

// This file hands requests on to the clients of nodes.

// Bounds on requests to clients of nodes.
const (
	// maxReaches bounds the open requests of a server, maxReachesPerClient those of one caller.
	maxReaches          = 2048
	maxReachesPerClient = 1024
	// maxReachBody bounds the body, in bytes.
	maxReachBody = 64 << 10
	// lagTime is how long a server that does not lead waits for an allocation that it does not have yet.
	lagTime = 2 * time.Second
	// reachTime bounds the time until a client begins to answer. A client gives up after 30 seconds.
	reachTime = 40 * time.Second
)

// errNodeSilent ends a request that a client has not begun to answer in time.
var errNodeSilent = errors.New("the client of the node does not answer")

// passage is a request that is handed on to the client of a node.
type passage struct{ q *request }

// reachAlloc hands a request about an allocation on to the client of its node.
func reachAlloc(q *request) error {
	p := passage{q}
	end, err := p.begin()
	if err != nil {
		return err
	}
	defer end()
	node, err := p.nodeOfAlloc()
	if err != nil {
		return err
	}
	return p.handOn(node)
}

// reachNode answers GET /v1/client/stats?node_id=: the client of the node reports what the machine uses.
func reachNode(q *request) error {
	p := passage{q}
	end, err := p.begin()
	if err != nil {
		return err
	}
	defer end()
	id := cluster.NodeID(q.URL.Query().Get("node_id"))
	if id == "" {
		return failure.Bad("missing node_id")
	}
	state, err := q.state()
	if err != nil {
		return err
	}
	node := state.Node(id)
	if node == nil {
		return failure.New(http.StatusNotFound, nodeNotFound)
	}
	return p.handOn(node)
}

// begin counts a request to a client, until the caller calls end.
func (p passage) begin() (end func(), err error) {
	if p.q.backend.Nodes == nil {
		return nil, errNoNodes()
	}
	client := p.q.client()
	if !p.q.handler.reaches.Take(client) {
		return nil, failure.Newf(http.StatusTooManyRequests,
			"too many requests to nodes are open: a server has at most %d, and %d of one caller; end some, or retry later", maxReaches, maxReachesPerClient)
	}
	return func() { p.q.handler.reaches.Free(client) }, nil
}

// nodeOfAlloc returns the node of the allocation that the path names. A server that does not lead may not
// have a new allocation yet, and waits for it.
func (p passage) nodeOfAlloc() (node *cluster.Node, err error) {
	ctx, cancel := context.WithTimeout(p.q.Context(), lagTime)
	defer cancel()
	id := cluster.AllocID(p.q.PathValue("id"))
	known := false
	const done, wait = 2, 1 // above and not above the index that Read waits for
	err = p.q.readAgain(ctx, wait, func(s State) (uint64, error) {
		a := s.Alloc(id)
		if a == nil && !p.q.backend.Peers.Leads() {
			return wait, nil
		}
		if a != nil {
			known, node = true, s.Node(a.NodeID)
		}
		return done, nil
	})
	switch {
	case err != nil && !errors.Is(err, context.DeadlineExceeded), p.q.Context().Err() != nil:
		return nil, err
	case !known:
		return nil, failure.New(http.StatusNotFound, allocNotFound)
	case node == nil:
		return nil, failure.Newf(http.StatusInternalServerError, "the node of allocation %s is not registered: it was purged", id)
	}
	return node, nil
}

// handOn hands the request on to the client of a node, and its answer to the caller.
func (p passage) handOn(node *cluster.Node) error {
	if p.q.route.live {
		ctx, end := p.whileAllowed()
		defer end()
		p.q.Request = p.q.WithContext(ctx)
	}
	response, err := p.send(node, p.forNode(p.q.Method, p.q.body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < http.StatusOK {
		return failure.Newf(http.StatusInternalServerError, "the client of node %s sends no valid answer", node.Name)
	}
	p.pass(response)
	return nil
}

// forNode returns the request for the client. It has what the client needs, and nothing else of the
// caller's request: no token and no internal header leaves the servers.
func (p passage) forNode(method string, body []byte) *http.Request {
	values, all := url.Values{}, p.q.URL.Query()
	for _, name := range []string{"path", "offset", "limit", "origin", "follow", "plain", "task", "type", "file", "tty", "command"} {
		if all.Has(name) {
			values[name] = all[name]
		}
	}
	r := &http.Request{
		Method: method, Header: http.Header{},
		URL: &url.URL{Path: p.q.URL.Path, RawPath: p.q.URL.RawPath, RawQuery: values.Encode()},
	}
	if len(body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// send sends a request to the client of a node. The caller closes the body of the answer.
func (p passage) send(node *cluster.Node, r *http.Request) (*http.Response, error) {
	if node.Status == cluster.NodeDown {
		return nil, failure.Newf(http.StatusInternalServerError,
			"No path to node %s (%s): it is down; start its client, or check its network", node.Name, node.ID)
	}
	ctx, cancel := context.WithCancelCause(p.q.Context())
	timer := time.AfterFunc(reachTime, func() { cancel(errNodeSilent) })
	response, err := p.q.backend.Nodes.Send(r.WithContext(ctx), node.ID)
	timer.Stop()
	if err == nil {
		return response, nil
	}
	if context.Cause(ctx) == errNodeSilent {
		err = errNodeSilent
	}
	cancel(nil)
	return nil, p.unreached(node, err)
}

// unreached is the failure of a request that no client has answered.
func (p passage) unreached(node *cluster.Node, err error) error {
	name := fmt.Sprintf("%s (%s)", node.Name, node.ID)
	switch {
	case p.q.Context().Err() != nil:
		return err
	case errors.Is(err, ErrNoSession):
		return failure.New(http.StatusInternalServerError, "No path to node "+name+
			": its client has no session with a server; check that nodedrain client runs there and reaches a server (simulated clients have no session)")
	case errors.Is(err, ErrTooManyStreams):
		return failure.New(http.StatusTooManyRequests, "too many requests to node "+name+" are open: end some, or retry later")
	case errors.Is(err, errNodeSilent):
		return failure.New(http.StatusInternalServerError, "the client of node "+name+" does not answer: read its logs")
	}
	what := "retry"
	if !p.q.route.reads {
		what = "the client may have executed the request: check before you retry"
	}
	return failure.Newf(http.StatusInternalServerError, "the session of node %s ended before the answer; %s (%v)", name, what, err)
}

// pass hands the answer of a client on, each part at once. It returns when the answer ends, when the
// caller leaves, and when the caller takes nothing for a minute.
func (p passage) pass(response *http.Response) {
	header := p.q.w.Header()
	for _, name := range []string{"Content-Type", "Content-Length"} {
		if value := response.Header.Get(name); value != "" {
			header.Set(name, value)
		}
	}
	// The file of a task must not become a page of this server.
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	state, err := p.q.state()
	if err == nil {
		p.q.readHeaders(max(1, state.Index()))
	}
	p.q.w.WriteHeader(response.StatusCode)
	control := http.NewResponseController(p.q.w)
	if p.q.route.live { // the first part may be far
		if err := control.Flush(); err != nil {
			return
		}
	}
	buffer := make([]byte, passBuffer)
	for {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			beginAnswer(p.q.w, answerTime)
			if _, err := p.q.w.Write(buffer[:n]); err != nil {
				return
			}
			if err := control.Flush(); err != nil {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil: // the caller must notice that the answer is not complete
			_ = control.SetWriteDeadline(time.Unix(1, 0))
			return
		}
	}
}

// whileAllowed returns a context that ends with the request, and when the right of the caller is taken away.
// It owns a goroutine until end is called.
func (p passage) whileAllowed() (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(p.q.Context())
	q := *p.q // the goroutine stores the identity in its own
	var checking sync.WaitGroup
	checking.Go(func() {
		every := time.NewTicker(rightInterval)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				if !q.stillAllowed() {
					cancel()
					return
				}
			}
		}
	})
	return ctx, func() {
		cancel()
		checking.Wait()
	}
}

// rightInterval is how often a stream checks that its caller still has the right.
const rightInterval = time.Second

// passBuffer is the size of the parts of an answer, in bytes.
const passBuffer = 32 << 10

// holdSession answers GET /v1/client/{id}/session: the connection becomes the session of the node, over
// which servers reach its client. Only the secret of the node opens it.
func holdSession(q *request) error {
	if !q.byNode {
		if err := nodeExists(q); err != nil {
			return err
		}
		return errForbidden()
	}
	if q.backend.Nodes == nil {
		return errNoNodes()
	}
	if _, err := processOf(q); err != nil {
		return err
	}
	return q.backend.Nodes.Hold(q.w, q.Request, q.nodeID())
}

func errNoNodes() error {
	return failure.New(http.StatusNotImplemented, "this server has no sessions with nodes")
}
