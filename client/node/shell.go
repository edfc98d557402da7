package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/disks"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

const (
	// diskWrites is the largest number of effects in flight that write to the disk.
	diskWrites = 16
	// callTimeout is the timeout of a driver call that does not wait for its task.
	callTimeout = 30 * time.Second
)

// shell executes the effects of the core of one node. Each effect has its own goroutine.
type shell struct {
	// life ends when the effects must end.
	life    context.Context
	running sync.WaitGroup
	drivers *drivers
	devices *devices
	tasks   *tasks
	storage *storagePlugins
	data    *disks.Disks
	roster  *roster
	records record.Table[*client.Record]
	store   record.Store
	// damaged are the damaged records by allocation. It is read only.
	damaged map[cluster.AllocID]record.Damaged
	contact *contact
	guards  *guards
	checks  checkRuns
	logger  *slog.Logger
	// disk bounds the effects that write to the disk.
	disk *sharedTurns
}

var _ client.Shell = (*shell)(nil)

// write runs an effect of a job that writes to the disk.
func (s *shell) write(job cluster.JobKey, effect func() error, reply func(error)) {
	runError(s, func() error {
		if err := s.disk.take(s.life, job); err != nil {
			return err
		}
		defer s.disk.leave()
		return effect()
	}, reply)
}

// Launch implements [client.Shell].
func (s *shell) Launch(p client.Plugin, reply func(client.Launched)) {
	s.running.Go(func() {
		if p.Type == client.DevicePlugin {
			s.devices.launch(s.life, p.Name, reply)
			return
		}
		s.drivers.launch(s.life, p.Name, reply)
	})
}

// Abandon implements [client.Shell].
func (s *shell) Abandon(p client.Plugin, generation client.Generation) {
	s.running.Go(func() {
		if p.Type == client.DevicePlugin {
			s.devices.abandon(s.life, p.Name, generation)
			return
		}
		s.drivers.abandon(s.life, p.Name, generation)
	})
}

// Save implements [client.Shell]. An allocation that has ended no longer needs a guard.
func (s *shell) Save(r *client.Record, reply func(error)) {
	s.roster.put(r)
	s.write(r.Alloc.JobKey(), func() error {
		err := s.records.Put(string(r.Alloc.ID), r)
		if r.Ended {
			err = errors.Join(err, s.guards.remove(s.life, r.Alloc))
		}
		return err
	}, reply)
}

// Discard implements [client.Shell]. It removes the record last, because the record identifies the
// folders.
func (s *shell) Discard(alloc cluster.AllocID, reply func(error)) {
	s.write(s.roster.remove(alloc), func() error {
		if err := s.tasks.remove(s.life, alloc); err != nil {
			return err
		}
		if d, is := s.damaged[alloc]; is {
			if err := s.store.Discard(d); err != nil {
				return err
			}
		}
		return s.records.Delete(string(alloc))
	}, reply)
}

// Build implements [client.Shell]. It also guards the allocation.
func (s *shell) Build(alloc *cluster.Allocation, reply func(error)) {
	s.write(alloc.JobKey(), func() error {
		if err := s.guards.put(s.life, alloc); err != nil {
			return err
		}
		return s.tasks.build(alloc)
	}, reply)
}

// CopyData implements [client.Shell]. It does not count as a write to the disk, because it takes as long as the copy.
func (s *shell) CopyData(alloc *cluster.Allocation, progress func(client.DataProgress), reply func(client.DataAnswer)) {
	s.running.Go(func() { reply(s.data.Copy(s.life, alloc, progress)) })
}

// DropData implements [client.Shell].
func (s *shell) DropData(alloc cluster.AllocID, reply func(error)) {
	runError(s, func() error { return s.data.Drop(s.life, alloc) }, reply)
}

// PlaceData implements [client.Shell].
func (s *shell) PlaceData(alloc *cluster.Allocation, from cluster.AllocID, reply func(error)) {
	s.write(alloc.JobKey(), func() error { return s.data.Place(s.life, alloc, from) }, reply)
}

// run runs an effect in a goroutine of its own.
func run[T any](s *shell, effect func() (T, error), reply func(T, error)) {
	s.running.Go(func() { reply(effect()) })
}

// runError is like run, for an effect whose answer is only an error.
func runError(s *shell, effect func() error, reply func(error)) {
	s.running.Go(func() { reply(effect()) })
}

// short makes a call to a driver that does not wait for its task.
func short[T any](s *shell, call string, task client.TaskRef, f func(context.Context, driver.Driver) (T, error)) (answer T, err error) {
	d, leave, err := s.drivers.enter(s.life, call, task.Driver, task.Generation)
	if err != nil {
		return answer, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(s.life, callTimeout)
	defer cancel()
	return f(ctx, d)
}

// Reserve implements [client.Shell].
func (s *shell) Reserve(_ client.TaskRef, devices client.DevicesRef, reply func(device.Reservation, error)) {
	run(s, func() (r device.Reservation, err error) {
		p, leave, err := s.devices.enter(s.life, "Reserve", devices.Plugin, devices.Generation)
		if err != nil {
			return r, err
		}
		defer leave()
		ctx, cancel := context.WithTimeout(s.life, callTimeout)
		defer cancel()
		return p.Reserve(ctx, devices.IDs)
	}, reply)
}

// Start implements [client.Shell]. It does not count as a short call: the core bounds the starts, and a
// start takes as long as the download of an image.
func (s *shell) Start(task client.TaskRef, alloc *cluster.Allocation, devices []device.Part, reply func(driver.Handle, error)) {
	run(s, func() (driver.Handle, error) {
		d, err := s.drivers.instance("StartTask", task.Driver, task.Generation)
		if err != nil {
			return nil, err
		}
		if err := s.drivers.trust.check(s.life, task.Driver); err != nil {
			return nil, &driver.Error{Class: driver.Recoverable, Call: "StartTask", Err: err}
		}
		handle, err := s.tasks.start(s.life, d, task, alloc, devices)
		if err == nil {
			s.storage.begin(s.life, &s.running, task, alloc, d.Capabilities().FSIsolation)
		}
		return handle, err
	}, reply)
}

// Recover implements [client.Shell].
func (s *shell) Recover(task client.TaskRef, alloc *cluster.Allocation, handle driver.Handle, reply func(error)) {
	runError(s, func() error {
		_, err := short(s, "RecoverTask", task, func(ctx context.Context, d driver.Driver) (none struct{}, err error) {
			if err = s.tasks.recover(ctx, d, task, alloc, handle); err == nil {
				s.storage.begin(s.life, &s.running, task, alloc, d.Capabilities().FSIsolation)
			}
			return none, err
		})
		return err
	}, reply)
}

// Inspect implements [client.Shell].
func (s *shell) Inspect(task client.TaskRef, reply func(driver.Status, error)) {
	run(s, func() (driver.Status, error) {
		return short(s, "InspectTask", task, func(ctx context.Context, d driver.Driver) (driver.Status, error) { return d.Inspect(ctx, task.ID) })
	}, reply)
}

// Wait implements [client.Shell].
func (s *shell) Wait(task client.TaskRef, reply func(driver.ExitResult, error)) {
	run(s, func() (driver.ExitResult, error) {
		i, err := s.drivers.instance("WaitTask", task.Driver, task.Generation)
		if err != nil {
			return driver.ExitResult{}, err
		}
		exit, err := i.Wait(s.life, task.ID)
		if err == nil {
			s.guards.ended(task.Alloc)
		}
		return exit, err
	}, reply)
}

// Stop implements [client.Shell]. It does not count as a short call, because it takes as long as
// the task.
func (s *shell) Stop(task client.TaskRef, grace time.Duration, signal string, reply func(error)) {
	runError(s, func() error {
		i, err := s.drivers.instance("StopTask", task.Driver, task.Generation)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(s.life, grace+client.StopSlack)
		defer cancel()
		return i.Stop(ctx, task.ID, grace, signal)
	}, reply)
}

// Kill implements [client.Shell].
func (s *shell) Kill(task client.TaskRef, reply func([]client.Process, error)) {
	run(s, func() ([]client.Process, error) {
		d, err := s.owner("DestroyTask", task)
		if err != nil {
			return nil, err
		}
		return s.tasks.kill(s.life, d, task)
	}, reply)
}

// AwaitEmpty implements [client.Shell].
func (s *shell) AwaitEmpty(task client.TaskRef, reply func(error)) {
	runError(s, func() error { return s.tasks.awaitEmpty(s.life, task) }, reply)
}

// Clean implements [client.Shell].
func (s *shell) Clean(task client.TaskRef, reply func([]client.Process, error)) {
	run(s, func() ([]client.Process, error) {
		d, err := s.owner("DestroyTask", task)
		if err != nil {
			return nil, err
		}
		left, err := s.tasks.clean(s.life, d, task)
		if err == nil && len(left) == 0 {
			s.storage.end(task)
		}
		return left, err
	}, reply)
}

// owner returns the driver for a call that also works without a driver, or nil.
func (s *shell) owner(call string, task client.TaskRef) (driver.Driver, error) {
	if task.Generation == 0 {
		return nil, nil
	}
	i, err := s.drivers.instance(call, task.Driver, task.Generation)
	if err != nil {
		return nil, err
	}
	return i, nil
}

// Report implements [client.Shell].
func (s *shell) Report(reports []cluster.AllocReport, reply func(taken bool)) {
	s.running.Go(func() { reply(s.contact.report(s.life, reports)) })
}

// Publish implements [client.Shell].
func (s *shell) Publish(facts client.NodeFacts) { s.contact.publish(facts) }
