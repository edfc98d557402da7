package client

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// cleanWithoutDriver is how long the core waits for a driver before it removes the remains of a
// start without the driver.
const cleanWithoutDriver = 30 * time.Second

// clean removes the remains of the start.
func (s *taskStart) clean() {
	if s.call == callClean || !s.t.tried() || !s.t.core().reached(s.retryAt) || s.kills.ofOrphan() {
		return
	}
	ref := s.t.ref()
	if s.t.unrecorded() {
		ref.Generation = 0 // without the id of a start a driver can do nothing
	}
	if !s.t.rec.HostCgroup && ref.ID != "" && s.t.core().drivers.state(s.t.task.Driver) == nil {
		s.t.waits.set(cluster.WaitDriver, 0, "the driver "+s.t.task.Driver+" is not installed, and only it can remove the task")
		return
	}
	for _, d := range s.drivers() {
		if d.generation == 0 && s.waitsFor(d) {
			s.kills.withoutDriver()
			s.t.waits.set(cluster.WaitDriver, 0, "the driver "+d.name+" is not running")
			return
		}
		if d.generation != 0 && d.reattached && s.mayStartLate() {
			s.t.core().options.Logger.Warn("a driver may still start a task for an earlier client; the client restarts the driver", "driver", d.name, "alloc", s.t.alloc.id(), "task", s.t.task.Name)
			s.t.core().options.Shell.Abandon(d.plugin, d.generation)
			s.retry()
			return
		}
	}
	s.call = callClean
	s.t.core().options.Shell.Clean(ref, replyPair(s, func(left []Process, err error) { s.cleaned(ref.Generation, left, err) }))
}

// drivers returns the drivers that may have the start. The driver of an orphan is unknown, so any
// driver may have it.
func (s *taskStart) drivers() []*driverState {
	if s.t.unrecorded() {
		return nil
	}
	all := s.t.core().drivers
	if s.t.alloc.orphan() {
		return all.all
	}
	if d := all.state(s.t.task.Driver); d != nil {
		return []*driverState{d}
	}
	return nil
}

// waitsFor reports whether the removal of the start's remains must wait for a driver that is down.
func (s *taskStart) waitsFor(d *driverState) bool {
	if s.deadline == 0 {
		s.deadline = s.t.core().now.Boot + cleanWithoutDriver
	}
	return !s.t.core().reached(s.deadline) || !s.t.rec.HostCgroup && s.t.task.Driver == d.name
}

// mayStartLate reports whether the driver may still work on the call to start the task: an earlier
// client made the call and did not get the answer.
func (s *taskStart) mayStartLate() bool { return s.t.rec.End == EndLost && len(s.t.rec.Handle) == 0 }

func (s *taskStart) cleaned(generation Generation, left []Process, err error) {
	s.call = callNone
	switch class := driver.ClassOf(err); {
	case err != nil && class == driver.Gone:
	case err != nil:
		s.retry()
		s.t.waits.set(cluster.WaitDriver, 0, "the remains of the task could not be removed, and the client retries: "+err.Error())
		s.abandonSilent(generation, class, s.failures)
	case len(left) > 0:
		s.call = callClean
		s.t.waits.set(cluster.WaitProcess, 0, describe(left))
		s.kills.unkillable = true
		s.t.core().options.Shell.AwaitEmpty(s.t.ref(), answer(s, func(err error) {
			s.call, s.kills.unkillable = callNone, err != nil
			if err != nil {
				s.retry()
			}
		}))
	default:
		s.t.waits.end()
		s.t.finished()
	}
}
