package scripted

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// Blocking is a [device.Plugin] over a [Plugin] of the same loop. It notes no start as the owner of
// a device, and it does not measure.
type Blocking struct {
	loop   *scripted.Loop
	plugin *Plugin
}

var _ device.Plugin = (*Blocking)(nil)

// NewBlocking returns a plugin whose calls block.
func NewBlocking(loop *scripted.Loop, p *Plugin) *Blocking { return &Blocking{loop: loop, plugin: p} }

// Reserve is [device.Plugin.Reserve].
func (b *Blocking) Reserve(ctx context.Context, ids []string) (device.Reservation, error) {
	return scripted.Block(ctx, b.loop, CallReserve, func(reply func(device.Reservation, error)) { b.plugin.Reserve("", ids, reply) })
}

// Fingerprints is [device.Plugin.Fingerprints].
func (b *Blocking) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	return scripted.Follow(ctx, b.loop, CallFingerprint, report, b.plugin.Fingerprints)
}

// Stats is [device.Plugin.Stats] of a plugin that does not measure.
func (*Blocking) Stats(context.Context, time.Duration, func([]device.GroupStats)) error {
	return callError("Stats", driver.Unsupported, errors.New("the double does not measure"))
}
