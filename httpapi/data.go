package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// This file copies the data of ephemeral disks from the client of one node to the client of another one. It is
// ours.

// Bounds on requests for data. They use no slot of other requests.
const (
	maxDataRequests          = 4096
	maxDataRequestsPerClient = 1024
	// dataWait is how long a request waits for the end of the allocation that has the data.
	dataWait = 5 * time.Minute
)

// dataCopy is a request of the client of a node for the data of the allocation that one of its allocations
// replaces.
type dataCopy struct {
	q  *request
	to cluster.AllocID
}

// copyData answers GET /v1/client/allocation/{id}/data: the data of the allocation that this one replaces. Only the
// secret of its node is a valid token. A retry cannot help after the answer 410.
func copyData(q *request) error {
	c := dataCopy{q: q, to: cluster.AllocID(q.PathValue("id"))}
	if !q.byNode {
		if s, err := q.state(); err != nil {
			return err
		} else if s.Alloc(c.to) == nil {
			return failure.New(http.StatusNotFound, allocNotFound)
		}
		return errForbidden()
	}
	if q.backend.Nodes == nil {
		return errNoNodes()
	}
	parameters, err := c.parameters()
	if err != nil {
		return err
	}
	client := q.client()
	if !q.handler.dataRequests.Take(client) {
		return failure.Newf(http.StatusServiceUnavailable, "too many requests for data are open: a server has at most %d, and %d of one node",
			maxDataRequests, maxDataRequestsPerClient)
	}
	defer q.handler.dataRequests.Free(client)
	ctx, leave := q.handler.copies.Enter(q.Context(), c.to)
	defer leave()
	q.Request = q.WithContext(ctx)
	err = c.copy(parameters)
	if err != nil && errors.Is(context.Cause(ctx), datamove.ErrNewer) {
		return failure.New(http.StatusConflict, datamove.ErrNewer.Error())
	}
	return err
}

// copy copies the data when it is ready.
func (c dataCopy) copy(parameters url.Values) error {
	for {
		found, err := c.await()
		if err != nil {
			return err
		}
		if retry, err := c.inTurn(found, parameters); !retry {
			return err
		}
	}
}

// parameters returns the parameters for the client of the other node.
func (c dataCopy) parameters() (url.Values, error) {
	values, all := url.Values{}, c.q.URL.Query()
	for _, name := range []string{wire.DataFolder, wire.DataAfter, wire.DataOffset} {
		if all.Has(name) {
			values[name] = all[name]
		}
	}
	if text := all.Get(wire.DataOffset); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 0 {
			return nil, failure.Bad("%s must be a number >= 0", wire.DataOffset)
		}
	}
	return values, nil
}

// await waits until the data is ready.
func (c dataCopy) await() (found datamove.Source, err error) {
	ctx, cancel := context.WithTimeout(c.q.Context(), dataWait)
	defer cancel()
	const ends, wait = 2, 1 // above and not above the index that Read waits for
	err = c.q.readAgain(ctx, wait, func(s State) (uint64, error) {
		if found = datamove.Find(s, c.to); found.State == datamove.Waits {
			return wait, nil
		}
		return ends, nil
	})
	if err != nil && (!errors.Is(err, context.DeadlineExceeded) || c.q.Context().Err() != nil) {
		return found, err
	}
	return found, c.named(found)
}

// named names the allocation with the data in the answer, and returns the failure if the data is not ready.
func (c dataCopy) named(found datamove.Source) error {
	if found.Alloc != nil {
		c.q.w.Header().Set(wire.DataSource, string(found.Alloc.ID))
	}
	switch found.State {
	case datamove.Ready:
		return nil
	case datamove.Gone:
		return failure.New(http.StatusGone, found.Why)
	}
	return failure.New(http.StatusServiceUnavailable, found.Why)
}

// inTurn copies the data when the copy has its turn. retry means that the data is at another place or not ready
// then.
func (c dataCopy) inTurn(found datamove.Source, parameters url.Values) (retry bool, err error) {
	s, err := c.q.state()
	if err != nil {
		return false, err
	}
	to := s.Alloc(c.to)
	if to == nil {
		return false, failure.New(http.StatusNotFound, allocNotFound)
	}
	begun, ctx, err := c.q.handler.copies.Begin(c.q.Context(), found.Node.ID, to.NodeID)
	if err != nil {
		return false, err
	}
	defer begun.End()
	if s, err = c.q.state(); err != nil {
		return false, err
	}
	if now := datamove.Find(s, c.to); now.State != datamove.Ready || now.Alloc.ID != found.Alloc.ID {
		return true, nil
	}
	response, err := c.send(ctx, found, parameters)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	header := c.q.w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("X-Content-Type-Options", "nosniff")
	c.q.w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(c.q.w)
	if err = control.Flush(); err == nil {
		err = begun.Pass(ctx, target{c.q.w, control}, response.Body)
	}
	if err != nil { // the client must notice that the answer is not complete
		c.q.options.Logger.Debug("a copy of the data of an allocation was cut", "from", found.Alloc.ID, "to", c.to, "error", errors.Join(err, context.Cause(ctx)))
		_ = control.SetWriteDeadline(time.Unix(1, 0))
	}
	return false, nil
}

// target is the answer as the target of a copy.
type target struct {
	io.Writer
	*http.ResponseController
}

// send requests the data from the client of the other node. The caller closes the body of the answer. If the client
// does not answer, the failure is 502: the wait for it is no wait for a turn.
func (c dataCopy) send(ctx context.Context, found datamove.Source, parameters url.Values) (*http.Response, error) {
	const before, after = "/v1/client/allocation/", "/data"
	id := string(found.Alloc.ID)
	r := &http.Request{Method: http.MethodGet, Header: http.Header{}, URL: &url.URL{
		Path: before + id + after, RawPath: before + url.PathEscape(id) + after, RawQuery: parameters.Encode(),
	}}
	response, err := c.q.backend.Nodes.Send(r.WithContext(ctx), found.Node.ID)
	node := fmt.Sprintf("%s (%s)", found.Node.Name, found.Node.ID)
	switch {
	case err == nil:
		return judged(response, node)
	case c.q.Context().Err() != nil:
		return nil, err
	case errors.Is(err, ErrNoSession):
		return nil, failure.Newf(http.StatusBadGateway, "no path to node %s: its client has no session with a server", node)
	case errors.Is(err, ErrTooManyStreams):
		return nil, failure.Newf(http.StatusBadGateway, "too many requests to node %s are open", node)
	case errors.Is(context.Cause(ctx), datamove.ErrNoProgress):
		return nil, failure.Newf(http.StatusBadGateway, "the client of node %s does not answer", node)
	}
	return nil, failure.Newf(http.StatusBadGateway, "the session of node %s ended before the answer (%v)", node, err)
}

// judged returns the answer of a client with the data. A client answers 410 if it does not have the data any more,
// and 503 if it sends other data first.
func judged(response *http.Response, node string) (*http.Response, error) {
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	code := http.StatusBadGateway
	switch {
	case response.StatusCode < http.StatusOK:
		return nil, failure.Newf(code, "the client of node %s sends no valid answer", node)
	case response.StatusCode == http.StatusGone, response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "":
		code = response.StatusCode
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorText)) // a text that ends early is good enough
	return nil, failure.Newf(code, "the client of node %s answers %d: %s", node, response.StatusCode, strings.ToValidUTF8(strings.TrimSpace(string(text)), ""))
}
