package rawexec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// taskConfig is the config of a task.
type taskConfig struct {
	Command string   `codec:"command"`
	Args    []string `codec:"args"`
}

// state is the driver's part of a handle. Its version is handleVersion.
type state struct {
	Folder shim.Folder      `json:"folder"`
	Shim   process.Identity `json:"shim"`
	// Task is the first process of the task, or zero in the handle of an older driver.
	Task   process.Identity `json:"task"`
	Cgroup string           `json:"cgroup,omitempty"`
}

// Start starts a task.
func (d *Driver) Start(ctx context.Context, c *driver.TaskConfig) ([]byte, error) {
	config := d.current()
	if !config.Enabled {
		return nil, errors.New("the raw_exec driver is not enabled on this node")
	}
	spec, err := specOf(c)
	if err != nil {
		return nil, err
	}
	group, limits, err := d.machine.choose(c)
	if err != nil {
		return nil, err
	}
	if group != nil {
		spec.Cgroup, spec.OwnCgroup, spec.Root = group.Path(), limits != nil, d.machine.root
	}
	t := &task{id: c.ID, config: c, folder: shim.FolderOf(config.ShimDir, string(c.ID)), done: make(chan struct{})}
	if err := d.claim(t, spec); err != nil {
		return nil, err
	}
	r, err := d.machine.launch(ctx, t.folder, group, limits, spec)
	d.mu.Lock()
	t.known = state{Folder: t.folder, Shim: r.Shim, Task: r.Task, Cgroup: spec.Cgroup}
	d.adopt(t)
	d.mu.Unlock()
	if err != nil {
		// Destroy the task even if the host no longer waits.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("start %s: %w", spec.Path, err), d.Destroy(ctx, t.id, true))
	}
	return json.Marshal(t.known)
}

// claim adds a new task, and writes its first record. After that a second start with the same id
// fails.
func (d *Driver) claim(t *task, spec *shim.Spec) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tasks[t.id] != nil {
		return shim.ErrUsed
	}
	if err := t.folder.Create(spec); err != nil {
		return err
	}
	d.tasks[t.id] = t
	return nil
}

// specOf converts a task's config.
func specOf(c *driver.TaskConfig) (*shim.Spec, error) {
	var t taskConfig
	if err := sdk.Decode(c.Config, &t); err != nil {
		return nil, err
	}
	dir := filepath.Join(c.AllocDir, c.Name)
	switch {
	case t.Command == "":
		return nil, errors.New("the config has no command")
	case strings.Contains(strings.Join(append(t.Args, t.Command), ""), "\x00"):
		return nil, errors.New("the command has a zero byte")
	case len(c.Mounts) > 0:
		return nil, errors.New("raw_exec has no mounts: its tasks see the files of the node")
	case c.Network != nil && c.Network.Mode != driver.NetworkHost:
		return nil, errors.New("raw_exec has only the network of the host")
	case !filepath.IsAbs(c.AllocDir) || c.Name == "" || strings.ContainsAny(c.Name, "/\x00") || c.Name == "..":
		return nil, fmt.Errorf("%q is not the folder of a task", dir)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the folder of the task does not exist: %s", dir)
	}
	env := maps.Clone(c.DeviceEnv)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, c.Env)
	path, err := lookUp(t.Command, dir, env["PATH"])
	if err != nil {
		return nil, err
	}
	user, err := lookUpUser(c.User)
	if err != nil {
		return nil, err
	}
	spec := &shim.Spec{TaskID: string(c.ID), Path: path, Args: append([]string{t.Command}, t.Args...), Dir: dir, User: user}
	for _, key := range slices.Sorted(maps.Keys(env)) {
		spec.Env = append(spec.Env, key+"="+env[key])
	}
	if spec.Stdout, err = parseLog(c.StdoutPath); err != nil {
		return nil, err
	}
	spec.Stderr, err = parseLog(c.StderrPath)
	return spec, err
}

// lookUp finds the program of a command.
func lookUp(command, dir, path string) (string, error) {
	var candidates []string
	switch {
	case filepath.IsAbs(command):
		candidates = []string{command}
	default:
		candidates = []string{filepath.Join(dir, "local", command), filepath.Join(dir, command)}
	}
	if !strings.Contains(command, "/") {
		if path == "" {
			path = "/usr/local/bin:/usr/bin:/bin"
		}
		for folder := range strings.SplitSeq(path, ":") {
			if filepath.IsAbs(folder) {
				candidates = append(candidates, filepath.Join(folder, command))
			}
		}
	}
	for _, c := range candidates {
		if info, err := os.Stat(c); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return c, nil
		}
	}
	if len(candidates) == 1 && candidates[0] == command {
		return "", fmt.Errorf("no program %q: the path is not an executable file", command)
	}
	return "", fmt.Errorf("no program %q: none of these is an executable file: %s", command, strings.Join(candidates, ", "))
}
