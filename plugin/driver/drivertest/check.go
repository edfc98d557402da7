package drivertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// check is one test that runs.
type check struct {
	conformance.Check
	harness Harness
	node    Node
	// health is what the present process of the driver has reported.
	health *health
}

// patience is how long a call may take that should be answered at once. It only ends tests of
// drivers that hang.
const patience = 30 * time.Second

// driver returns the present generation of the driver, whose calls are noted.
func (c *check) driver() driver.Driver { return traced{c.node.Driver(), c.Calls, c.health} }

// context is that of one call.
func (c *check) context() context.Context {
	ctx, cancel := context.WithTimeout(c.Context(), patience+10*c.harness.Unit)
	c.Cleanup(cancel)
	return ctx
}

// config returns the config of a behaviour.
func (c *check) config(b Behaviour) []byte {
	c.Helper()
	config, ok := c.harness.Config(b)
	if !ok {
		c.Stopf("a task of this kind, or an entry in \"skips\"", "the harness has no task of kind %q", b.Kind)
	}
	return config
}

// task returns a task that behaves so. The driver is healthy then.
func (c *check) task(b Behaviour) *driver.TaskConfig {
	c.Helper()
	c.healthy()
	encoded, err := c.driver().Encode(c.config(b), func(string) (string, bool) { return "", false })
	c.ok(err, "encoding the config of a task of kind %q", b.Kind)
	task := c.node.Task(c.T)
	task.Config = encoded
	return task
}

// start starts a task that behaves so, and destroys it at the end.
func (c *check) start(b Behaviour) (*driver.TaskConfig, driver.Handle) {
	c.Helper()
	task := c.task(b)
	handle, err := c.begin(task)
	c.ok(err, "starting a task of kind %q", b.Kind)
	return task, handle
}

// begin calls Start. If that succeeds, it destroys the task at the end.
func (c *check) begin(task *driver.TaskConfig) (driver.Handle, error) {
	handle, err := c.driver().Start(c.context(), task)
	if err != nil {
		return nil, err
	}
	c.Cleanup(func() {
		// The test's context has ended.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), patience)
		defer cancel()
		if err := c.node.Driver().Destroy(ctx, task.ID, true); err != nil && driver.ClassOf(err) != driver.NotFound {
			c.Logf("removing the task at the end of the test: %v", err)
		}
	})
	return handle, nil
}

// ok stops the test after an error.
func (c *check) ok(err error, format string, args ...any) {
	c.Helper()
	if err != nil {
		c.Stopf("no error", format+": %v (class: %s)", append(args, err, driver.ClassOf(err))...)
	}
}

// class demands that an error has one of the classes.
func (c *check) class(err error, call string, classes ...driver.Class) {
	c.Helper()
	if err == nil {
		c.Stopf(fmt.Sprintf("an error of one of the classes %v", classes), "%s: no error", call)
	}
	for _, class := range classes {
		if driver.ClassOf(err) == class {
			return
		}
	}
	c.Stopf(fmt.Sprintf("an error of one of the classes %v", classes), "%s: an error of class %q: %v", call, driver.ClassOf(err), err)
}

// unlessNotFound is ok, where an unknown task is a success.
func (c *check) unlessNotFound(err error, call string) {
	c.Helper()
	if driver.ClassOf(err) != driver.NotFound {
		c.ok(err, "%s", call)
	}
}

// ending is the answer of Wait.
type ending struct {
	result driver.ExitResult
	err    error
	at     time.Time
}

// wait calls Wait in a goroutine, which ends with the test.
func (c *check) wait(id driver.TaskID) <-chan ending {
	answers := make(chan ending, 1)
	ctx, cancel := context.WithCancel(c.Context())
	done := make(chan struct{})
	d := c.driver()
	go func() {
		defer close(done)
		result, err := d.Wait(ctx, id)
		answers <- ending{result, err, time.Now()}
	}()
	c.Cleanup(func() {
		cancel()
		<-done
	})
	return answers
}

// ended waits for the answer of Wait, and demands that it has no error.
func (c *check) ended(answers <-chan ending, within time.Duration) ending {
	c.Helper()
	e := c.answered(answers, within)
	c.ok(e.err, "waiting for the task")
	return e
}

// answered waits for the answer of Wait.
func (c *check) answered(answers <-chan ending, within time.Duration) ending {
	c.Helper()
	select {
	case e := <-answers:
		return e
	case <-time.After(within):
		c.Stopf(fmt.Sprintf("an answer of Wait within %v", within), "no answer")
	}
	return ending{}
}

// runs demands that the task runs for the duration.
func (c *check) runs(answers <-chan ending, during time.Duration) {
	c.Helper()
	select {
	case e := <-answers:
		c.Stopf(fmt.Sprintf("the task runs for at least %v", during), "Wait answered %s of a task that should run", answerText(e.result, e.err))
	case <-time.After(during):
	}
}

// inspect returns the status of a task.
func (c *check) inspect(id driver.TaskID) driver.Status {
	c.Helper()
	status, err := c.driver().Inspect(c.context(), id)
	c.ok(err, "inspecting the task")
	if status.ID != id {
		c.Failf(fmt.Sprintf("the status of the task %q", id), "Inspect answers for the task %q", status.ID)
	}
	return status
}

// state demands a state of a task.
func (c *check) state(id driver.TaskID, expected driver.TaskState) driver.Status {
	c.Helper()
	status := c.inspect(id)
	if status.State != expected {
		c.Stopf(fmt.Sprintf("the state %q", expected), "Inspect says the state %q", status.State)
	}
	return status
}

// result demands a result of a task.
func (c *check) result(got driver.ExitResult, code, signal int) {
	c.Helper()
	if got.Unknown || got.Code != code || got.Signal != signal {
		c.Stopf(fmt.Sprintf("code %d, signal %d", code, signal), "the task ended with %s", resultText(got))
	}
}

// count returns how many processes the task has, or -1 if the node cannot see them.
func (c *check) count(id driver.TaskID) int {
	if list, ok := c.node.Processes(id); ok {
		return len(list)
	}
	return -1
}

// processes returns the processes of a task. The node must see them.
func (c *check) processes(id driver.TaskID) []Process {
	c.Helper()
	list, ok := c.node.Processes(id)
	if !ok {
		c.Stopf("the processes of the task, or an entry in \"skips\"", "the node cannot see processes")
	}
	return list
}

// texts describes processes.
func texts(list []Process) []string {
	var all []string
	for _, p := range list {
		all = append(all, p.Text)
	}
	return all
}

// soon waits until the task has a process that is good, and returns nil. A program that starts the
// task may have to replace itself first. If no process becomes good, soon returns all.
func (c *check) soon(id driver.TaskID, good func(Process) bool) []Process {
	c.Helper()
	tick := time.NewTicker(c.harness.Slack / 20)
	defer tick.Stop()
	end := time.After(c.harness.Slack)
	for {
		list := c.processes(id)
		if slices.ContainsFunc(list, good) {
			return nil
		}
		select {
		case <-tick.C:
		case <-end:
			return list
		}
	}
}

// noneLeft demands that the task has no process, soon.
func (c *check) noneLeft(id driver.TaskID) {
	c.Helper()
	tick := time.NewTicker(c.harness.Slack / 20)
	defer tick.Stop()
	end := time.After(c.harness.Slack)
	for c.count(id) > 0 {
		select {
		case <-tick.C:
		case <-end:
			c.Stopf("no process of the task is left", "the task has left processes: %q", texts(c.processes(id)))
		}
	}
}

// unknown demands that the driver does not have the task.
func (c *check) unknown(id driver.TaskID) {
	c.Helper()
	_, err := c.driver().Inspect(c.context(), id)
	c.class(err, "Inspect of an unknown task", driver.NotFound)
	_, err = c.driver().Wait(c.context(), id)
	c.class(err, "Wait for an unknown task", driver.NotFound)
}
