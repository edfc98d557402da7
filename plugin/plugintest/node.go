package plugintest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// mark is the variable by which the harness finds the processes of a task.
const mark = "NODEDRAIN_TEST_TASK"

// node is a node with a driver's program.
type node struct {
	*launcher
	noProcesses bool
	tasks       []driver.TaskID
}

var _ drivertest.Node = (*node)(nil)

func newNode(t drivertest.T, o Options) *node {
	n := &node{launcher: newLauncher(t, o.Program), noProcesses: o.NoProcesses}
	if err := os.Chmod(n.dir, 0o711); err != nil { // tasks of other users have folders in it
		t.Fatalf("making the node's folder: %v", err)
	}
	t.Cleanup(func() { n.clear(t) })
	n.begin(t, host.Driver, o.Config)
	return n
}

// clear kills the remaining processes of tasks.
func (n *node) clear(t drivertest.T) {
	for _, id := range n.tasks {
		found, err := n.find(id)
		if err != nil {
			t.Errorf("looking for processes: %v", err)
		}
		for _, p := range found {
			if err := process.Kill(context.Background(), p); err != nil {
				t.Errorf("killing %s: %v", p, err)
			}
		}
	}
}

func (n *node) Driver() driver.Driver { return n.instance.Driver() }

func (n *node) Task(t drivertest.T) *driver.TaskConfig {
	t.Helper()
	alloc := uuid.NewString()
	root := filepath.Join(n.dir, alloc)
	task := &driver.TaskConfig{
		ID: driver.TaskID(alloc + "/web/" + alloc[:8]), Name: "web", AllocDir: root,
		AllocID: alloc, GroupName: "group", JobName: "job", JobID: "job", Namespace: "default", NodeName: "node", NodeID: uuid.NewString(),
		StdoutPath: filepath.Join(root, "alloc", "logs", "web.stdout.0"),
		StderrPath: filepath.Join(root, "alloc", "logs", "web.stderr.0"),
		Resources:  driver.Resources{CPU: 100, MemoryMB: 64},
		Env: map[string]string{
			"PATH": os.Getenv("PATH"), "NOMAD_ALLOC_ID": alloc, "NOMAD_TASK_NAME": "web",
			"NOMAD_ALLOC_DIR":   filepath.Join(root, "alloc"),
			"NOMAD_TASK_DIR":    filepath.Join(root, "web", "local"),
			"NOMAD_SECRETS_DIR": filepath.Join(root, "web", "secrets"),
		},
	}
	task.Env[mark] = string(task.ID)
	for _, dir := range []string{"alloc/logs", "alloc/tmp", "alloc/data", "web/local", "web/secrets", "web/private", "web/tmp"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatalf("making the folders of the task: %v", err)
		}
	}
	for _, path := range []string{task.StdoutPath, task.StderrPath} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatalf("making the log files of the task: %v", err)
		}
	}
	n.tasks = append(n.tasks, task.ID)
	return task
}

func (n *node) Processes(id driver.TaskID) ([]drivertest.Process, bool) {
	if n.noProcesses {
		return nil, false
	}
	found, err := n.find(id)
	if err != nil {
		return []drivertest.Process{{Text: err.Error()}}, true
	}
	var list []drivertest.Process
	for _, p := range found {
		d, err := p.Describe()
		if err != nil {
			continue
		}
		found := drivertest.Process{Text: d.String(), AsDriver: userOf(p.PID) == os.Geteuid()}
		if environment, err := process.Environment(p.PID); err == nil {
			found.Leaked = n.leaked(environment)
		}
		list = append(list, found)
	}
	return list, true
}

// leaked returns the variables of the plugin's file, and the mark of the plugin, that are in the
// environment of a task's process.
func (n *node) leaked(environment []byte) (names []string) {
	if has(environment, ofPlugin+"=1") {
		names = append(names, ofPlugin)
	}
	for _, name := range slices.Sorted(maps.Keys(n.of.Env)) {
		if name != "PATH" && has(environment, name+"="+n.filled(n.of.Env[name])) { // the task has a PATH
			names = append(names, name)
		}
	}
	return names
}

// userOf returns the effective user of a process, or -1 if it has ended.
func userOf(pid int) int {
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "Uid:" {
			if uid, err := strconv.Atoi(words[2]); err == nil {
				return uid
			}
		}
	}
	return -1
}

// has reports whether an environment has a variable with its value.
func has(environment []byte, variable string) bool {
	return bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+variable+"\x00"))
}

// find returns the living processes that have the task's mark.
func (*node) find(id driver.TaskID) ([]process.Identity, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	var found []process.Identity
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environment, err := process.Environment(pid)
		if err != nil && !errors.Is(err, process.ErrGone) && !errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("looking for processes: %w", err)
		}
		if !has(environment, mark+"="+string(id)) {
			continue
		}
		if identity, err := process.Identify(pid); err == nil {
			found = append(found, identity)
		}
	}
	return found, nil
}

func (*node) Stdout(task *driver.TaskConfig) (string, error) {
	text, err := os.ReadFile(task.StdoutPath)
	return string(text), err
}
