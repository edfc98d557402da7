package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/taskenv"
)

// start starts a task. An error of the node is recoverable, because a retry may succeed. An error
// of the task's config is not.
func (t *tasks) start(ctx context.Context, d driver.Driver, ref client.TaskRef, alloc *cluster.Allocation, devices []device.Part) (driver.Handle, error) {
	fail := func(class driver.Class, err error) (driver.Handle, error) {
		return nil, &driver.Error{Class: class, Call: "StartTask", Err: err}
	}
	group, task := taskOf(alloc, ref.Task)
	if task == nil {
		return fail(driver.Fatal, fmt.Errorf("the job has no task %q in group %q", ref.Task, alloc.TaskGroup))
	}
	if err := refuseUnsupported(task, d.Capabilities()); err != nil {
		return fail(driver.Fatal, err)
	}
	if err := refuseStorage(task, ref.Driver, d.Capabilities()); err != nil {
		return fail(driver.Fatal, err)
	}
	visible, err := views(t.volumes, alloc, group, task, ref.Driver, d.Capabilities())
	if err != nil {
		return fail(driver.Fatal, err)
	}
	needs, err := device.Merge(devices)
	if err != nil {
		return fail(driver.Recoverable, err)
	}
	reserved, err := fit(needs, ref.Driver, d.Capabilities())
	if err != nil {
		return fail(driver.Fatal, err)
	}
	env, err := t.environment(alloc, group, task, d.Capabilities().FSIsolation, reserved.Env)
	if err != nil {
		return fail(driver.Fatal, err)
	}
	config, err := d.Encode(task.Config, env.Lookup)
	if err != nil {
		return fail(driver.Fatal, err)
	}
	user, err := env.Interpolate(task.User)
	if err != nil {
		return fail(driver.Fatal, fmt.Errorf("the user of the task: %w", err))
	}
	if err := t.admit(alloc); err != nil {
		return fail(driver.Recoverable, fmt.Errorf("access to volumes: %w", err))
	}
	for _, v := range visible {
		if v.mount != nil {
			reserved.Mounts = append(reserved.Mounts, *v.mount)
			continue
		}
		if err := t.dirs.Link(string(alloc.ID), allocdir.Task{Name: task.Name, User: t.ownerOf(alloc, group, task)}, v.link, v.target); err != nil {
			return fail(driver.Recoverable, err)
		}
	}
	if task.CSIPlugin != nil {
		reserved.Mounts = append(reserved.Mounts, t.storage.placeOf(alloc.ID, task, d.Capabilities().FSIsolation).mounts...)
	}
	if err := t.storage.prepare(alloc.ID, task); err != nil {
		return fail(driver.Recoverable, fmt.Errorf("the socket of the storage plugin: %w", err))
	}
	resources := resourcesOf(alloc, group, task)
	if resources.Cgroup, err = t.createGroup(alloc.ID, task.Name, resources, alloc.Cores.Of(task.Name)); err != nil {
		return fail(driver.Recoverable, err)
	}
	if err := t.mayStart(alloc); err != nil {
		return fail(driver.Recoverable, err)
	}
	paths, err := t.logs.begin(ctx, d, t.rotates(ref.Driver), t.logOf(alloc.ID, task.Name), task.Logs())
	if err != nil {
		return fail(driver.Recoverable, fmt.Errorf("the log of the task: %w", err))
	}
	node := t.node()
	return d.Start(ctx, &driver.TaskConfig{
		ID: ref.ID, Name: allocdir.TaskFolder(task.Name), Config: config, User: user,
		Env: env.Map(), DeviceEnv: reserved.Env, Mounts: reserved.Mounts, Devices: reserved.Devices,
		Resources: resources,
		AllocDir:  t.dirs.Alloc(string(alloc.ID)), StdoutPath: paths.stdout, StderrPath: paths.stderr,
		AllocID: string(alloc.ID), GroupName: alloc.TaskGroup, JobName: string(alloc.JobID), JobID: string(alloc.JobID),
		Namespace: string(alloc.Namespace), NodeName: node.Name, NodeID: string(node.ID),
	})
}

// resourcesOf returns what the driver gets of the resources and ports of a task, but for its control group.
func resourcesOf(alloc *cluster.Allocation, group *cluster.TaskGroup, task *cluster.Task) driver.Resources {
	r := driver.Resources{CPU: task.Resources.CPU, Cores: alloc.Cores.Of(task.Name).String(), MemoryMB: task.Resources.MemoryMB, MemoryMaxMB: task.MemoryMaxMB}
	if alloc.Ports == nil {
		return r
	}
	static := make(map[string]bool)
	for of, request := range group.PortRequests() {
		static[request.Label] = static[request.Label] || of == task.Name && request.Static != 0
	}
	for _, p := range alloc.Ports.All {
		switch {
		case p.Task == "":
			r.Ports = append(r.Ports, driver.Port{Label: p.Label, Number: p.Number, To: p.To, HostIP: alloc.Ports.IP})
			continue
		case p.Task != task.Name:
			continue
		case r.TaskNetwork == nil:
			r.TaskNetwork = &driver.TaskNetwork{IP: alloc.Ports.IP}
		}
		one := driver.TaskPort{Label: p.Label, Number: p.Number}
		if static[p.Label] {
			r.TaskNetwork.Static = append(r.TaskNetwork.Static, one)
		} else {
			r.TaskNetwork.Dynamic = append(r.TaskNetwork.Dynamic, one)
		}
	}
	return r
}

// environment returns the environment of a task. It is also used to replace variables in strings of
// the job.
func (t *tasks) environment(alloc *cluster.Allocation, group *cluster.TaskGroup, task *cluster.Task, isolation driver.FSIsolation, devices map[string]string) (*taskenv.Env, error) {
	id := string(alloc.ID)
	return taskenv.New(taskenv.Source{
		Node: t.node(), Region: t.region, Alloc: alloc, Group: group, Task: task,
		Dirs: taskenv.DirsOf(isolation, t.dirs.Alloc(id), t.dirs.Task(id, task.Name)), Devices: devices,
		Endpoint: t.storage.endpointOf(alloc.ID, task, isolation),
	})
}

// recover passes a task to a new process of its driver.
func (t *tasks) recover(ctx context.Context, d driver.Driver, ref client.TaskRef, alloc *cluster.Allocation, handle driver.Handle) error {
	limits := cluster.DefaultLogConfig()
	if _, task := taskOf(alloc, ref.Task); task != nil {
		limits = task.Logs()
	}
	if err := t.logs.resume(ctx, t.logOf(ref.Alloc, ref.Task), limits); err != nil {
		// Without a reader the task blocks at its next line, but it is still alive.
		t.logger.Error("the output of a task has no reader, so the task may block when it writes", "task", string(ref.ID), "error", err)
	}
	return d.Recover(ctx, ref.ID, handle)
}

// groupOf returns the group of an allocation, or nil.
func groupOf(alloc *cluster.Allocation) *cluster.TaskGroup {
	if alloc == nil || alloc.Job == nil {
		return nil
	}
	return alloc.Job.Group(alloc.TaskGroup)
}

// taskOf returns a task and its group, or nil.
func taskOf(alloc *cluster.Allocation, name string) (*cluster.TaskGroup, *cluster.Task) {
	group := groupOf(alloc)
	if group == nil {
		return nil, nil
	}
	for _, task := range group.Tasks {
		if task != nil && task.Name == name {
			return group, task
		}
	}
	return group, nil
}

// refuseUnsupported returns an error if the node does not support a request of a task.
func refuseUnsupported(task *cluster.Task, c driver.Capabilities) error {
	switch {
	case c.MustCreateNetwork:
		return errors.New("the driver needs a separate network for each allocation, and this client creates none")
	case task.KillSignal != "" && !c.SendSignals:
		return fmt.Errorf("the task has the kill signal %s, and the driver cannot send signals", task.KillSignal)
	}
	return nil
}

// createGroup creates the control group of a task, with its owner. The path is empty if the machine has no
// control groups.
func (t *tasks) createGroup(alloc cluster.AllocID, task string, r driver.Resources, cores cluster.Cores) (string, error) {
	// A thousandth of a core weighs about as much as one share of the kernel's 1,024.
	group, err := t.groups.Create(groupName(alloc, task), cgroup.Limits{
		CPUShares: r.CPU, MemoryBytes: r.MemoryBytes(), MemoryLowBytes: r.MemoryLowBytes(), Cores: cores,
	})
	switch {
	case errors.Is(err, cgroup.ErrNone):
		return "", nil
	case err != nil:
		return "", err
	}
	if err := group.SetOwner(groupOwner(t.node().ID, alloc, task)); err != nil && !errors.Is(err, cgroup.ErrNoOwner) {
		return "", err
	}
	return group.Path(), nil
}
