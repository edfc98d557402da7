package drivertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// health is what one process of a driver has reported about its health. It is safe for concurrent use.
type health struct {
	mu      sync.Mutex
	healthy bool               // whether it was healthy once; guarded by mu
	last    driver.Fingerprint // guarded by mu
}

func (h *health) note(f driver.Fingerprint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.healthy = h.healthy || f.Health == driver.Healthy
	h.last = f
}

func (h *health) wasHealthy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.healthy
}

// String describes the last report.
func (h *health) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last.Health == driver.Undetected && h.last.Description == "" {
		return "it has reported nothing, or undetected"
	}
	return fmt.Sprintf("its last fingerprint is %s: %s", h.last.Health, h.last.Description)
}

// healthy waits until the process of the driver has reported that it is healthy. A client starts no
// task before that, and released drivers need the call. The stream stays open until the end of the
// test, as the one of a client does.
func (c *check) healthy() {
	c.Helper()
	if c.health.wasHealthy() {
		return
	}
	ctx, cancel := context.WithCancel(c.Context())
	healthy, ended, done := make(chan struct{}, 1), make(chan error, 1), make(chan struct{})
	of, reports := c.node.Driver(), c.health
	answer := c.Calls.Begin("Fingerprint until the driver is healthy")
	go func() {
		defer close(done)
		ended <- of.Fingerprints(ctx, func(f driver.Fingerprint) {
			reports.note(f)
			if f.Health != driver.Healthy {
				return
			}
			select {
			case healthy <- struct{}{}:
			default:
			}
		})
	}()
	c.Cleanup(func() {
		cancel()
		<-done
	})
	const expected = "the driver is healthy before the first start"
	select {
	case <-healthy:
		answer("ok")
	case err := <-ended:
		answer(conformance.ErrorText(err))
		if !c.health.wasHealthy() {
			c.Stopf(expected, "the driver does not become healthy: the stream of its fingerprints ended: %v; %s", err, c.health)
		}
	case <-time.After(patience):
		c.Stopf(expected, "the driver does not become healthy within %v: %s", patience, c.health)
	}
}

// launch starts the process of the driver again, and waits until it is healthy.
func (c *check) launch() {
	c.Helper()
	c.node.Launch(c.T)
	c.health = new(health)
	c.healthy()
}

// ready fails if the driver cannot be tested at all: it does not become healthy, or does not take the
// configs of the harness.
func (c *check) ready() {
	c.Helper()
	c.healthy()
	const give = `Give the configs of the driver's tasks: in a file, this is the key "tasks"`
	for kind := RunForever; kind <= Lines; kind++ {
		config, has := c.harness.Config(Behaviour{Kind: kind, After: c.harness.Unit, Code: 1, Signal: "SIGTERM"})
		if !has && kind == RunForever { // almost all rules need it
			c.Stopf("a config", "the harness has no task of kind %q. %s", kind, give)
		}
		if !has {
			continue
		}
		if _, err := c.driver().Encode(config, func(string) (string, bool) { return "", false }); err != nil {
			why := strings.Join(strings.Fields(err.Error()), " ")
			c.Stopf("a config", "the driver does not take the config %s of a task of kind %q: %s. %s", config, kind, why, give)
		}
	}
}
