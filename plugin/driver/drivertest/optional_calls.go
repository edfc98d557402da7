package drivertest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

func optionalCalls(c *check) {
	has := c.driver().Capabilities()
	task, _ := c.start(Behaviour{Kind: RunForever})
	answers := c.wait(task.ID)
	if !has.SendSignals {
		if err := c.driver().Signal(c.context(), task.ID, "SIGHUP"); err == nil {
			c.Failf("an error: the capabilities have no SendSignals", "Signal succeeded")
		}
	}
	execStreams(c, task.ID)
	survivesStats(c, task.ID)
	c.runs(answers, c.harness.Unit/10)
	c.state(task.ID, driver.TaskRunning)
	if has.SendSignals {
		c.ok(c.driver().Signal(c.context(), task.ID, "SIGKILL"), "sending a signal")
		c.result(c.ended(answers, patience).result, 137, 9)
	}
}

func usage(c *check) {
	task, _ := c.start(Behaviour{Kind: RunForever})
	within := 4*c.harness.Unit + 2*c.harness.Slack
	// A timer and no deadline: the driver would get the deadline too, and could end the stream first.
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	defer time.AfterFunc(within, cancel).Stop()
	reported := make(chan struct{}, 1)
	err := c.driver().Stats(ctx, task.ID, c.harness.Unit, func(driver.Usage) {
		select {
		case reported <- struct{}{}:
		default:
		}
		cancel()
	})
	select {
	case <-reported:
	default:
		switch {
		case ctx.Err() != nil:
			c.Failf(fmt.Sprintf("a usage within %v, or an error of a driver that does not measure", within), "Stats reports nothing, and does not end")
		case driver.ClassOf(err) == driver.Gone:
			c.Stopf("an error of a driver that does not measure", "Stats: %v", err)
		}
		c.Logf("the driver does not measure: %v", err)
	}
	c.state(task.ID, driver.TaskRunning)
}

// survivesStats demands that the driver does not crash at a call of Stats. The rule "D20 stats"
// demands an answer.
func survivesStats(c *check, id driver.TaskID) {
	ctx, cancel := context.WithTimeout(c.Context(), c.harness.Unit/4)
	defer cancel()
	if err := c.driver().Stats(ctx, id, c.harness.Unit, func(driver.Usage) { cancel() }); driver.ClassOf(err) == driver.Gone {
		c.Stopf("the driver continues to work", "Stats: %v", err)
	}
}

// execStreams runs commands that are connected to streams, with a terminal and without one.
func execStreams(c *check, id driver.TaskID) {
	has := c.driver().Capabilities().Exec
	for _, tty := range []bool{false, true} {
		var printed bytes.Buffer
		exit, err := c.driver().ExecStreaming(c.context(), id, []string{"/bin/echo", "hello"}, driver.ExecStreams{Stdout: &printed, TTY: tty})
		switch {
		case !has && err == nil:
			c.Failf("an error: the capabilities have no Exec", "ExecStreaming succeeded")
		case has && err != nil:
			c.Failf("the capabilities have Exec, so a command with streams runs", "ExecStreaming failed, terminal %t: %v", tty, err)
		case has && (!exit.Successful() || !strings.Contains(printed.String(), "hello")):
			c.Failf("/bin/echo hello prints hello and ends with code 0", "it printed %q and ended with %s, terminal %t", printed.String(), resultText(exit), tty)
		}
		if !has {
			continue
		}
		ctx, goes := context.WithCancel(c.context())
		goes()
		_, err = c.driver().ExecStreaming(ctx, id, []string{"/bin/sleep", "600"}, driver.ExecStreams{TTY: tty})
		if c.context().Err() != nil {
			c.Failf("a command ends with its caller", "it runs on, terminal %t: %v", tty, err)
		}
	}
}
