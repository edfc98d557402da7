package nodeapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Storage calls the controllers among the storage plugins of the node. It is safe for concurrent use. Errors
// that wrap [ErrUnknown] or [ErrState] are the caller's, as with [Tasks].
type Storage interface {
	// Attach publishes a volume to a node, and returns the context for the calls of that node.
	Attach(ctx context.Context, plugin cluster.PluginID, a Attachment) (publishContext map[string]string, err error)
	// Detach unpublishes a volume from a node.
	Detach(ctx context.Context, plugin cluster.PluginID, a Attachment) error
}

// Attachment is the body of a request for a controller.
type Attachment struct {
	// ExternalID and NodeID are what the plugin calls the volume and the node.
	ExternalID, NodeID string
	Capability         cluster.VolumeCapability
	ReadOnly           bool                  `json:",omitempty"`
	Options            *cluster.MountOptions `json:",omitempty"`
	Context            map[string]string     `json:",omitempty"`
	Secrets            map[string]string     `json:",omitempty"`
}

// Attached is the answer to a request that a controller has served.
type Attached struct {
	PublishContext map[string]string `json:",omitempty"`
}

// ErrRefused is wrapped by errors of [Storage]: the plugin will never do what was requested. The status of the
// answer is 422.
var ErrRefused = errors.New("the storage plugin refuses")

// routeStorage registers the requests for controllers. They are for servers alone: no route of the HTTP API
// leads to their paths, so that no caller of a server can send them over the session.
func (h *Handler) routeStorage() {
	for verb, answer := range map[string]func(context.Context, cluster.PluginID, Attachment) (Attached, error){
		"attach": func(ctx context.Context, p cluster.PluginID, a Attachment) (Attached, error) {
			published, err := h.options.Storage.Attach(ctx, p, a)
			return Attached{PublishContext: published}, err
		},
		"detach": func(ctx context.Context, p cluster.PluginID, a Attachment) (Attached, error) {
			return Attached{}, h.options.Storage.Detach(ctx, p, a)
		},
	} {
		h.handle("POST /v1/internal/storage/{plugin}/"+verb, func(w http.ResponseWriter, r *http.Request) error {
			if h.options.Storage == nil {
				return refuse(http.StatusNotImplemented, "this node does not call storage plugins")
			}
			var a Attachment
			if err := readBody(w, r, &a); err != nil {
				return err
			}
			got, err := answer(r.Context(), cluster.PluginID(r.PathValue("plugin")), a)
			switch {
			case errors.Is(err, ErrRefused):
				return refuse(http.StatusUnprocessableEntity, err.Error())
			case err != nil:
				return answered(err)
			}
			return answerJSON(w, got)
		})
	}
}
