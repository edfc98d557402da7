package devicetest_test

import (
	"context"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
)

// changedNode has a plugin with a fault of its own.
type changedNode struct {
	*double
	change func(device.Plugin) device.Plugin
}

func (n changedNode) Plugin() device.Plugin { return n.change(n.double.Plugin()) }

// deaf does not see the end of a stream's context for a minute, and measures nothing.
type deaf struct{ device.Plugin }

func (d deaf) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	err := d.Plugin.Fingerprints(ctx, report)
	<-time.After(time.Minute)
	return err
}

func (deaf) Stats(ctx context.Context, _ time.Duration, _ func([]device.GroupStats)) error {
	<-ctx.Done()
	return ctx.Err()
}

// generous answers for all devices.
type generous struct{ device.Plugin }

func (g generous) Reserve(ctx context.Context, ids []string) (device.Reservation, error) {
	if len(ids) > 0 {
		ids = []string{"lamp-one", "lamp-three", "lamp-two"}
	}
	return g.Plugin.Reserve(ctx, ids)
}
