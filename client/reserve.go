package client

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// reserve calls Reserve of the device plugins, one request after the other, and reports whether all
// requests are answered. The record of the start must be on disk before.
func (s *taskStart) reserve() (done bool) {
	assigned := devicesOf(s.t)
	if requests := len(s.t.task.Devices); len(assigned) < requests {
		s.unreserved(fmt.Errorf("the task has %d device requests, and the servers have assigned devices to %d", requests, len(assigned)))
		return false
	}
	if len(s.parts) == len(assigned) {
		return true
	}
	if s.call == callReserve {
		return false
	}
	c, d := s.t.core(), assigned[len(s.parts)]
	if reason := c.devices.waitReason(d.Kind); reason != "" {
		s.t.waits.set(cluster.WaitDevice, 0, reason)
		return false
	}
	p, err := c.devices.check(d.Kind, d.IDs)
	if err != nil {
		s.unreserved(err)
		return false
	}
	s.call = callReserve
	ref := DevicesRef{Plugin: p.plugin.Name, Generation: p.generation, Kind: d.Kind, IDs: d.IDs}
	c.options.Shell.Reserve(s.t.ref(), ref, replyPair(s, func(r device.Reservation, err error) {
		s.call = callNone
		if err == nil {
			s.t.waits.end()
			s.parts = append(s.parts, device.Part{For: d.Kind.String(), Reservation: r})
			return
		}
		if driver.ClassOf(err) == driver.Deadline {
			c.options.Logger.Warn("a device plugin does not answer; the client restarts it", "plugin", ref.Plugin, "alloc", s.t.alloc.id(), "task", s.t.task.Name)
			c.options.Shell.Abandon(p.plugin, ref.Generation)
		}
		s.unreserved(err)
	}))
	return false
}

// unreserved ends a start that cannot use its devices. A later start may get them.
func (s *taskStart) unreserved(err error) {
	s.t.event("Setup Failure", "failed to reserve devices: "+err.Error())
	s.t.over(EndNotStarted, nil)
}
