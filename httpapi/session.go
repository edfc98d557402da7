package httpapi

import (
	"net/http"
)

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
	q.backend.Nodes.Hold(q.w, q.Request, q.nodeID())
	return nil
}

func errNoNodes() error {
	return fail(http.StatusNotImplemented, "this server has no sessions with nodes")
}
