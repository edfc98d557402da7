package rawexec

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// Name is the name of the driver in a job.
const Name = "raw_exec"

// handleVersion is the version of the state in a handle. Increase it when an older driver cannot
// read the state.
const handleVersion = 1

// Options are the options of [New]. The zero value is for production.
type Options struct {
	// Program is the program of the shim. It is started with shim.Argument as its only argument.
	// Empty means the running program.
	Program string
	// Root is the folder below which control groups are mounted. Empty means "/".
	Root string
	// Log is the log of the driver. Nil logs to stderr.
	Log *slog.Logger
}

// Driver is the raw_exec driver. Its methods may be called concurrently. Each task that has not
// been destroyed has two goroutines: they wait for the end of its shim, and of its first process.
type Driver struct {
	machine machine
	log     *slog.Logger
	events  events

	mu     sync.Mutex
	config config                  // guarded by mu
	tasks  map[driver.TaskID]*task // guarded by mu
}

// config is the config of the plugin.
type config struct {
	Enabled bool   `codec:"enabled"`
	ShimDir string `codec:"shim_dir"`
}

// New returns a driver. It has no task and is not enabled.
func New(o Options) *Driver {
	d := &Driver{machine: machine{program: o.Program, root: o.Root}, log: o.Log, tasks: map[driver.TaskID]*task{}}
	if d.machine.program == "" {
		d.machine.program = "/proc/self/exe" // this also works after the file was replaced
	}
	if d.machine.root == "" {
		d.machine.root = "/"
	}
	if d.log == nil {
		d.log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	}
	return d
}

// Info returns what never changes.
func (*Driver) Info() sdk.Info {
	return sdk.Info{
		Name:          Name,
		Version:       "1.0.0",
		HandleVersion: handleVersion,
		ConfigSchema: sdk.Object(map[string]*hclspec.Spec{
			"enabled":  sdk.Default(sdk.Attribute("bool", false), "false"),
			"shim_dir": sdk.Attribute("string", false),
		}),
		TaskSchema: sdk.Object(map[string]*hclspec.Spec{
			"command": sdk.Attribute("string", true),
			"args":    sdk.Attribute("list(string)", false),
		}),
	}
}

// Configure reads the plugin's config.
func (d *Driver) Configure(encoded []byte) error {
	var c config
	if err := sdk.Decode(encoded, &c); err != nil {
		return err
	}
	switch {
	case c.ShimDir == "" && os.Getuid() == 0:
		c.ShimDir = "/run/nodedrain/shims"
	case c.ShimDir == "":
		c.ShimDir = filepath.Join(os.TempDir(), "nodedrain-shims-"+strconv.Itoa(os.Getuid()))
	case !filepath.IsAbs(c.ShimDir):
		return fmt.Errorf("shim_dir must be an absolute path, not %q", c.ShimDir)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.config = c
	return nil
}

// Capabilities returns what the driver can do.
func (*Driver) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		SendSignals:  true,
		Exec:         true,
		FSIsolation:  driver.FSNone,
		NetworkModes: []driver.NetworkMode{driver.NetworkHost},
		NoMounts:     true,
	}
}

// Fingerprints reports once, because nothing changes while a driver runs.
func (d *Driver) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	report(d.fingerprint())
	<-ctx.Done()
	return context.Cause(ctx)
}

func (d *Driver) fingerprint() driver.Fingerprint {
	if !d.current().Enabled {
		return driver.Fingerprint{Health: driver.Undetected, Description: "raw_exec is not enabled: its tasks have the rights of the client"}
	}
	h, err := cgroup.Find(d.machine.root)
	if err != nil {
		return driver.Fingerprint{Health: driver.Unhealthy, Description: err.Error()}
	}
	return driver.Fingerprint{Health: driver.Healthy, Description: "healthy", Attributes: map[string]string{
		"driver." + Name:                   "1",
		"driver." + Name + ".cgroup":       h.Kind(),
		"driver." + Name + ".rotates_logs": "1",
	}}
}

func (d *Driver) current() config {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.config
}

// find returns a task that the driver has, or that has a folder.
func (d *Driver) find(id driver.TaskID) (*task, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tasks[id]; t != nil {
		return t, nil
	}
	folder := shim.FolderOf(d.config.ShimDir, string(id))
	exists, err := folder.Exists()
	if err != nil {
		return nil, fmt.Errorf("find task %q: %w", id, err)
	}
	if !exists {
		return nil, driver.ErrUnknownTask
	}
	// An earlier driver died during the start of this task, or the task is not recovered yet.
	t := &task{id: id, folder: folder, done: make(chan struct{})}
	d.adopt(t)
	return t, nil
}

// adopt adds a task and starts to watch it. The caller holds mu.
func (d *Driver) adopt(t *task) {
	d.tasks[t.id] = t
	go d.watch(t)           // ends with the task
	go d.reportRemaining(t) // ends with the task
}

// forget removes a destroyed task from the driver.
func (d *Driver) forget(t *task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tasks[t.id] == t {
		delete(d.tasks, t.id)
	}
}
