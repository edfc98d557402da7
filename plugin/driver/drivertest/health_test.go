package drivertest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// slowNode is a node whose driver is unhealthy at first. Each process of the driver crashes at a start
// or a recovery before it has reported that it is healthy, as released drivers do.
type slowNode struct {
	*double
	reported *atomic.Bool
}

func (n *slowNode) Launch(t drivertest.T) {
	n.double.Launch(t)
	n.reported = new(atomic.Bool)
}

func (n *slowNode) Driver() driver.Driver { return &slow{n.double.Driver(), n} }

type slow struct {
	driver.Driver
	node *slowNode
}

func (s *slow) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	reported := s.node.reported
	return s.Driver.Fingerprints(ctx, func(f driver.Fingerprint) {
		report(driver.Fingerprint{Health: driver.Unhealthy, Description: "the engine starts"})
		select {
		case <-time.After(2 * time.Second):
			reported.Store(f.Health == driver.Healthy)
			report(f)
		case <-ctx.Done():
		}
	})
}

// crash kills a driver that has not reported its health.
func (s *slow) crash() {
	if !s.node.reported.Load() {
		s.node.Kill(nil)
	}
}

func (s *slow) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	s.crash()
	return s.Driver.Start(ctx, task)
}

func (s *slow) Recover(ctx context.Context, id driver.TaskID, handle driver.Handle) error {
	s.crash()
	return s.Driver.Recover(ctx, id, handle)
}

// The suite starts and recovers tasks only after the process of the driver has reported that it is
// healthy, as a client does. Regression: 22 rules failed for a driver that panics before that.
func TestRun_healthyFirst(t *testing.T) {
	t.Parallel()
	h := doubleHarness(scripted.Options{})
	h.New = func(t drivertest.T) drivertest.Node {
		return &slowNode{newDouble(t, scripted.Options{}), new(atomic.Bool)}
	}
	drivertest.Run(t, h)
}

// ready returns the failure of Ready, or nil.
func ready(t *testing.T, h drivertest.Harness) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { err = conformance.Probe(t.Context(), drivertest.Ready(h)) })
	return err
}

// What prevents all tests is one failure: a driver that never becomes healthy, and a config that the
// driver does not take. Regression: each rule failed for this reason.
func TestReady(t *testing.T) {
	t.Parallel()
	must.NoError(t, ready(t, doubleHarness(scripted.Options{})))
	with := func(fault broken) drivertest.Harness {
		h := doubleHarness(scripted.Options{})
		h.New = func(t drivertest.T) drivertest.Node {
			return &brokenNode{double: newDouble(t, scripted.Options{}), fault: fault}
		}
		return h
	}
	must.EqError(t, ready(t, with(broken{fingerprints: func(_ *broken, ctx context.Context, report func(driver.Fingerprint)) error {
		report(driver.Fingerprint{Health: driver.Unhealthy, Description: "no socket"})
		<-ctx.Done()
		return ctx.Err()
	}})), "the driver does not become healthy within 30s: its last fingerprint is unhealthy: no socket")
	must.EqError(t, ready(t, with(broken{fingerprints: func(*broken, context.Context, func(driver.Fingerprint)) error {
		return errors.New("EOF")
	}})), "the driver does not become healthy: the stream of its fingerprints ended: EOF; it has reported nothing, or undetected")
	must.EqError(t, ready(t, with(broken{encode: func([]byte) ([]byte, error) {
		return nil, errors.New("the key \"image\"\n is required")
	}})), `the driver does not take the config {"script":{}} of a task of kind "run for ever": the key "image" is required. Give the configs of the driver's tasks: in a file, this is the key "tasks"`)
	h := doubleHarness(scripted.Options{})
	h.Config = func(drivertest.Behaviour) ([]byte, bool) { return nil, false }
	must.EqError(t, ready(t, h), `the harness has no task of kind "run for ever". Give the configs of the driver's tasks: in a file, this is the key "tasks"`)
}
