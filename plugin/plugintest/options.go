package plugintest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/environment"
)

// Options describe a driver's program and its tasks. In a file they are a JSON object.
type Options struct {
	Program
	// Tasks are the configs of tasks by the name of a [drivertest.Kind], such as "run for ever". In
	// their strings the harness replaces {after}, in seconds, {millis}, {code}, {signal}, such as
	// HUP, {number} of the signal, and {output}, which is [drivertest.Output]. A text that begins
	// with = becomes a number: "={code}".
	Tasks map[string]json.RawMessage `json:"tasks"`
	// Required is the name of a key that the config of "run for ever" must have, or empty.
	Required string `json:"required"`
	// Skips are the rules that the driver cannot satisfy, with the reason. [Harness] adds the rules
	// about processes if there are none, and "D4 user" if this user is not root.
	Skips map[string]string `json:"skips"`
	// NoProcesses: the harness cannot see the processes of tasks.
	NoProcesses bool `json:"no_processes"`
	// UnitMillis is the unit of time of the suite in milliseconds; zero is a second.
	UnitMillis int `json:"unit_millis"`
}

// Read reads the options of a program from a file. If the file has no tasks, the options have the
// tasks of [Commands].
func Read(path, file string) (Options, error) {
	o := Options{Program: Program{Path: path}}
	err := read(file, &o, func() error { return errors.Join(o.check(), environment.Check(o.Env)) })
	if err != nil || o.Tasks != nil {
		return o, err
	}
	commands, err := Commands(path)
	o.Tasks = commands.Tasks
	if o.Required == "" {
		o.Required = commands.Required
	}
	return o, err
}

// read reads a file into options, and checks them.
func read(file string, into any, check func() error) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the config of the test: %w", err)
	}
	if err = parse(text, into); err == nil {
		err = check()
	}
	if err != nil {
		return fmt.Errorf("reading the config of the test: %s: %w", file, err)
	}
	return nil
}

// parse reads the text of a file.
func parse(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// commandTasks are the tasks of [Commands].
//
//go:embed commands.json
var commandTasks []byte

// Commands returns the options of a driver whose tasks have the keys "command" and "args".
func Commands(path string) (Options, error) {
	o := Options{Program: Program{Path: path}}
	return o, parse(commandTasks, &o)
}

// check finds tasks of kinds that do not exist.
func (o Options) check() error {
	kinds := map[string]bool{}
	for kind := drivertest.RunForever; kind <= drivertest.Lines; kind++ {
		kinds[kind.String()] = true
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.Tasks)) {
		if !kinds[name] {
			errs = append(errs, fmt.Errorf("the suite has no tasks of kind %q", name))
		}
	}
	return errors.Join(append(errs, checkSkips(o.Skips, drivertest.Tests(Harness(o))))...)
}

// checkSkips finds skips of rules that do not exist, and skips without a reason.
func checkSkips(skips map[string]string, rules []conformance.Test) error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(skips)) {
		if !slices.ContainsFunc(rules, func(one conformance.Test) bool { return one.ID == id }) {
			errs = append(errs, fmt.Errorf("the suite has no test %q to skip", id))
		}
		if strings.TrimSpace(skips[id]) == "" {
			errs = append(errs, fmt.Errorf("the skip of %q has no reason", id))
		}
	}
	return errors.Join(errs...)
}

// Harness returns the harness of a driver's program.
func Harness(o Options) drivertest.Harness {
	return drivertest.Harness{
		New:      func(t drivertest.T) drivertest.Node { return newNode(t, o) },
		Config:   o.config,
		Required: o.Required,
		Skips:    o.skips(),
		Unit:     time.Duration(o.UnitMillis) * time.Millisecond,
	}
}

// skips returns the skips of the file, and the rules that this machine cannot test.
func (o Options) skips() map[string]string {
	all := map[string]string{}
	if os.Geteuid() != 0 {
		all["D4 user"] = "only root can run a task as another user"
	}
	if o.NoProcesses {
		for _, id := range []string{"D4 user", "D4 environment", "D17 children"} {
			all[id] = "the file says that the tasks have no processes"
		}
	}
	maps.Copy(all, o.Skips)
	return all
}

// config returns the config of a task.
func (o Options) config(b drivertest.Behaviour) ([]byte, bool) {
	template, ok := o.Tasks[b.Kind.String()]
	if !ok {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(template))
	decoder.UseNumber()
	var config any
	if err := decoder.Decode(&config); err != nil {
		return nil, false
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // so that people can read the configs in findings
	err := encoder.Encode(fill(config, strings.NewReplacer(
		"{after}", strconv.FormatFloat(b.After.Seconds(), 'f', -1, 64),
		"{millis}", strconv.FormatInt(b.After.Milliseconds(), 10),
		"{code}", strconv.Itoa(b.Code),
		"{signal}", strings.TrimPrefix(b.Signal, "SIG"),
		"{number}", strconv.Itoa(int(unix.SignalNum(b.Signal))),
		"{output}", drivertest.Output,
	)))
	return bytes.TrimSpace(text.Bytes()), err == nil
}

// fill replaces the names in braces in the strings of a config.
func fill(config any, values *strings.Replacer) any {
	switch c := config.(type) {
	case string:
		text := values.Replace(c)
		if number, is := strings.CutPrefix(text, "="); is {
			return json.Number(number)
		}
		return text
	case []any:
		var filled []any
		for _, element := range c {
			filled = append(filled, fill(element, values))
		}
		return filled
	case map[string]any:
		filled := map[string]any{}
		for key, value := range c {
			filled[values.Replace(key)] = fill(value, values)
		}
		return filled
	}
	return config
}
