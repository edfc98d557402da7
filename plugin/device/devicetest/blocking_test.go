package devicetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// blockingPlugin is a [device.Plugin] over a double of the same loop. It notes no start as the owner of
// a device, and it does not measure.
type blockingPlugin struct {
	loop   *drivers.Loop
	plugin *scripted.Plugin
}

var _ device.Plugin = (*blockingPlugin)(nil)

// Reserve is [device.Plugin.Reserve].
func (b *blockingPlugin) Reserve(ctx context.Context, ids []string) (device.Reservation, error) {
	return drivers.Block(ctx, b.loop, scripted.CallReserve, func(reply func(device.Reservation, error)) { b.plugin.Reserve("", ids, reply) })
}

// Fingerprints is [device.Plugin.Fingerprints].
func (b *blockingPlugin) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	return drivers.Follow(ctx, b.loop, scripted.CallFingerprint, report, b.plugin.Fingerprints)
}

// Stats is [device.Plugin.Stats] of a plugin that does not measure.
func (*blockingPlugin) Stats(context.Context, time.Duration, func([]device.GroupStats)) error {
	return &driver.Error{Class: driver.Unsupported, Call: "Stats", Err: errors.New("the double does not measure")}
}
