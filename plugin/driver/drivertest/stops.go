package drivertest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// ignoring starts a task and returns when the task ignores signals.
func (c *check) ignoring() (*driver.TaskConfig, <-chan ending) {
	c.Helper()
	task, _ := c.start(Behaviour{Kind: Ignore})
	answers := c.wait(task.ID)
	// The task needs a moment until it ignores signals.
	c.runs(answers, c.harness.Unit/2)
	return task, answers
}

// stop calls Stop without a signal in a goroutine, which ends with the test.
func (c *check) stop(id driver.TaskID, grace time.Duration) <-chan error {
	stopped, ctx, d := make(chan error, 1), c.context(), c.driver()
	go func() { stopped <- d.Stop(ctx, id, grace, "") }()
	return stopped
}

// exited waits until Inspect returns that the task has exited.
func (c *check) exited(id driver.TaskID, within time.Duration) driver.Status {
	c.Helper()
	tick := time.NewTicker(c.harness.Slack / 20)
	defer tick.Stop()
	end := time.After(within)
	for {
		status := c.inspect(id)
		if status.State == driver.TaskExited {
			return status
		}
		select {
		case <-tick.C:
		case <-end:
			c.Stopf(fmt.Sprintf("the state %q within %v", driver.TaskExited, within), "Inspect says the state %q", status.State)
		}
	}
}

// collected returns the result that a client uses for a task that it has stopped, and the time when
// Inspect returned that the task has exited. The first answer of Wait may have a false result,
// because some drivers answer while the task still runs. So the client calls Wait again after the end
// of the task. If this call returns no result, the client uses that of Inspect.
func (c *check) collected(id driver.TaskID, within time.Duration) ending {
	c.Helper()
	status := c.exited(id, within)
	end := ending{result: driver.ExitResult{Unknown: true}, at: time.Now()}
	if status.Exit != nil {
		end.result = *status.Exit
	}
	select {
	case again := <-c.wait(id):
		if again.err == nil && !again.result.Unknown {
			end.result = again.result
		}
	case <-time.After(c.harness.Slack):
	}
	return end
}

func waitDuringStop(c *check) {
	task, answers := c.ignoring()
	grace := 2 * c.harness.Unit
	stopped := c.stop(task.ID, grace)
	select {
	case e := <-answers:
		if status := c.inspect(task.ID); status.State != driver.TaskExited {
			c.Failf("no answer of Wait while the task runs",
				"Wait answered %s during the stop, and then Inspect said the state %q", answerText(e.result, e.err), status.State)
		}
	case <-time.After(grace):
	}
	<-stopped // D13 judges the answer
}

func graceKept(c *check) {
	task, answers := c.ignoring()
	grace := 2 * c.harness.Unit
	began := time.Now()
	stopped := c.stop(task.ID, grace)
	e := c.ended(answers, grace+patience)
	early := c.inspect(task.ID).State != driver.TaskExited
	c.ok(<-stopped, "stopping the task")
	end := c.collected(task.ID, grace+patience)
	c.result(end.result, 137, 9)
	if !early {
		end.at = e.at
	}
	switch took := end.at.Sub(began); {
	case took < grace-c.harness.Unit/20:
		c.Failf(fmt.Sprintf("the whole grace of %v", grace), "the task was killed after %v, within its grace", conformance.Rounded(took))
	case took > grace+c.harness.Slack:
		c.Failf(fmt.Sprintf("the kill within %v after the grace of %v", c.harness.Slack, grace), "the task was killed after %v, late after its grace", conformance.Rounded(took))
	}
	c.noneLeft(task.ID)
}

func orderlyStop(c *check) {
	task, _ := c.start(Behaviour{Kind: Trap, Signal: "SIGTERM", Code: 6})
	answers := c.wait(task.ID)
	c.runs(answers, c.harness.Unit/2)
	began := time.Now()
	c.ok(c.driver().Stop(c.context(), task.ID, 20*c.harness.Unit, "SIGTERM"), "stopping the task")
	if took := time.Since(began); took > c.harness.Unit+3*c.harness.Slack {
		c.Failf("Stop returns when the task has ended, which was at once", "Stop took %v", conformance.Rounded(took))
	}
	c.ended(answers, c.harness.Slack)
	c.result(c.collected(task.ID, c.harness.Slack).result, 6, 0)
}

func stopEnded(c *check) {
	task, _ := c.start(Behaviour{Kind: Exit, After: c.harness.Unit / 10, Code: 8})
	answers := c.wait(task.ID)
	c.ended(answers, patience)
	c.ok(c.driver().Stop(c.context(), task.ID, c.harness.Unit, ""), "stopping a task that has ended")
	status := c.state(task.ID, driver.TaskExited)
	if status.Exit == nil {
		c.Stopf("the result of the task, after Stop too", "Inspect has lost the result")
	}
	c.result(*status.Exit, 8, 0)
}

func stopSignal(c *check) {
	task, _ := c.start(Behaviour{Kind: Trap, Signal: "SIGHUP", Code: 9})
	answers := c.wait(task.ID)
	c.runs(answers, c.harness.Unit/2)
	c.ok(c.driver().Stop(c.context(), task.ID, 5*c.harness.Unit, "SIGHUP"), "stopping the task")
	c.ended(answers, c.harness.Slack)
	c.result(c.collected(task.ID, c.harness.Slack).result, 9, 0)
}

// noSignal is the name of a signal that no driver supports.
const noSignal = "SIGNODEDRAIN"

func unknownSignal(c *check) {
	calls := map[string]func(driver.TaskID) error{
		"Stop": func(id driver.TaskID) error { return c.driver().Stop(c.context(), id, c.harness.Unit, noSignal) },
	}
	if c.driver().Capabilities().SendSignals {
		calls["Signal"] = func(id driver.TaskID) error { return c.driver().Signal(c.context(), id, noSignal) }
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		task, _ := c.start(Behaviour{Kind: RunForever})
		answers := c.wait(task.ID)
		c.runs(answers, c.harness.Unit/4)
		switch err := calls[name](task.ID); {
		case err != nil:
			c.class(err, name+" with an unknown signal", driver.Fatal, driver.Recoverable)
			c.runs(answers, c.harness.Unit/4)
		case name == "Signal":
			// The driver may have sent another signal, and the kernel drops a signal that the first
			// process of a pid namespace does not handle. So the task may run or end.
			_, err := c.driver().Inspect(c.context(), task.ID)
			c.ok(err, "inspecting the task after an unknown signal")
		default:
			select {
			case <-answers:
				c.exited(task.ID, c.harness.Slack)
			case <-time.After(c.harness.Slack):
				c.Failf("an error, or the end of the task", "%s with the unknown signal %s succeeds, and the task runs on", name, noSignal)
			}
		}
	}
}
