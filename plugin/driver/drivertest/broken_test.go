//race:skip the runtime of Go 1.26.8 crashes in about one of eight runs, in time.AfterFunc inside a bubble of testing/synctest
package drivertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// check runs tests of the suite, those that the harness skips too, and returns the findings about those
// that fail.
func check(t *testing.T, tests []conformance.Test) (failed []conformance.Finding) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		conformance.Judge(t.Context(), tests, nil, func(f conformance.Finding) {
			if f.Outcome == conformance.Failed {
				failed = append(failed, f)
			}
		})
		// Goroutines of slow drivers end in this time.
		time.Sleep(time.Hour)
	})
	return failed
}

// broken is a driver with one fault. The functions that are nil are those of the double.
type broken struct {
	driver.Driver
	node         *brokenNode
	start        func(*broken, context.Context, *driver.TaskConfig) (driver.Handle, error)
	recover      func(*broken, context.Context, driver.TaskID, driver.Handle) error
	wait         func(*broken, context.Context, driver.TaskID) (driver.ExitResult, error)
	stop         func(*broken, context.Context, driver.TaskID, time.Duration, string) error
	destroy      func(*broken, context.Context, driver.TaskID, bool) error
	inspect      func(*broken, context.Context, driver.TaskID) (driver.Status, error)
	signal       func(*broken, context.Context, driver.TaskID, string) error
	exec         func() (driver.ExitResult, error)
	stats        func(*broken, context.Context) error
	fingerprints func(*broken, context.Context, func(driver.Fingerprint)) error
	encode       func([]byte) ([]byte, error)
}

func (b *broken) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	if b.start != nil {
		return b.start(b, ctx, task)
	}
	return b.Driver.Start(ctx, task)
}

func (b *broken) Recover(ctx context.Context, id driver.TaskID, h driver.Handle) error {
	if b.recover != nil {
		return b.recover(b, ctx, id, h)
	}
	return b.Driver.Recover(ctx, id, h)
}

func (b *broken) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	if b.wait != nil {
		return b.wait(b, ctx, id)
	}
	return b.Driver.Wait(ctx, id)
}

func (b *broken) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	if b.stop != nil {
		return b.stop(b, ctx, id, grace, signal)
	}
	return b.Driver.Stop(ctx, id, grace, signal)
}

func (b *broken) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	if b.destroy != nil {
		return b.destroy(b, ctx, id, force)
	}
	return b.Driver.Destroy(ctx, id, force)
}

func (b *broken) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	if b.inspect != nil {
		return b.inspect(b, ctx, id)
	}
	return b.Driver.Inspect(ctx, id)
}

func (b *broken) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	if b.signal != nil {
		return b.signal(b, ctx, id, signal)
	}
	return b.Driver.Signal(ctx, id, signal)
}

func (b *broken) Stats(ctx context.Context, id driver.TaskID, interval time.Duration, report func(driver.Usage)) error {
	if b.stats != nil {
		return b.stats(b, ctx)
	}
	return b.Driver.Stats(ctx, id, interval, report)
}

func (b *broken) ExecStreaming(ctx context.Context, id driver.TaskID, command []string, streams driver.ExecStreams) (driver.ExitResult, error) {
	if b.exec != nil {
		return b.exec()
	}
	return b.Driver.ExecStreaming(ctx, id, command, streams)
}

func (b *broken) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	if b.fingerprints != nil {
		return b.fingerprints(b, ctx, report)
	}
	return b.Driver.Fingerprints(ctx, report)
}

func (b *broken) Encode(config []byte, lookup func(string) (string, bool)) ([]byte, error) {
	if b.encode != nil {
		return b.encode(config)
	}
	return b.Driver.Encode(config, lookup)
}

// brokenNode is a node with a broken driver.
type brokenNode struct {
	*double
	fault broken
	// also are the other ids under which the driver runs a task.
	also   map[driver.TaskID]driver.TaskID
	stdout string
	// process has the faults of all processes.
	process drivertest.Process
	mu      sync.Mutex
	noted   map[driver.TaskID]bool // guarded by mu
}

func (n *brokenNode) Driver() driver.Driver {
	b := n.fault
	b.Driver, b.node = n.double.Driver(), n
	return &b
}

func (n *brokenNode) Processes(id driver.TaskID) ([]drivertest.Process, bool) {
	list, _ := n.double.Processes(id)
	if other, ok := n.also[id]; ok {
		more, _ := n.double.Processes(other)
		list = append(list, more...)
	}
	for i := range list {
		list[i].AsDriver, list[i].Leaked = n.process.AsDriver, n.process.Leaked
	}
	return list, true
}

func (n *brokenNode) Stdout(*driver.TaskConfig) (string, error) { return n.stdout, nil }

// first reports whether the id is requested for the first time.
func (n *brokenNode) first(id driver.TaskID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was := n.noted[id]
	n.noted[id] = true
	return !was
}

// has reports whether the id has been requested.
func (n *brokenNode) has(id driver.TaskID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.noted[id]
}

// copied starts a task again, under another id.
func (n *brokenNode) copied(ctx context.Context, task *driver.TaskConfig) error {
	other := *task
	other.ID += "/copy"
	other.Config = []byte("{}")
	n.also[task.ID] = other.ID
	_, err := n.double.Driver().Start(ctx, &other)
	return err
}

// noteStop is a Stop during which [waitUnlessNoted] answers.
func (b *broken) noteStop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	if !strings.HasPrefix(signal, "SIGN") {
		b.node.first(id)
	}
	return b.Driver.Stop(ctx, id, grace, signal)
}

// noteDestroy is a Destroy during which [waitUnlessNoted] answers.
func (b *broken) noteDestroy(ctx context.Context, id driver.TaskID, force bool) error {
	if s, err := b.Driver.Inspect(ctx, id); force && err == nil && s.State == driver.TaskRunning {
		b.node.first(id)
		time.Sleep(100 * time.Millisecond)
	}
	return b.Driver.Destroy(ctx, id, force)
}

// waitUnlessNoted is a Wait that answers with success for a running task as soon as the task is
// noted.
func (b *broken) waitUnlessNoted(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	for {
		s, err := b.Driver.Inspect(ctx, id)
		switch {
		case err != nil || s.State != driver.TaskRunning:
			return b.Driver.Wait(ctx, id)
		case b.node.has(id):
			return driver.ExitResult{}, nil
		}
		select {
		case <-ctx.Done():
			return driver.ExitResult{}, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Each broken driver fails the tests that are named, and no others. Each test of the suite has at
// least one driver that fails it.
func TestTests_findBrokenDrivers(t *testing.T) {
	t.Parallel()
	gone := &driver.Error{Class: driver.Fatal, Call: "Call", Err: errors.New("broken")}
	stories := []struct {
		name    string
		fails   string
		options scripted.Options
		fault   broken
		stdout  string
		process drivertest.Process
	}{
		{name: "works", fails: ""},
		{name: "reports its health after two seconds", fails: "D1", fault: broken{fingerprints: func(b *broken, ctx context.Context, report func(driver.Fingerprint)) error {
			time.Sleep(2 * time.Second)
			return b.Driver.Fingerprints(ctx, report)
		}}},
		{name: "ends its streams too late", fails: "D2", fault: broken{fingerprints: func(b *broken, ctx context.Context, report func(driver.Fingerprint)) error {
			defer time.Sleep(time.Minute)
			return b.Driver.Fingerprints(ctx, report)
		}}},
		{name: "ends with its stream", fails: "D2", fault: broken{
			fingerprints: func(b *broken, ctx context.Context, report func(driver.Fingerprint)) error {
				defer b.node.first("stream")
				return b.Driver.Fingerprints(ctx, report)
			},
			start: func(b *broken, ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
				if time.Sleep(200 * time.Millisecond); b.node.has("stream") {
					return nil, gone
				}
				return b.Driver.Start(ctx, task)
			},
		}},
		{name: "takes every config", fails: "D3", fault: broken{encode: func(config []byte) ([]byte, error) {
			if encoded, err := encodeDouble(config, nil); err == nil {
				return encoded, nil
			}
			return []byte("{}"), nil
		}}},
		{name: "reports that it started a task that did not start", fails: "D4 D5 D6 D7 D8 D12_stop D13 D13_orderly D15 D15_unknown D16 D17 D17_children D19 D20 D20_stats", fault: broken{
			start: func(b *broken, ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
				if strings.Contains(string(task.Config), `"ends"`) {
					return b.Driver.Start(ctx, task)
				}
				return driver.Handle("none"), nil
			},
			destroy: func(b *broken, ctx context.Context, id driver.TaskID, force bool) error {
				if err := b.Driver.Destroy(ctx, id, force); driver.ClassOf(err) != driver.NotFound {
					return err
				}
				return nil
			},
		}},
		{name: "returns no handle", fails: "D4 D8", fault: broken{start: func(b *broken, ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
			_, err := b.Driver.Start(ctx, task)
			return nil, err
		}}},
		{name: "reports a wrong start time", fails: "D4", fault: broken{inspect: func(b *broken, ctx context.Context, id driver.TaskID) (driver.Status, error) {
			status, err := b.Driver.Inspect(ctx, id)
			status.StartedAt = status.StartedAt.Add(-time.Hour)
			return status, err
		}}},
		{name: "loses the end of the output", fails: "D4_output", stdout: "one\n"},
		{name: "runs all tasks as its own user", fails: "D4_user", process: drivertest.Process{AsDriver: true}},
		{name: "gives its tasks its environment", fails: "D4_environment", process: drivertest.Process{Leaked: []string{"HOME"}}},
		{name: "starts an id twice", fails: "D5", fault: broken{start: func(b *broken, ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
			if !b.node.first(task.ID) {
				return driver.Handle("again"), b.node.copied(ctx, task)
			}
			return b.Driver.Start(ctx, task)
		}}},
		{name: "leaves a process after a failed start", fails: "D6", fault: broken{start: func(b *broken, ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
			h, err := b.Driver.Start(ctx, task)
			if err != nil && b.node.first(task.ID) && strings.Contains(string(task.Config), "start_error") {
				return nil, errors.Join(err, b.node.copied(ctx, task))
			}
			return h, err
		}}},
		{name: "keeps a task that did not start", fails: "D6", fault: broken{
			start: func(b *broken, ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
				h, err := b.Driver.Start(ctx, task)
				if err != nil {
					b.node.first(task.ID)
				}
				return h, err
			},
			inspect: func(b *broken, ctx context.Context, id driver.TaskID) (driver.Status, error) {
				status, err := b.Driver.Inspect(ctx, id)
				if err != nil && b.node.has(id) {
					return driver.Status{ID: id, State: driver.TaskExited}, nil
				}
				return status, err
			},
		}},
		{name: "kills a task that it recovers and has", fails: "D7", fault: broken{recover: func(b *broken, ctx context.Context, id driver.TaskID, h driver.Handle) error {
			if _, err := b.Driver.Inspect(ctx, id); err == nil {
				return b.Driver.Stop(ctx, id, 0, "")
			}
			return b.Driver.Recover(ctx, id, h)
		}}},
		{name: "recovers nothing", fails: "D8", fault: broken{recover: func(b *broken, ctx context.Context, id driver.TaskID, _ driver.Handle) error {
			if _, err := b.Driver.Inspect(ctx, id); err == nil {
				return nil
			}
			return gone
		}}},
		{name: "takes its tasks along when it dies", fails: "D8", options: scripted.Options{Parent: scripted.InDriver}},
		{name: "makes up a result of a task that it recovers", fails: "D9", fault: broken{wait: func(b *broken, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
			result, err := b.Driver.Wait(ctx, id)
			if result.Code == 3 {
				result.Code = 0
			}
			return result, err
		}}},
		{name: "answers only one that waits", fails: "D10 D12", fault: broken{wait: func(b *broken, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
			first := b.node.first(id)
			result, err := b.Driver.Wait(ctx, id)
			if err == nil && !first {
				result = driver.ExitResult{Unknown: true}
			}
			return result, err
		}}},
		{name: "gives the signal as the exit code", fails: "D11 D13", fault: broken{wait: func(b *broken, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
			result, err := b.Driver.Wait(ctx, id)
			if result.Signal != 0 {
				result.Code = result.Signal
			}
			return result, err
		}}},
		{name: "does not answer those that wait late", fails: "D6 D12 D18", fault: broken{wait: func(b *broken, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
			if s, err := b.Driver.Inspect(ctx, id); err != nil || s.State == driver.TaskExited && b.node.has(id) {
				<-ctx.Done()
				return driver.ExitResult{}, ctx.Err()
			}
			b.node.first(id)
			return b.Driver.Wait(ctx, id)
		}}},
		{name: "answers Wait when a stop begins", fails: "D12_stop", options: scripted.Options{EarlyWait: true}},
		{name: "answers Wait when a stop begins, and again with the same result", fails: "D12_stop D13 D13_orderly D15", fault: broken{
			stop: (*broken).noteStop,
			wait: func(b *broken, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
				result, err := b.waitUnlessNoted(ctx, id)
				if b.node.has(id) {
					result = driver.ExitResult{}
				}
				return result, err
			},
		}},
		{name: "answers Wait when a stop begins, and kills early", fails: "D12_stop D13", fault: broken{
			stop: func(b *broken, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
				return b.noteStop(ctx, id, grace/2, signal)
			},
			wait: (*broken).waitUnlessNoted,
		}},
		// A client does not use the answer: the driver has no result of a task that was destroyed.
		{name: "answers Wait when a kill begins", fails: "", fault: broken{wait: (*broken).waitUnlessNoted, destroy: (*broken).noteDestroy}},
		{name: "answers Wait when a kill begins, and keeps this result", fails: "D17", fault: broken{
			wait: func(b *broken, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
				result, err := b.waitUnlessNoted(ctx, id)
				if b.node.has(id) {
					return driver.ExitResult{}, nil
				}
				return result, err
			},
			destroy: (*broken).noteDestroy,
			inspect: func(b *broken, ctx context.Context, id driver.TaskID) (driver.Status, error) {
				status, err := b.Driver.Inspect(ctx, id)
				if err != nil && b.node.has(id) {
					return driver.Status{ID: id, State: driver.TaskExited}, nil
				}
				return status, err
			},
		}},
		{name: "kills early", fails: "D13", fault: broken{stop: func(b *broken, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			return b.Driver.Stop(ctx, id, grace/2, signal)
		}}},
		{name: "never kills", fails: "D13", fault: broken{stop: func(b *broken, ctx context.Context, id driver.TaskID, _ time.Duration, signal string) error {
			return b.Driver.Stop(ctx, id, time.Hour, signal)
		}}},
		{name: "kills late", fails: "D13", fault: broken{stop: func(b *broken, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			return b.Driver.Stop(ctx, id, grace+3*time.Second, signal)
		}}},
		{name: "waits for the whole grace", fails: "D13_orderly", fault: broken{stop: func(b *broken, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			err := b.Driver.Stop(ctx, id, grace, signal)
			time.Sleep(max(0, grace-5*time.Second))
			return err
		}}},
		{name: "fails to stop what has ended", fails: "D14", fault: broken{stop: func(b *broken, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			if s, err := b.Driver.Inspect(ctx, id); err != nil || s.State == driver.TaskExited {
				return gone
			}
			return b.Driver.Stop(ctx, id, grace, signal)
		}}},
		{name: "sends its own signal", fails: "D15", fault: broken{stop: func(b *broken, ctx context.Context, id driver.TaskID, grace time.Duration, _ string) error {
			return b.Driver.Stop(ctx, id, grace, "SIGTERM")
		}}},
		{name: "kills a task after an error of Signal", fails: "D15_unknown",
			options: scripted.Options{Capabilities: driver.Capabilities{SendSignals: true}},
			fault: broken{signal: func(b *broken, ctx context.Context, id driver.TaskID, signal string) error {
				err := b.Driver.Signal(ctx, id, signal)
				if driver.ClassOf(err) == driver.Fatal {
					_ = b.Driver.Stop(ctx, id, 0, "")
				}
				return err
			}}},
		{name: "does not stop a task with a signal that it does not have", fails: "D15_unknown", fault: broken{stop: func(b *broken, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			if strings.HasPrefix(signal, "SIGN") {
				return nil
			}
			return b.Driver.Stop(ctx, id, grace, signal)
		}}},
		{name: "kills a task after an error", fails: "D15_unknown", fault: broken{stop: func(b *broken, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			err := b.Driver.Stop(ctx, id, grace, signal)
			if err != nil {
				_ = b.Driver.Stop(ctx, id, grace, "")
			}
			return err
		}}},
		{name: "destroys without force", fails: "D16", fault: broken{destroy: func(b *broken, ctx context.Context, id driver.TaskID, _ bool) error {
			return b.Driver.Destroy(ctx, id, true)
		}}},
		{name: "ignores force", fails: "D17 D17_children", fault: broken{destroy: func(b *broken, ctx context.Context, id driver.TaskID, _ bool) error {
			if s, err := b.Driver.Inspect(ctx, id); err == nil && s.State == driver.TaskRunning {
				return gone
			}
			return b.Driver.Destroy(ctx, id, true)
		}}},
		{name: "leaves children", fails: "D17_children", options: scripted.Options{LeavesChildren: true}},
		{name: "remembers what it has destroyed", fails: "D18", fault: broken{destroy: func(b *broken, ctx context.Context, id driver.TaskID, force bool) error {
			if s, err := b.Driver.Inspect(ctx, id); err == nil && s.State == driver.TaskExited {
				return nil
			}
			return b.Driver.Destroy(ctx, id, force)
		}}},
		{name: "forgets exits", fails: "D14 D19", fault: broken{inspect: func(b *broken, ctx context.Context, id driver.TaskID) (driver.Status, error) {
			status, err := b.Driver.Inspect(ctx, id)
			status.Exit = nil
			return status, err
		}}},
		{name: "reports that it ran a command", fails: "D20", fault: broken{exec: func() (driver.ExitResult, error) {
			return driver.ExitResult{}, nil
		}}},
		{name: "cannot run a command", fails: "D20", options: scripted.Options{Capabilities: driver.Capabilities{Exec: true}},
			fault: broken{exec: func() (driver.ExitResult, error) { return driver.ExitResult{}, gone }}},
		{name: "dies of a signal that it does not send", fails: "D20", fault: broken{signal: func(b *broken, ctx context.Context, id driver.TaskID, signal string) error {
			b.node.Kill(nil)
			return b.Driver.Signal(ctx, id, signal)
		}}},
		{name: "never measures and never reports it", fails: "D20_stats", fault: broken{stats: func(_ *broken, ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}},
		{name: "dies of statistics", fails: "D20 D20_stats", fault: broken{stats: func(b *broken, ctx context.Context) error {
			b.node.Kill(nil)
			return b.Driver.Stats(ctx, "", 0, func(driver.Usage) {})
		}}},
		{name: "sends signals to nothing", fails: "D20", options: scripted.Options{Capabilities: driver.Capabilities{SendSignals: true}},
			fault: broken{signal: func(*broken, context.Context, driver.TaskID, string) error { return nil }}},
	}
	found := map[string]bool{}
	for _, story := range stories {
		h := doubleHarness(story.options)
		h.New = func(t drivertest.T) drivertest.Node {
			n := &brokenNode{
				double: newDouble(t, story.options), fault: story.fault, stdout: story.stdout, process: story.process,
				also: map[driver.TaskID]driver.TaskID{}, noted: map[driver.TaskID]bool{},
			}
			if n.stdout == "" {
				n.stdout = drivertest.Output
			}
			return n
		}
		var fails, why []string
		for _, f := range check(t, drivertest.Tests(h)) {
			found[f.Rule.ID] = true
			fails = append(fails, strings.ReplaceAll(f.Rule.ID, " ", "_"))
			why = append(why, fmt.Sprintf("%s: %v", f.Rule.ID, f.Failures))
		}
		test.EqOp(t, story.fails, strings.Join(fails, " "), test.Sprintf("a driver that %s:\n%s", story.name, strings.Join(why, "\n")))
	}
	for _, one := range drivertest.Tests(drivertest.Harness{}) {
		test.True(t, found[one.ID], test.Sprintf("no broken driver fails %s", one.ID))
	}
}

// An early answer of Wait is a warning. Regression: the early result failed D13 and D15, which are
// musts.
func TestTests_earlyWaitIsAWarning(t *testing.T) {
	t.Parallel()
	h := doubleHarness(scripted.Options{EarlyWait: true})
	h.Strict = false
	var broken []string
	synctest.Test(t, func(t *testing.T) {
		conformance.Judge(t.Context(), drivertest.Tests(h), h.Skips, func(f conformance.Finding) {
			if len(f.Failures) > 0 {
				broken = append(broken, fmt.Sprint(f.Rule.ID, " ", f.Outcome, ": ", f.Failures[0].Happened))
			}
		})
	})
	must.Eq(t, []string{
		`D12 stop warning: Wait answered code 0, signal 0 during the stop, and then Inspect said the state "running"`,
	}, broken)
}

// A task that the harness does not have fails the test: a skip must be named.
func TestRun_missingTaskFails(t *testing.T) {
	t.Parallel()
	h := doubleHarness(scripted.Options{})
	h.Config = func(b drivertest.Behaviour) ([]byte, bool) {
		config, _ := doubleConfig(b)
		return config, b.Kind != drivertest.Fork
	}
	must.SliceLen(t, 1, check(t, rule("D17 children", h)))
}
