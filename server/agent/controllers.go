package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// maxControllerAnswer bounds the answer of a controller, in bytes.
const maxControllerAnswer = 1 << 20

// controllers calls controllers of storage plugins over the sessions of their nodes.
type controllers struct{ agent *Agent }

var _ server.Controllers = controllers{}

// Call implements [server.Controllers].
func (c controllers) Call(ctx context.Context, controller cluster.NodeID, call *volumes.Call) (map[string]string, error) {
	select {
	case <-c.agent.heartbeats.ready: // the server is built
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	v, verb := call.Volume, "attach"
	if call.Detach {
		verb = "detach"
	}
	body, err := json.Marshal(nodeapi.Attachment{
		ExternalID: v.ExternalID, NodeID: call.ExternalNodeID, Capability: call.Capability, Options: v.MountOptions,
		Context: v.Context, Secrets: v.Secrets,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the call: %w", err)
	}
	at := "http://node/v1/internal/storage/" + url.PathEscape(string(v.Plugin)) + "/" + verb
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("building the call: %w", err)
	}
	response, err := c.agent.sessions.Send(request, controller)
	switch {
	case errors.Is(err, httpapi.ErrNoSession) || errors.Is(err, httpapi.ErrTooManyStreams): // nothing was sent
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", volumes.ErrNoAnswer, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxControllerAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: reading the answer: %w", volumes.ErrNoAnswer, err)
	case response.StatusCode == http.StatusBadGateway: // another server has lost the session
		return nil, fmt.Errorf("%w: %s", volumes.ErrNoAnswer, cluster.CutText(string(answer)))
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the client answers %d: %s", response.StatusCode, cluster.CutText(string(answer)))
	}
	var attached nodeapi.Attached
	if err := json.Unmarshal(answer, &attached); err != nil {
		return nil, fmt.Errorf("decoding the answer: %w", err)
	}
	return attached.PublishContext, nil
}
