package mock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// Names of calls, for hang_at and crash_at.
const (
	callStart   = "StartTask"
	callRecover = "RecoverTask"
	callWait    = "WaitTask"
	callStop    = "StopTask"
	callDestroy = "DestroyTask"
	callInspect = "InspectTask"
	callSignal  = "SignalTask"
)

// taskSchema is the schema of [config].
func taskSchema() *hclspec.Spec {
	text, number, yes := func() *hclspec.Spec { return sdk.Attribute("string", false) },
		func() *hclspec.Spec { return sdk.Attribute("number", false) },
		func() *hclspec.Spec { return sdk.Attribute("bool", false) }
	return sdk.Object(map[string]*hclspec.Spec{
		"run_for":                 text(),
		"exit_code":               number(),
		"exit_signal":             number(),
		"stdout_string":           text(),
		"stop_ignore":             yes(),
		"kill_after":              text(),
		"signal_codes":            sdk.Attribute("map(number)", false),
		"start_block_for":         text(),
		"start_error":             text(),
		"start_error_recoverable": yes(),
		"hang_at":                 text(),
		"crash_at":                text(),
	})
}

// config is the config of a task on the wire.
type config struct {
	RunFor                string         `codec:"run_for"`
	ExitCode              int            `codec:"exit_code"`
	ExitSignal            int            `codec:"exit_signal"`
	StdoutString          string         `codec:"stdout_string"`
	StopIgnore            bool           `codec:"stop_ignore"`
	KillAfter             string         `codec:"kill_after"`
	SignalCodes           map[string]int `codec:"signal_codes"`
	StartBlockFor         string         `codec:"start_block_for"`
	StartError            string         `codec:"start_error"`
	StartErrorRecoverable bool           `codec:"start_error_recoverable"`
	HangAt                string         `codec:"hang_at"`
	CrashAt               string         `codec:"crash_at"`
}

// behaviour states what a task does. It is part of the task's record.
type behaviour struct {
	// RunFor is nil for a task that does not end by itself. It then ends with Exit.
	RunFor      *time.Duration    `json:"run_for,omitempty"`
	Exit        driver.ExitResult `json:"exit"`
	StopIgnore  bool              `json:"stop_ignore,omitempty"`
	KillAfter   time.Duration     `json:"kill_after,omitempty"`
	SignalCodes map[string]int    `json:"signal_codes,omitempty"`
	HangAt      string            `json:"hang_at,omitempty"`
	CrashAt     string            `json:"crash_at,omitempty"`

	startBlockFor time.Duration
	startError    error
	stdout        string
}

// parse reads the config of a task.
func parse(encoded []byte) (behaviour, error) {
	var c config
	if err := sdk.Decode(encoded, &c); err != nil {
		return behaviour{}, err
	}
	b := behaviour{
		Exit:       driver.ExitResult{Code: c.ExitCode, Signal: c.ExitSignal},
		StopIgnore: c.StopIgnore, SignalCodes: c.SignalCodes, HangAt: c.HangAt, CrashAt: c.CrashAt, stdout: c.StdoutString,
	}
	if c.ExitSignal != 0 && c.ExitCode == 0 {
		b.Exit.Code = 128 + c.ExitSignal
	}
	if c.StartError != "" {
		b.startError = errors.New(c.StartError)
		if c.StartErrorRecoverable {
			b.startError = sdk.Recoverable(b.startError)
		}
	}
	var runFor time.Duration
	for _, d := range []struct {
		key, text string
		value     *time.Duration
	}{{"run_for", c.RunFor, &runFor}, {"kill_after", c.KillAfter, &b.KillAfter}, {"start_block_for", c.StartBlockFor, &b.startBlockFor}} {
		if d.text == "" {
			continue
		}
		var err error
		if *d.value, err = time.ParseDuration(d.text); err != nil || *d.value < 0 {
			return behaviour{}, fmt.Errorf("%s: %q is no duration such as \"10s\"", d.key, d.text)
		}
	}
	if c.RunFor != "" {
		b.RunFor = &runFor
	}
	return b, b.check()
}

// check reports names of calls and signals that do not exist.
func (b *behaviour) check() error {
	calls := []string{callStart, callRecover, callWait, callStop, callDestroy, callInspect, callSignal}
	for _, at := range []struct{ key, call string }{{"hang_at", b.HangAt}, {"crash_at", b.CrashAt}} {
		if at.call != "" && !slices.Contains(calls, at.call) {
			return fmt.Errorf("%s: %q is none of the calls %s", at.key, at.call, strings.Join(calls, ", "))
		}
	}
	for name := range b.SignalCodes {
		if _, err := parseSignal(name); err != nil {
			return fmt.Errorf("signal_codes: %w", err)
		}
	}
	return nil
}

// parseSignal returns the number of a signal. The empty name is SIGTERM.
func parseSignal(name string) (unix.Signal, error) {
	if name == "" {
		return unix.SIGTERM, nil
	}
	if number := unix.SignalNum(name); number != 0 {
		return number, nil
	}
	return 0, fmt.Errorf("unknown signal %q", name)
}
