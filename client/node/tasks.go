package node

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
)

// killWait is how long a kill waits for the end of the processes.
const killWait = time.Second

// tasks creates and removes the parts of a task's start that the driver does not own: folders, a
// control group, a log keeper.
type tasks struct {
	// node returns the registered node.
	node   func() *cluster.Node
	region string
	dirs   *allocdir.Folders
	groups cgroup.Hierarchies
	logs   *logs
	// volumes is the folder of the node's volumes, and storage has the sockets of storage plugins.
	volumes string
	storage *storagePlugins
	// shims is the folder in which raw_exec keeps its shims, unless its configuration names another one.
	shims string
	// rotates reports whether a driver writes logs itself.
	rotates func(driver string) bool
	// mayStart returns an error if a task of the allocation must not start any more.
	mayStart func(*cluster.Allocation) error
	logger   *slog.Logger
}

// newTaskID returns a new id that the node has never used, in the format of the reference. The
// plugin protocol permits only UTF-8.
func newTaskID(alloc cluster.AllocID, task string) driver.TaskID {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // it never fails
	return driver.TaskID(strings.ToValidUTF8(string(alloc)+"/"+task, "\uFFFD") + "/" + hex.EncodeToString(random))
}

// groupName is the name of a task's control group. Released plugins expect ALLOC.TASK. Other names
// would be ambiguous or too long for some ids, which get a hash.
func groupName(alloc cluster.AllocID, task string) string {
	name := pathname.Encode(string(alloc)) + "." + pathname.Encode(task)
	if strings.Contains(string(alloc), ".") || len(name) > pathname.MaxLength {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", alloc, task))
		return "=" + hex.EncodeToString(sum[:])
	}
	return name
}

// group returns the control group of a task, or nil if the machine has none.
func (t *tasks) group(alloc cluster.AllocID, task string) (*cgroup.Group, error) {
	g, err := t.groups.Open(groupName(alloc, task))
	if errors.Is(err, cgroup.ErrNone) {
		return nil, nil
	}
	return g, err
}

// build creates the folders of an allocation.
func (t *tasks) build(alloc *cluster.Allocation) error {
	return t.dirs.Build(string(alloc.ID), t.tasksOf(alloc))
}

// tasksOf returns the tasks of an allocation with the users that own their folders.
func (t *tasks) tasksOf(alloc *cluster.Allocation) (all []allocdir.Task) {
	group := groupOf(alloc)
	if group == nil {
		return nil
	}
	for _, task := range group.Tasks {
		if task == nil {
			continue
		}
		all = append(all, allocdir.Task{Name: task.Name, User: t.ownerOf(alloc, group, task)})
	}
	return all
}

// ownerOf returns the user who owns the folders of a task, or "" if the user does not exist. The
// start of the task then fails with this reason.
func (t *tasks) ownerOf(alloc *cluster.Allocation, group *cluster.TaskGroup, task *cluster.Task) string {
	env, err := t.environment(alloc, group, task, driver.FSNone, nil)
	if err != nil {
		return ""
	}
	name, err := env.Interpolate(task.User)
	if err != nil {
		return ""
	}
	if _, err := user.Lookup(name); err != nil {
		if _, err := user.LookupId(name); err != nil {
			return ""
		}
	}
	return name
}

func (t *tasks) remove(ctx context.Context, alloc cluster.AllocID) error {
	return t.dirs.Remove(ctx, string(alloc))
}

func (t *tasks) logOf(alloc cluster.AllocID, task string) logPlace {
	return logPlace{folder: t.dirs.Logs(string(alloc)), task: allocdir.TaskFolder(task)}
}

// kill kills the processes of a task. If the driver does not keep its tasks in the client's cgroup,
// kill calls DestroyTask first. If the client has no record of the start, its shims stop it first.
func (t *tasks) kill(ctx context.Context, d driver.Driver, task client.TaskRef) ([]client.Process, error) {
	if task.ID == "" {
		if err := t.endShims(ctx, task); err != nil {
			t.logger.Warn("the shims of a task did not stop it: the client kills its control group", "alloc", task.Alloc, "task", task.Task, "error", err)
		}
	}
	if d != nil && !d.Capabilities().HostCgroup {
		if err := t.destroy(ctx, d, task); err != nil {
			return nil, err
		}
	}
	group, err := t.group(task.Alloc, task.Task)
	if err != nil || group == nil {
		return nil, err
	}
	return killGroup(ctx, group)
}

// killGroup kills the processes of a group, and returns those that are left after about a second.
func killGroup(ctx context.Context, group *cgroup.Group) ([]client.Process, error) {
	short, cancel := context.WithTimeout(ctx, killWait)
	defer cancel()
	if err := group.Kill(short); err != nil {
		return nil, err
	}
	err := group.Wait(short)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	remaining, err := group.Remaining()
	if err != nil {
		return nil, err
	}
	var left []client.Process
	for _, p := range remaining {
		left = append(left, client.Process{PID: p.PID, Command: p.Command, State: string(rune(p.State))})
	}
	if len(left) == 0 { // the kernel does not list processes that are exiting
		populated, err := group.Populated()
		if err == nil && populated {
			err = fmt.Errorf("control group %s still has processes, which the kernel does not list", group.Name())
		}
		return nil, err
	}
	return left, nil
}

// destroy calls DestroyTask. An unknown task is a success.
func (t *tasks) destroy(ctx context.Context, d driver.Driver, task client.TaskRef) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := d.Destroy(ctx, task.ID, true)
	switch class := driver.ClassOf(err); {
	case err == nil, class == driver.NotFound:
		return nil
	case class.Uncertain(), !d.Capabilities().HostCgroup:
		return err
	}
	// A process may have left the control group. Then the driver reports that the task runs.
	if status, failed := d.Inspect(ctx, task.ID); failed == nil && status.State == driver.TaskRunning {
		return err
	}
	t.logger.Warn("a driver could not destroy a task; the client kills the control group of the task", "driver", task.Driver, "task", string(task.ID), "error", err)
	return nil
}

// endShims ends all starts of a task of which the client has no record, by the shims of raw_exec. The
// grace of the task is lost with the record.
func (t *tasks) endShims(ctx context.Context, task client.TaskRef) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	starts, err := shim.Starts(t.shims, string(task.Alloc), task.Task)
	failed := []error{err}
	for _, start := range starts {
		t.logger.Warn("a task runs of which the client has no record: the client stops it", "alloc", task.Alloc, "task", task.Task)
		failed = append(failed, start.End(ctx, syscall.SIGINT, cluster.DefaultKillTimeout))
	}
	return errors.Join(failed...)
}

// awaitEmpty waits until a task has no process.
func (t *tasks) awaitEmpty(ctx context.Context, task client.TaskRef) error {
	group, err := t.group(task.Alloc, task.Task)
	if err != nil || group == nil {
		return err
	}
	return group.Wait(ctx)
}

// clean removes the remains of a start, except folders. It kills the processes even if the driver
// does not answer.
func (t *tasks) clean(ctx context.Context, d driver.Driver, task client.TaskRef) ([]client.Process, error) {
	var unknown error // not nil if the driver may still have the task
	switch {
	case task.ID == "":
		unknown = t.endShims(ctx, task)
	case d != nil:
		unknown = t.destroy(ctx, d, task)
	}
	group, err := t.group(task.Alloc, task.Task)
	if err != nil {
		return nil, errors.Join(unknown, err)
	}
	if group != nil {
		if left, err := killGroup(ctx, group); err != nil || len(left) > 0 {
			return left, errors.Join(unknown, err)
		}
	}
	if unknown != nil {
		return nil, unknown
	}
	if group != nil {
		if err := group.Remove(ctx); err != nil {
			return nil, err
		}
	}
	return nil, t.logs.end(ctx, t.logOf(task.Alloc, task.Task))
}
