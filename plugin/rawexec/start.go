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
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/client/driver"
	"github.com/seed-f9cf0b39/nodedrain/client/pathname"
	"github.com/seed-f9cf0b39/nodedrain/client/process"
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
	group, limits, err := d.chooseGroup(c)
	if err != nil {
		return nil, err
	}
	if group != nil {
		spec.Cgroup, spec.OwnCgroup, spec.Root = group.Path(), limits != nil, d.root
	}
	t := &task{id: c.ID, config: c, folder: shim.FolderOf(config.ShimDir, string(c.ID)), done: make(chan struct{})}
	if err := d.claim(t, spec); err != nil {
		return nil, err
	}
	r, err := d.launch(ctx, t, group, limits, spec)
	d.mu.Lock()
	t.known = state{Folder: t.folder, Shim: r.Shim, Cgroup: spec.Cgroup}
	d.adopt(t)
	d.mu.Unlock()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", spec.Path, err), d.undo(t))
	}
	return json.Marshal(t.known)
}

// claim makes a new task known, and writes its first record. A second start with its id fails from
// now on.
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

// launch creates the control group and starts the shim.
func (d *Driver) launch(ctx context.Context, t *task, group *cgroup.Group, limits *cgroup.Limits, spec *shim.Spec) (shim.Record, error) {
	if group != nil {
		if limits != nil {
			if err := group.Create(*limits); err != nil {
				return shim.Record{}, err
			}
		}
		populated, err := group.Populated()
		if err != nil {
			return shim.Record{}, err
		}
		if populated {
			remaining, _ := group.Remaining()
			return shim.Record{}, fmt.Errorf("control group %s has processes of another start: %v", group.Path(), remaining)
		}
	}
	return t.folder.Start(ctx, shim.Launch{Program: d.program, Fork: d.fork}, spec)
}

// undo destroys a task whose start has failed, also after the host has given up.
func (d *Driver) undo(t *task) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return d.Destroy(ctx, t.id, true)
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
	return "", fmt.Errorf("no program %q in %s", command, strings.Join(candidates, ", "))
}

// chooseGroup returns the control group for a task: the one that the host passes, or one that the
// driver will create, with its limits. It is nil where the machine has none for this user.
func (d *Driver) chooseGroup(c *driver.TaskConfig) (*cgroup.Group, *cgroup.Limits, error) {
	h, err := cgroup.Find(d.root)
	if err != nil {
		return nil, nil, err
	}
	if given, err := h.OpenPath(c.Resources.Cgroup); err == nil &&
		(given.Name() == groupName(c) || strings.HasPrefix(given.Name(), pathname.Encode(c.AllocID)+".")) {
		return given, nil, nil
	}
	if !h.Usable() {
		return nil, nil, nil
	}
	g, err := h.Open(groupName(c))
	return g, &cgroup.Limits{CPUShares: c.Resources.CPU, MemoryBytes: c.Resources.MemoryMB << 20}, err
}

// groupName is the name of the group of a task whose host passes none.
func groupName(c *driver.TaskConfig) string { return pathname.Encode(c.AllocID + "." + c.Name) }
