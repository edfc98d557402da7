package scripted_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// newBlocking returns a driver whose calls block, and its program.
func newBlocking(t *testing.T, o scripted.Options) (*scripted.Loop, *scripted.Program, *scripted.Blocking) {
	loop := scripted.NewLoop()
	var program *scripted.Program
	launched := make(chan *scripted.Driver, 1)
	loop.Do(func() {
		m := scripted.NewMachine(loop)
		m.MakeCgroup(cgroup)
		program = m.Install("double", o)
		program.Launch(func(d *scripted.Driver, err error) {
			must.NoError(t, err)
			launched <- d
		})
	})
	return loop, program, scripted.NewBlocking(loop, <-launched, nil)
}

// A call ends with its context, and takes effect later.
func TestBlocking_deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _, d := newBlocking(t, script(scripted.Script{StartDelay: time.Minute}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := d.Start(ctx, task("web"))
		must.EqOp(t, driver.Deadline, driver.ClassOf(err))
		time.Sleep(time.Minute)
		status, err := d.Inspect(t.Context(), "web")
		must.NoError(t, err)
		must.EqOp(t, driver.TaskRunning, status.State)
	})
}

// Calls in flight end when the process of the driver dies. A stream passes its reports on first.
func TestBlocking_driverDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loop, program, d := newBlocking(t, script(scripted.Script{}))
		_, err := d.Start(t.Context(), task("web"))
		must.NoError(t, err)
		errs := make(chan error, 2)
		reports := 0
		go func() { _, err := d.Wait(t.Context(), "web"); errs <- err }()
		go func() { errs <- d.Fingerprints(t.Context(), func(driver.Fingerprint) { reports++ }) }()
		synctest.Wait()
		loop.Do(func() { program.Living()[0].Kill(scripted.ByFault) })
		must.EqOp(t, driver.Gone, driver.ClassOf(<-errs))
		must.EqOp(t, driver.Gone, driver.ClassOf(<-errs))
		must.EqOp(t, 1, reports)
	})
}

// The end of the context ends a stream.
func TestBlocking_streamEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _, d := newBlocking(t, scripted.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		err := d.Fingerprints(ctx, func(driver.Fingerprint) { cancel() })
		must.True(t, errors.Is(err, context.Canceled))
	})
}
