package nodeapi

import (
	"context"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Checks has the states of checks. It is safe for concurrent use.
type Checks interface {
	// List returns the checks of an allocation by their ids. The error wraps [ErrUnknown] if the node does not have the
	// allocation.
	List(ctx context.Context, alloc string) (wire.AllocCheckStatuses, error)
}

// checks answers GET /v1/client/allocation/{id}/checks.
func (h *Handler) checks(w http.ResponseWriter, r *http.Request) error {
	if h.options.Checks == nil {
		return refuse(http.StatusNotImplemented, "this node runs no checks")
	}
	all, err := h.options.Checks.List(r.Context(), r.PathValue("id"))
	if err != nil {
		return answered(err)
	}
	return answerJSON(w, all)
}
