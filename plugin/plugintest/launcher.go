package plugintest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/crash"
	"github.com/seed-f9cf0b39/nodedrain/plugin/environment"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
)

// ofPlugin is a variable of the plugin's process. No task has it.
const ofPlugin = "NODEDRAIN_TEST_PLUGIN"

// patience is the timeout of a launch and of a kill of a program.
const patience = 30 * time.Second

// Program is a plugin's program. In the strings of Args, Env, Config and Setup, {dir} is a folder that
// only one test uses. It is empty at first.
type Program struct {
	// Path is the absolute path of the program. It is not part of a file.
	Path string   `json:"-"`
	Args []string `json:"args"`
	// Env are the variables of the process beside those that a client gives to each plugin.
	Env map[string]string `json:"env"`
	// Config is the plugin's config, or empty.
	Config json.RawMessage `json:"config"`
	// Setup is a command that runs before the plugin starts, for example to create files in {dir},
	// or empty.
	Setup []string `json:"setup"`
}

// launcher launches the plugin of one node. It has the folder and the process of the plugin.
type launcher struct {
	of       Program
	dir      string
	program  *host.Program
	instance *host.Instance // or nil
	// keep: the folder stays at the end of the test.
	keep bool
}

var _ conformance.Logger = (*launcher)(nil)

// newLauncher prepares the folder of a node. At the end of the test it stops the plugin and removes the folder.
func newLauncher(t conformance.T, of Program) *launcher {
	t.Helper()
	// The path of a socket must be short, and t.TempDir is too long.
	dir, err := os.MkdirTemp("", "nd")
	if err != nil {
		t.Fatalf("making the node's folder: %v", err)
	}
	l := &launcher{of: of, dir: dir}
	t.Cleanup(func() {
		if l.instance != nil {
			l.Kill(t)
		}
		if l.keep {
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing the node's folder: %v", err)
		}
	})
	if err := os.Mkdir(l.folder(), 0o755); err != nil {
		t.Fatalf("making the folder of the test: %v", err)
	}
	l.run(t, "setup", of.Setup)
	return l
}

// folder is {dir}.
func (l *launcher) folder() string { return filepath.Join(l.dir, "d") }

func (l *launcher) logFile() string { return filepath.Join(l.dir, "plugin.log") }

// filled replaces {dir} in a text.
func (l *launcher) filled(text string) string { return strings.ReplaceAll(text, "{dir}", l.folder()) }

// run runs a command of the file, if there is one.
func (l *launcher) run(t conformance.T, key string, command []string) {
	t.Helper()
	if len(command) == 0 {
		return
	}
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = l.filled(word)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("the command %q: %v\n%s", key, err, out)
	}
}

// begin launches the plugin with a config.
func (l *launcher) begin(t conformance.T, kind host.Type, config json.RawMessage) {
	t.Helper()
	if err := l.try(kind, config); err != nil {
		t.Fatalf("%s", l.failed(err))
	}
}

// failed describes the error of a launch, and states what the author may do about it.
func (l *launcher) failed(err error) string {
	switch {
	case errors.Is(err, host.ErrConfig):
		text := strings.Join(strings.Fields(err.Error()), " ")
		return text + `. Give the plugin's config: in the file of -config, this is the key "config"`
	case errors.Is(err, host.ErrNoHandshake):
		return strings.TrimSpace(fmt.Sprintf("%v\n%s", err, l.Log())) + "\nA storage plugin (CSI) is tested with a file that names a volume: docs/plugin-tests.md describes it"
	}
	return fmt.Sprintf("%v\n%s", err, l.Log())
}

// try is like begin, but returns the error.
func (l *launcher) try(kind host.Type, config json.RawMessage) error {
	args := make([]string, len(l.of.Args))
	for i, arg := range l.of.Args {
		args[i] = l.filled(arg)
	}
	var err error
	l.program, err = host.New(host.Options{
		Type: kind, Path: l.of.Path, Args: args, Config: bytes.ReplaceAll(config, []byte("{dir}"), []byte(l.folder())),
		Env:       l.environment(),
		SocketDir: filepath.Join(l.dir, "s"), LogFile: l.logFile(),
	})
	if err != nil {
		return fmt.Errorf("the plugin's program: %w", err)
	}
	return l.launch()
}

// environment is that of the plugin's process: as on a node, and with the mark of the plugin.
func (l *launcher) environment() []string {
	own := map[string]string{ofPlugin: "1"}
	for name, value := range l.of.Env {
		own[name] = l.filled(value)
	}
	return environment.Of(os.Environ(), own)
}

func (l *launcher) launch() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	instance, err := l.program.Launch(ctx, host.Record{}, func(host.Record) error { return nil })
	if err != nil {
		return fmt.Errorf("launching the plugin: %w", err)
	}
	l.instance = instance
	return nil
}

// Kill kills the plugin and returns when it has ended.
func (l *launcher) Kill(t conformance.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.instance.Kill(ctx); err != nil {
		t.Errorf("killing the plugin: %v", err)
	}
}

// Launch starts the plugin again.
func (l *launcher) Launch(t conformance.T) {
	t.Helper()
	if err := l.launch(); err != nil {
		t.Fatalf("%s", l.failed(err))
	}
}

// mostLog is the largest part of the log in a finding, in bytes.
const mostLog = 4096

// Log returns the end of the plugin's log. If the plugin has crashed, it returns the beginning of the
// crash, because the dump of a crash may be longer than the part that a finding has.
func (l *launcher) Log() string {
	f, err := os.Open(l.logFile())
	if err != nil {
		return ""
	}
	defer f.Close()
	last := crash.Find(f)
	if size, err := f.Seek(0, io.SeekEnd); err != nil || !last.Crash || size-last.Offset < mostLog {
		last.Offset = max(0, size-mostLog)
	}
	text, _ := io.ReadAll(io.NewSectionReader(f, last.Offset, mostLog))
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return '?' // control characters could change the terminal
	}, string(text))
}
