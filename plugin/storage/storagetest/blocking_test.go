package storagetest_test

import (
	"context"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
)

// blockingPlugin is the storage plugin of one start of a task, over a double of the same loop.
type blockingPlugin struct {
	loop    *drivers.Loop
	storage *scripted.Storage
	task    driver.TaskID
	id      cluster.PluginID
}

// Probe returns nil if the plugin answers.
func (b *blockingPlugin) Probe(ctx context.Context) error {
	_, err := drivers.Block(ctx, b.loop, "Probe", func(reply func(struct{}, error)) {
		b.storage.Probe(b.task, b.id, func(err error) { reply(struct{}{}, err) })
	})
	return err
}

// Describe returns the plugin's description of itself.
func (b *blockingPlugin) Describe(context.Context, cluster.PluginType) (*cluster.StoragePlugin, error) {
	return &cluster.StoragePlugin{Provider: "scripted", Version: "1", NodeID: "this", Stages: b.storage.Stages(b.id)}, nil
}

// Do makes a call. It uses the paths of the storage.
func (b *blockingPlugin) Do(ctx context.Context, c storage.Call, _, _ string) error {
	_, err := drivers.Block(ctx, b.loop, c.Verb.String(), func(reply func(struct{}, error)) {
		b.storage.Do(b.task, c, func() bool { return ctx.Err() == nil }, func(r storage.Result) { reply(struct{}{}, r.Err) })
	})
	return err
}
