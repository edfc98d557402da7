package drivertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

func firstFingerprint(c *check) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	var first time.Time
	err := c.driver().Fingerprints(ctx, func(f driver.Fingerprint) {
		if first.IsZero() {
			first = time.Now()
			c.Logf("%s: %s", f.Health, f.Description)
		}
		cancel()
	})
	if first.IsZero() {
		c.Stopf("a fingerprint", "the stream ended without a fingerprint: %v", err)
	}
	if late := first.Sub(began); late > c.harness.Slack {
		c.Failf(fmt.Sprintf("the first fingerprint within %v", c.harness.Slack), "the first fingerprint came after %v", conformance.Rounded(late))
	}
}

func cancelFingerprints(c *check) {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	reported, returned := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		returned <- c.driver().Fingerprints(ctx, func(driver.Fingerprint) {
			select {
			case reported <- struct{}{}:
			default:
			}
		})
	}()
	select {
	case <-reported:
	case err := <-returned:
		c.Stopf("the stream goes on until its context ends", "the stream ended by itself: %v", err)
	case <-time.After(patience):
		c.Stopf(fmt.Sprintf("a fingerprint within %v", patience), "no fingerprint")
	}
	cancel()
	select {
	case err := <-returned:
		if err == nil {
			c.Failf("the error of the context", "the stream ended without an error")
		}
	case <-time.After(c.harness.Slack):
		c.Stopf(fmt.Sprintf("the stream ends within %v of its context", c.harness.Slack), "the stream did not end")
	}
	c.start(Behaviour{Kind: RunForever})
}

func schema(c *check) {
	config := c.config(Behaviour{Kind: RunForever})
	encode := func(change func(map[string]json.RawMessage)) error {
		c.Helper()
		keys := map[string]json.RawMessage{}
		c.ok(json.Unmarshal(config, &keys), "reading the config of the harness")
		change(keys)
		changed, err := json.Marshal(keys)
		c.ok(err, "writing the config")
		_, err = c.driver().Encode(changed, func(string) (string, bool) { return "", false })
		return err
	}
	refuses := func(err error, mistake, key string) {
		c.Helper()
		switch {
		case err == nil:
			c.Failf("an error that names the key "+key, "the schema takes a config with %s", mistake)
		case !strings.Contains(err.Error(), key):
			c.Failf("an error that names the key "+key, "the error about %s is: %v", mistake, err)
		}
	}
	c.ok(encode(func(map[string]json.RawMessage) {}), "encoding a good config")
	const unknown = "no_such_key"
	refuses(encode(func(keys map[string]json.RawMessage) { keys[unknown] = json.RawMessage("1") }), "an unknown key", unknown)
	if key := c.harness.Required; key != "" {
		refuses(encode(func(keys map[string]json.RawMessage) { delete(keys, key) }), "a missing key", key)
	}
}

func started(c *check) {
	began := time.Now()
	task, handle := c.start(Behaviour{Kind: RunForever})
	if len(handle) == 0 {
		c.Failf("a handle that Recover can use", "the handle is empty")
	}
	c.runs(c.wait(task.ID), c.harness.Unit/4)
	status := c.state(task.ID, driver.TaskRunning)
	// Clocks of files and processes may be some ticks behind.
	if at := status.StartedAt; !at.IsZero() && (at.Before(began.Add(-c.harness.Slack)) || at.After(time.Now().Add(c.harness.Slack))) {
		c.Failf(fmt.Sprintf("a start of the task after %v", began), "Inspect says that the task started at %v", at)
	}
	if c.count(task.ID) == 0 {
		c.Failf("a process of the task", "the task has no process")
	}
}

func output(c *check) {
	task, _ := c.start(Behaviour{Kind: Lines})
	c.result(c.ended(c.wait(task.ID), patience).result, 0, 0)
	tick := time.NewTicker(c.harness.Slack / 20)
	defer tick.Stop()
	end := time.After(c.harness.Slack)
	for {
		got, err := c.node.Stdout(task)
		c.ok(err, "reading the task's output")
		if got == Output {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			c.Stopf(fmt.Sprintf("the output %q", Output), "the output is %q", got)
		}
	}
}

// otherUsers are a user that no machine has, and one that most machines have.
func otherUsers() []string { return []string{"nodedrain-no-such-user", "daemon"} }

func userOfTask(c *check) {
	for _, user := range otherUsers() {
		task := c.task(Behaviour{Kind: RunForever})
		task.User = user
		if _, err := c.begin(task); err != nil {
			c.class(err, "starting a task of the user "+user, driver.Fatal, driver.Recoverable)
			continue
		}
		if bad := c.soon(task.ID, func(p Process) bool { return !p.AsDriver }); len(bad) > 0 {
			c.Failf("an error of the start, or a process of the user "+user,
				"the task of the user %q runs as the user of the driver: %q", user, texts(bad))
		}
	}
}

func environment(c *check) {
	task, _ := c.start(Behaviour{Kind: RunForever})
	if bad := c.soon(task.ID, func(p Process) bool { return len(p.Leaked) == 0 }); len(bad) > 0 {
		c.Failf("only the variables of the task's config", "the task has variables of the driver's process: %q", bad[0].Leaked)
	}
}

func startTwice(c *check) {
	task, _ := c.start(Behaviour{Kind: RunForever})
	before := c.count(task.ID)
	_, err := c.driver().Start(c.context(), task)
	switch after := c.count(task.ID); {
	case before < 0 && err == nil:
		c.Stopf("an error of the second start, since the node cannot see processes", "the driver takes one id for two starts")
	case after > before:
		c.Failf(fmt.Sprintf("%d processes of the task", before), "the task has %d processes after a second start", after)
	}
	c.state(task.ID, driver.TaskRunning)
	c.runs(c.wait(task.ID), c.harness.Unit/4)
}

func failedStart(c *check) {
	task := c.task(Behaviour{Kind: Fail})
	_, err := c.driver().Start(c.context(), task)
	c.class(err, "starting a task that cannot start", driver.Fatal, driver.Recoverable)
	c.Logf("the error is: %v", err)
	c.noneLeft(task.ID)
	c.unknown(task.ID)
}

func recoverKnown(c *check) {
	task, handle := c.start(Behaviour{Kind: RunForever})
	before, answers := c.count(task.ID), c.wait(task.ID)
	c.ok(c.driver().Recover(c.context(), task.ID, handle), "recovering a task that the driver knows")
	c.runs(answers, c.harness.Unit/4)
	c.state(task.ID, driver.TaskRunning)
	if after := c.count(task.ID); after != before {
		c.Failf(fmt.Sprintf("%d processes of the task", before), "the task has %d processes after Recover", after)
	}
}

func relaunch(c *check) {
	task, handle := c.start(Behaviour{Kind: RunForever})
	answers := c.wait(task.ID)
	c.runs(answers, c.harness.Unit/4)
	c.node.Kill(c.T)
	c.class(c.answered(answers, c.harness.Slack+3*time.Second).err, "Wait in a driver that dies", driver.Gone)
	if c.count(task.ID) == 0 {
		c.Stopf("the task runs on without its driver", "the task died with its driver")
	}
	c.launch()
	c.ok(c.driver().Recover(c.context(), task.ID, handle), "recovering the task")
	c.state(task.ID, driver.TaskRunning)
	answers = c.wait(task.ID)
	c.runs(answers, c.harness.Unit/4)
	c.ok(c.driver().Stop(c.context(), task.ID, c.harness.Unit, ""), "stopping the task")
	// A process that is not the parent of the task may not learn its exit code.
	if e := c.answered(answers, c.harness.Unit+3*c.harness.Slack); e.err != nil {
		c.class(e.err, "waiting for the task", driver.Fatal)
	}
	c.state(task.ID, driver.TaskExited)
	c.noneLeft(task.ID)
}

func endedMeanwhile(c *check) {
	task, handle := c.start(Behaviour{Kind: Exit, After: c.harness.Unit, Code: 3})
	c.node.Kill(c.T)
	<-time.After(2 * c.harness.Unit)
	c.launch()
	if err := c.driver().Recover(c.context(), task.ID, handle); err != nil {
		c.Logf("the task was not recovered: %v", err)
		return
	}
	e := c.answered(c.wait(task.ID), patience)
	switch {
	case e.err != nil:
		c.Logf("Wait has no result: %v", e.err)
	case e.result.Unknown:
		c.Logf("the result is lost")
	default:
		c.result(e.result, 3, 0)
	}
}

func twoWaiters(c *check) {
	task, _ := c.start(Behaviour{Kind: Exit, After: c.harness.Unit / 2, Code: 4})
	first, second := c.wait(task.ID), c.wait(task.ID)
	c.result(c.ended(first, patience).result, 4, 0)
	c.result(c.ended(second, patience).result, 4, 0)
}

func exitCodes(c *check) {
	for _, code := range []int{0, 7, 255} {
		task, _ := c.start(Behaviour{Kind: Exit, After: c.harness.Unit / 10, Code: code})
		c.result(c.ended(c.wait(task.ID), patience).result, code, 0)
	}
	for signal, number := range map[string]int{"SIGKILL": 9, "SIGTERM": 15} {
		task, _ := c.start(Behaviour{Kind: Die, After: c.harness.Unit / 10, Signal: signal})
		c.result(c.ended(c.wait(task.ID), patience).result, 128+number, number)
	}
}

func waitAfterExit(c *check) {
	task, _ := c.start(Behaviour{Kind: Exit, After: c.harness.Unit / 4, Code: 5})
	c.ended(c.wait(task.ID), patience)
	for range 2 {
		c.result(c.ended(c.wait(task.ID), c.harness.Slack).result, 5, 0)
	}
}

func destroyRefused(c *check) {
	task, _ := c.start(Behaviour{Kind: RunForever})
	answers := c.wait(task.ID)
	err := c.driver().Destroy(c.context(), task.ID, false)
	c.class(err, "Destroy of a running task without force", driver.Fatal, driver.Recoverable)
	c.runs(answers, c.harness.Unit/4)
	c.state(task.ID, driver.TaskRunning)
}

func destroyForced(c *check) {
	task, answers := c.ignoring()
	c.ok(c.driver().Destroy(c.context(), task.ID, true), "destroying the task")
	// The open Wait returns the result, or the result is lost with the task. A client does not use a
	// success unless the driver still has it after the end of the task.
	if e := c.answered(answers, c.harness.Slack); e.err == nil && e.result.Successful() {
		_, err := c.driver().Inspect(c.context(), task.ID)
		if driver.ClassOf(err) != driver.NotFound && c.collected(task.ID, c.harness.Slack).result.Successful() {
			c.Failf("a result that is no success", "a task that was killed has the result: %s", resultText(e.result))
		}
	}
	c.noneLeft(task.ID)
	task, _ = c.start(Behaviour{Kind: Exit, After: c.harness.Unit / 10})
	c.ended(c.wait(task.ID), patience)
	c.ok(c.driver().Destroy(c.context(), task.ID, true), "destroying a task that has ended")
}

func destroyChildren(c *check) {
	task, _ := c.start(Behaviour{Kind: Fork})
	c.runs(c.wait(task.ID), c.harness.Unit/2)
	if list := c.processes(task.ID); len(list) < 2 {
		c.Stopf("a process and its child", "the task has %d processes", len(list))
	}
	c.ok(c.driver().Destroy(c.context(), task.ID, true), "destroying the task")
	c.noneLeft(task.ID)
}

func destroyed(c *check) {
	task, _ := c.start(Behaviour{Kind: Exit, Code: 0, After: c.harness.Unit / 10})
	c.ended(c.wait(task.ID), patience)
	c.ok(c.driver().Destroy(c.context(), task.ID, false), "destroying a task that has ended")
	c.unknown(task.ID)
	c.unlessNotFound(c.driver().Destroy(c.context(), task.ID, true), "destroying the task again")
}

func inspect(c *check) {
	task, _ := c.start(Behaviour{Kind: RunForever})
	running := c.state(task.ID, driver.TaskRunning)
	if running.Exit != nil || !running.CompletedAt.IsZero() {
		c.Failf("no result and no end of a running task", "Inspect says: %+v", running)
	}
	if running.Name != task.Name {
		c.Failf(fmt.Sprintf("the name %q", task.Name), "Inspect names the task %q", running.Name)
	}
	task, _ = c.start(Behaviour{Kind: Exit, After: c.harness.Unit, Code: 10})
	c.result(c.ended(c.wait(task.ID), patience).result, 10, 0)
	status := c.state(task.ID, driver.TaskExited)
	if status.Exit == nil {
		c.Stopf("the result of a task that has ended", "Inspect has no result")
	}
	c.result(*status.Exit, 10, 0)
	if !status.CompletedAt.IsZero() && status.CompletedAt.Before(status.StartedAt) {
		c.Failf(fmt.Sprintf("an end after the start at %v", status.StartedAt), "Inspect says that the task ended at %v", status.CompletedAt)
	}
}
