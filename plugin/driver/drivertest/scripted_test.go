package drivertest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// The double passes the suite, with and without the optional calls, and with its tasks in cgroups of the host and in its own.
func TestRun_overTheDouble(t *testing.T) {
	t.Parallel()
	all := driver.Capabilities{SendSignals: true, Exec: true, HostCgroup: true}
	stories := map[string]scripted.Options{
		"with shims and all calls":   {Capabilities: all},
		"tasks outlive their parent": {Parent: scripted.InInit},
	}
	for name, options := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, doubleHarness(options))
		})
	}
}

// doubleHarness is the harness of the double, in the time of testing/synctest.
func doubleHarness(o scripted.Options) drivertest.Harness {
	return drivertest.Harness{
		New:      func(t drivertest.T) drivertest.Node { return newDouble(t, o) },
		Config:   doubleConfig,
		Required: "script",
		Skips:    map[string]string{"D4 output": "the double writes no output"},
		Around:   synctest.Test,
		Strict:   true,
	}
}

// doubleConfig is the config of the double: a script.
func doubleConfig(b drivertest.Behaviour) ([]byte, bool) {
	var s scripted.Script
	switch b.Kind {
	case drivertest.RunForever:
	case drivertest.Exit:
		s.Ends, s.RunFor, s.Exit.Code = true, b.After, b.Code
	case drivertest.Die:
		number := signals()[b.Signal]
		s.Ends, s.RunFor, s.Exit = true, b.After, driver.ExitResult{Code: 128 + int(number), Signal: int(number)}
	case drivertest.Ignore:
		s.IgnoreSignals = true
	case drivertest.Trap:
		s.OnlySignal, s.StopExit = signals()[b.Signal], &driver.ExitResult{Code: b.Code}
	case drivertest.Fork:
		s.Child = &scripted.Child{RunFor: scripted.Never}
	case drivertest.Fail:
		s.StartError = "the script fails the start"
	case drivertest.Lines:
		s.Ends = true
	}
	config, err := json.Marshal(map[string]scripted.Script{"script": s})
	return config, err == nil
}

func signals() map[string]scripted.Signal {
	return map[string]scripted.Signal{"SIGHUP": scripted.SIGHUP, "SIGTERM": scripted.SIGTERM, "SIGKILL": scripted.SIGKILL}
}

// encodeDouble checks a config of the double.
func encodeDouble(config []byte, _ func(string) (string, bool)) ([]byte, error) {
	var c struct {
		Script *scripted.Script `json:"script"`
	}
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return nil, fmt.Errorf("reading the config: %w", err)
	}
	if c.Script == nil {
		return nil, errors.New("the config has no key script")
	}
	return json.Marshal(c.Script)
}

// double is a node with the double of a driver.
type double struct {
	loop    *scripted.Loop
	machine *scripted.Machine
	program *scripted.Program
	driver  *blockingDriver
	tasks   int
}

var _ drivertest.Node = (*double)(nil)

func newDouble(t drivertest.T, o scripted.Options) *double {
	o.Script = func(task *driver.TaskConfig) scripted.Script {
		var s scripted.Script
		if err := json.Unmarshal(task.Config, &s); err != nil {
			t.Errorf("reading the script: %v", err)
		}
		return s
	}
	d := &double{loop: scripted.NewLoop()}
	d.loop.Do(func() {
		d.machine = scripted.NewMachine(d.loop)
		d.program = d.machine.Install("double", o)
	})
	d.Launch(t)
	return d
}

func (d *double) Driver() driver.Driver { return d.driver }

func (d *double) Kill(drivertest.T) {
	d.loop.Do(func() {
		for _, generation := range d.program.Living() {
			generation.Kill(scripted.ByFault)
		}
	})
}

func (d *double) Launch(t drivertest.T) {
	launched := make(chan error, 1)
	d.loop.Do(func() {
		d.program.Launch(func(generation *scripted.Driver, err error) {
			d.driver = newBlockingDriver(d.loop, generation, encodeDouble)
			launched <- err
		})
	})
	if err := <-launched; err != nil {
		t.Fatalf("launching the driver: %v", err)
	}
}

func (d *double) Task(drivertest.T) *driver.TaskConfig {
	d.tasks++
	task := &driver.TaskConfig{ID: driver.TaskID(fmt.Sprintf("alloc/web/%d", d.tasks)), Name: "web"}
	task.Resources.Cgroup = string(task.ID)
	d.loop.Do(func() { d.machine.MakeCgroup(task.Resources.Cgroup) })
	return task
}

func (d *double) Processes(id driver.TaskID) ([]drivertest.Process, bool) {
	var found []drivertest.Process
	d.loop.Do(func() {
		for _, p := range d.machine.Living() {
			if p.Task == id && p.Kind != scripted.ShimProcess {
				found = append(found, drivertest.Process{Text: fmt.Sprintf("%d %s", p.PID, p.Kind)})
			}
		}
	})
	return found, true
}

func (*double) Stdout(*driver.TaskConfig) (string, error) { return "", nil }
