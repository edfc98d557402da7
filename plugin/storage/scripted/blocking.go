package scripted

import (
	"context"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Blocking is the storage plugin of one start of a task, with blocking calls, over a [Storage] of
// the same loop. Package plugin/storage/storagetest tests it.
type Blocking struct {
	loop    *scripted.Loop
	storage *Storage
	task    driver.TaskID
	id      cluster.PluginID
}

// NewBlocking returns the plugin with this id of a start of a task.
func NewBlocking(loop *scripted.Loop, s *Storage, task driver.TaskID, id cluster.PluginID) *Blocking {
	return &Blocking{loop: loop, storage: s, task: task, id: id}
}

// Probe returns nil if the plugin answers.
func (b *Blocking) Probe(ctx context.Context) error {
	_, err := scripted.Block(ctx, b.loop, "Probe", func(reply func(struct{}, error)) {
		b.storage.Probe(b.task, b.id, func(err error) { reply(struct{}{}, err) })
	})
	return err
}

// Describe returns the plugin's description of itself.
func (b *Blocking) Describe(context.Context, cluster.PluginType) (*cluster.StoragePlugin, error) {
	return &cluster.StoragePlugin{Provider: "scripted", Version: "1", NodeID: "this", Stages: b.storage.Stages(b.id)}, nil
}

// Do makes a call. It uses the paths of the storage.
func (b *Blocking) Do(ctx context.Context, c storage.Call, _, _ string) error {
	_, err := scripted.Block(ctx, b.loop, c.Verb.String(), func(reply func(struct{}, error)) {
		b.storage.Do(b.task, c, func() bool { return ctx.Err() == nil }, func(r storage.Result) { reply(struct{}{}, r.Err) })
	})
	return err
}
