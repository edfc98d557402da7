package node

import (
	"context"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/csi"
)

// controllers calls the controllers among the storage plugins of the node, for the leader.
type controllers struct{ storage *storagePlugins }

var _ nodeapi.Storage = (*controllers)(nil)

// call calls a controller.
func (c *controllers) call(ctx context.Context, id cluster.PluginID, f func(context.Context, storagePlugin) error) error {
	p, err := c.storage.plugin(id, cluster.PluginType.Controller)
	if err != nil {
		return fmt.Errorf("%w: %w", nodeapi.ErrState, err)
	}
	ctx, cancel := context.WithTimeout(ctx, volumeCallTimeout)
	defer cancel()
	err = f(ctx, p.plugin)
	if class := storage.ClassOf(err); err != nil && (class == storage.Refused || class == storage.Unimplemented) {
		return fmt.Errorf("%w: %w", nodeapi.ErrRefused, err)
	}
	return err
}

// Attach implements [nodeapi.Storage].
func (c *controllers) Attach(ctx context.Context, id cluster.PluginID, a nodeapi.Attachment) (published map[string]string, err error) {
	err = c.call(ctx, id, func(ctx context.Context, p storagePlugin) error {
		published, err = p.Attach(ctx, csi.Attachment(a))
		return err
	})
	return published, err
}

// Detach implements [nodeapi.Storage].
func (c *controllers) Detach(ctx context.Context, id cluster.PluginID, a nodeapi.Attachment) error {
	return c.call(ctx, id, func(ctx context.Context, p storagePlugin) error { return p.Detach(ctx, csi.Attachment(a)) })
}
