package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
)

// double is a double of a driver's process. The test sets its answers. Other calls panic.
type double struct {
	event driver.Event // or zero
	driver.Driver
	generation uint64
	done       chan struct{}
	streams    chan error // each ends the stream of fingerprints
	once       bool       // only the first stream has a report
	streamed   int        // counts the streams
	inFlight   chan struct{}
	hold       chan struct{} // Inspect and Wait return when it is closed
	killed     bool
	detached   bool
	attributes map[string]string
	destroyed  error
	hostCgroup bool
}

func newDouble() *double {
	return &double{generation: 1, done: make(chan struct{}), streams: make(chan error), inFlight: make(chan struct{}, 100), hold: make(chan struct{})}
}

func (d *double) Capabilities() driver.Capabilities {
	return driver.Capabilities{SendSignals: true, HostCgroup: d.hostCgroup}
}
func (d *double) Done() <-chan struct{} { return d.done }
func (d *double) EndReason() string     { return "panic: no" }
func (d *double) TakenOver() bool       { return false }
func (d *double) Generation() uint64    { return d.generation }
func (d *double) Detach()               { d.detached = true }
func (d *double) Kill(context.Context) error {
	d.killed = true
	close(d.done)
	return nil
}

func (d *double) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	return d.stream(ctx, func() { report(driver.Fingerprint{Health: driver.Healthy, Attributes: d.attributes}) })
}

// stream plays a stream of fingerprints.
func (d *double) stream(ctx context.Context, report func()) error {
	if d.streamed++; d.streamed == 1 || !d.once {
		report()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-d.streams:
		return err
	}
}

func (d *double) Events(ctx context.Context, report func(driver.Event)) error {
	if d.event.Message != "" {
		report(d.event)
	}
	<-ctx.Done()
	return ctx.Err()
}

func (d *double) wait(ctx context.Context) error {
	d.inFlight <- struct{}{}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.hold:
		return nil
	}
}

func (d *double) Inspect(ctx context.Context, _ driver.TaskID) (driver.Status, error) {
	return driver.Status{State: driver.TaskRunning}, d.wait(ctx)
}

func (d *double) Recover(ctx context.Context, _ driver.TaskID, _ driver.Handle) error {
	return d.wait(ctx)
}

func (d *double) Wait(ctx context.Context, _ driver.TaskID) (driver.ExitResult, error) {
	return driver.ExitResult{Code: 7}, d.wait(ctx)
}

func (d *double) Destroy(context.Context, driver.TaskID, bool) error { return d.destroyed }

// programOf is a program whose launches return the processes one after the other.
type programOf[I instance] struct{ next []I }

func (p *programOf[I]) launch(context.Context) (i I, err error) {
	if len(p.next) == 0 {
		return i, errors.New("no such program")
	}
	i, p.next = p.next[0], p.next[1:]
	return i, nil
}

// posted are the events of plugins.
type posted struct {
	mu  sync.Mutex
	all []string
}

func (p *posted) add(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, text)
}

func (p *posted) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

func (p *posted) PluginDown(plugin client.Plugin, generation client.Generation, why string) {
	p.add(fmt.Sprintf("%s %d is down: %s", plugin, generation, why))
}

func (p *posted) Devices(plugin string, generation client.Generation, r client.DeviceReport) {
	words := []string{fmt.Sprintf("%s %d has", plugin, generation)}
	for _, g := range r.Groups {
		for _, d := range g.Devices {
			words = append(words, g.Kind.String()+"/"+d.ID)
		}
	}
	if r.Ignored != "" {
		words = append(words, "and ignores: "+r.Ignored)
	}
	if r.Err != nil {
		words = append(words, r.Err.Error())
	}
	p.add(strings.Join(words, " "))
}

func (p *posted) Fingerprint(name string, generation client.Generation, f driver.Fingerprint) {
	p.add(fmt.Sprintf("%s %d is %s: %s", name, generation, f.Health, f.Description))
}

func (p *posted) DriverEvent(name string, generation client.Generation, e driver.Event) {
	p.add(fmt.Sprintf("%s %d reports of %s: %s", name, generation, e.Task, e.Message))
}

func driversOf(p *posted, calls int, generations ...*double) *drivers {
	t := newTrust(new(scripted), new(home), false, quiet())
	one := new(programOf[driverInstance])
	for i, d := range generations {
		d.generation = uint64(i) + 1
		one.next = append(one.next, d)
	}
	return newDrivers(map[string]program[driverInstance]{"d": one}, calls, p, t, quiet())
}

// launched launches the next process of a plugin, and returns the answer.
func launched(ctx context.Context, plugins interface {
	launch(context.Context, string, func(client.Launched))
}, name string) (answer client.Launched) {
	plugins.launch(ctx, name, func(l client.Launched) { answer = l })
	return answer
}

// The core drops the events of a process before the answer to its launch. A driver that was healthy
// or dead before the answer was lost: it reported nothing more, and no task was placed on it again.
func TestLaunch_answersBeforeEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p posted
		one, toy := newDouble(), &deviceDouble{double: newDouble()}
		close(one.done)
		close(toy.done)
		slow := func(client.Launched) {
			synctest.Wait()
			must.SliceEmpty(t, p.take())
		}
		driversOf(&p, 8, one).launch(t.Context(), "d", slow)
		synctest.Wait()
		must.SliceContains(t, p.take(), "driver d 1 is down: panic: no")
		devicesOfDouble(&p, toy).launch(t.Context(), "toys", slow)
		synctest.Wait()
		must.SliceContains(t, p.take(), "device plugin toys 1 is down: panic: no")
	})
}

func TestDrivers_events(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p posted
		one := newDouble()
		one.event = driver.Event{Task: "a/web/1", Message: "pulling the image"}
		ctx, cancel := context.WithCancel(t.Context())
		must.NoError(t, launched(ctx, driversOf(&p, 8, one), "d").Err)
		synctest.Wait()
		must.SliceContains(t, p.take(), "d 1 reports of a/web/1: pulling the image")
		cancel()
	})
}

// Each process has its own calls. A call for a process that has ended returns at once.
func TestDrivers_generations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p posted
		first, second := newDouble(), newDouble()
		d := driversOf(&p, 8, first, second)
		ctx, cancel := context.WithCancel(t.Context())
		answer := launched(ctx, d, "d")
		must.NoError(t, answer.Err)
		must.Eq(t, 1, answer.Generation)
		must.True(t, answer.Capabilities.SendSignals)
		synctest.Wait()
		must.Eq(t, []string{"d 1 is healthy: "}, p.take())

		close(first.done)
		synctest.Wait()
		must.Eq(t, []string{"driver d 1 is down: panic: no"}, p.take())
		_, err := d.instance("WaitTask", "d", 1)
		must.Eq(t, driver.Gone, driver.ClassOf(err))

		must.Eq(t, 2, launched(ctx, d, "d").Generation)
		i, err := d.instance("WaitTask", "d", 2)
		must.NoError(t, err)
		must.True(t, i == driverInstance(second))
		_, err = d.instance("WaitTask", "d", 1)
		must.Eq(t, driver.Gone, driver.ClassOf(err))
		synctest.Wait()
		d.abandon(ctx, "d", 1)
		must.False(t, second.killed, must.Sprint("an old order must not kill the new generation"))
		d.abandon(ctx, "d", 2)
		must.True(t, second.killed)
		synctest.Wait()
		must.Eq(t, []string{"d 2 is healthy: ", "driver d 2 is down: panic: no"}, p.take())

		must.ErrorContains(t, launched(ctx, d, "d").Err, "no such program")
		must.ErrorContains(t, launched(ctx, d, "x").Err, `no driver x`)
		cancel()
	})
}

// The process continues to run when the client stops.
func TestDrivers_detach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p posted
		one := newDouble()
		d := driversOf(&p, 8, one)
		must.NoError(t, launched(t.Context(), d, "d").Err)
		synctest.Wait()
		p.take()
		d.detach()
		must.True(t, one.detached)
		must.False(t, one.killed)
		must.SliceEmpty(t, p.take())
	})
}

// When a stream of fingerprints ends, the driver is unhealthy until the stream is open again.
func TestDrivers_fingerprintsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p posted
		one := newDouble()
		one.attributes = map[string]string{"driver.d.rotates_logs": "1"}
		d := driversOf(&p, 8, one)
		must.NoError(t, launched(t.Context(), d, "d").Err)
		synctest.Wait()
		must.True(t, d.rotatesLogs("d"))
		p.take()
		began := time.Now()
		one.streams <- errors.New("broken")
		synctest.Wait()
		must.Eq(t, []string{"d 1 is unhealthy: the driver does not report its health: broken"}, p.take())
		time.Sleep(minReopen)
		synctest.Wait()
		must.Eq(t, []string{"d 1 is healthy: "}, p.take())
		must.Eq(t, minReopen, time.Since(began))
		d.detach()
	})
}

// The number of short calls of a driver is limited. A call that waits for a task does not count.
func TestShell_boundedCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p posted
		one := newDouble()
		d := driversOf(&p, 2, one)
		s := &shell{life: t.Context(), drivers: d, guards: &guards{}, logger: quiet()}
		must.NoError(t, launched(t.Context(), d, "d").Err)
		ref := client.TaskRef{Driver: "d", Generation: 1}
		var mu sync.Mutex
		var answers []string
		answer := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, text)
		}
		for range 3 {
			s.Inspect(ref, func(driver.Status, error) { answer("inspect") })
			s.Wait(ref, func(r driver.ExitResult, err error) { answer(fmt.Sprint(r.Code, err)) })
		}
		synctest.Wait()
		must.Eq(t, 5, len(one.inFlight), must.Sprint("two short calls and all long ones"))
		close(one.hold)
		s.running.Wait()
		must.Eq(t, 6, len(one.inFlight))
		slices.Sort(answers)
		must.Eq(t, []string{"7 <nil>", "7 <nil>", "7 <nil>", "inspect", "inspect", "inspect"}, answers)

		ref.Generation = 9
		s.Inspect(ref, func(_ driver.Status, err error) { answer(driver.ClassOf(err).String()) })
		s.running.Wait()
		must.Eq(t, "driver gone", answers[6])
		d.detach()
	})
}

// H9: a driver that hangs at a short call blocks neither the core nor the calls for other tasks.
func TestShell_hangingCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p posted
		one := newDouble()
		d := driversOf(&p, 1, one)
		s := &shell{life: t.Context(), drivers: d, guards: &guards{}, tasks: &tasks{dirs: new(allocdir.Folders), logs: newLogs(t.Context(), keeper.Command{}, quiet())}, logger: quiet()}
		must.NoError(t, launched(t.Context(), d, "d").Err)
		ref := client.TaskRef{Driver: "d", Generation: 1}
		began := time.Now()
		answers := make(chan error, 2)
		s.Recover(ref, &cluster.Allocation{}, nil, func(err error) { answers <- err })
		s.Inspect(ref, func(_ driver.Status, err error) { answers <- err })
		for range 2 {
			select {
			case err := <-answers:
				must.ErrorIs(t, err, context.DeadlineExceeded)
			case <-time.After(3 * callTimeout):
				t.Error("the call has no limit")
				close(one.hold)
			}
		}
		must.EqOp(t, 2*callTimeout, time.Since(began), must.Sprint("one after the other"))
		d.detach()
	})
}

// H6, H9: the driver does not answer a call to destroy a task. The client kills the processes and
// requests it again.
func TestTasks_cleanWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.begin()
	tasks := w.node.shell.tasks
	ref := client.TaskRef{Alloc: cluster.AllocID("unanswered-" + rand.Text()), Task: "t", ID: "none/t/1"}
	group, _ := w.sleeper(ref.Alloc, ref.Task)
	one := newDouble()
	one.hostCgroup, one.destroyed = true, &driver.Error{Class: driver.Deadline, Call: "DestroyTask", Err: errors.New("no answer")}
	left, err := tasks.clean(t.Context(), one, ref)
	must.SliceEmpty(t, left)
	must.Eq(t, driver.Deadline, driver.ClassOf(err))
	populated, err := group.Populated()
	must.NoError(t, err)
	must.False(t, populated)
	one.destroyed = nil
	left, err = tasks.clean(t.Context(), one, ref)
	must.NoError(t, err)
	must.SliceEmpty(t, left)
	_, err = os.Stat(group.Path())
	must.ErrorIs(t, err, os.ErrNotExist)
	w.stop()
}

// A process has left the control group of its task, and the driver reports that the task runs. Bug: the
// client killed the empty group, and reported the end of the allocation.
func TestTasks_cleanOfATaskThatRunsElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.begin()
	ref := client.TaskRef{Alloc: cluster.AllocID("elsewhere-" + rand.Text()), Task: "t", ID: "none/t/1"}
	one := newDouble()
	close(one.hold)
	one.hostCgroup, one.destroyed = true, errors.New("task has not ended: [pid 7]")
	_, err := w.node.shell.tasks.clean(t.Context(), one, ref)
	must.ErrorContains(t, err, "pid 7")
	w.stop()
}

// The client has no record of a start of a task, and a shim of raw_exec has. Bug: the client ended such
// tasks only by control groups, and reported the end on a machine without them.
func TestTasks_cleanWithoutARecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.begin()
	tasks := w.node.shell.tasks
	alloc := "unrecorded-" + rand.Text()
	folders := map[string]shim.Folder{}
	for _, id := range []string{alloc + "/t/1", alloc + "/t2/1", "x" + alloc + "/t/1"} {
		folders[id] = shim.FolderOf(tasks.shims, id)
		must.NoError(t, folders[id].Create(&shim.Spec{TaskID: id}))
	}
	_, err := tasks.clean(t.Context(), nil, client.TaskRef{Alloc: cluster.AllocID(alloc), Task: "t"})
	must.NoError(t, err)
	for id, folder := range folders {
		exists, err := folder.Exists()
		must.NoError(t, err)
		must.EqOp(t, id != alloc+"/t/1", exists, must.Sprint(id))
	}
	w.stop()
}

// On a client that runs as root, raw_exec waits for the servers' answer, and is refused while they
// accept jobs without a token.
func TestTrust(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{refuse: errors.New("no answer")}
		h, err := openHome(t.TempDir(), t.TempDir(), false, slog.New(slog.DiscardHandler))
		must.NoError(t, err)
		defer func() { must.NoError(t, h.close()) }()
		root := newTrust(s, h, true, quiet())
		var health []string
		root.filter(rawExec, driver.Fingerprint{Health: driver.Healthy}, func(f driver.Fingerprint) { health = append(health, f.Health.String()) })
		must.ErrorIs(t, root.check(t.Context(), rawExec), errUnknownServers)
		must.NoError(t, root.check(t.Context(), "mock"))
		must.NoError(t, newTrust(s, h, false, quiet()).check(t.Context(), rawExec), must.Sprint("not as root"))

		s.set(func() { s.refuse, s.anonymous = nil, true })
		must.ErrorIs(t, root.check(t.Context(), rawExec), errAnonymous)
		s.set(func() { s.anonymous = false })
		must.False(t, h.guarded())
		must.NoError(t, root.check(t.Context(), rawExec))
		must.Eq(t, []string{"unhealthy", "unhealthy", "healthy"}, health)
		must.True(t, h.guarded())

		// The next client has the answer while the servers are away.
		s.set(func() { s.refuse = errors.New("no answer") })
		must.NoError(t, newTrust(s, h, true, quiet()).check(t.Context(), rawExec))
	})
}
