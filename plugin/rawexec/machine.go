package rawexec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
)

// machine gives the driver access to processes and control groups.
type machine struct {
	program string // of the shim
	root    string // below which control groups are mounted
}

// launch creates the control group of a task, if limits are given, and starts its shim.
func (m machine) launch(ctx context.Context, folder shim.Folder, group *cgroup.Group, limits *cgroup.Limits, spec *shim.Spec) (shim.Record, error) {
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
	return folder.Start(ctx, shim.Launch{Program: m.program, Fork: m.fork}, spec)
}

// shimGroup is the control group of all shims. The shims are not in the driver's control group,
// because a host may kill that one.
const shimGroup = "nodedrain-shims"

// fork starts a shim in the group of shims, if the machine has control groups.
func (m machine) fork(attr *syscall.SysProcAttr, start func() error) error {
	h, err := cgroup.Find(m.root)
	if err != nil {
		return err
	}
	if !h.Usable() {
		return start()
	}
	g, err := h.Create(shimGroup, cgroup.Limits{})
	if err != nil {
		return err
	}
	return g.Start(attr, start)
}

// choose returns the control group for a task: the group that the host passes, or a group that the
// driver will create, with its limits. It is nil if this user cannot create control groups.
func (m machine) choose(c *driver.TaskConfig) (*cgroup.Group, *cgroup.Limits, error) {
	h, err := cgroup.Find(m.root)
	if err != nil {
		return nil, nil, err
	}
	if assigned, err := h.OpenPath(c.Resources.Cgroup); err == nil &&
		(assigned.Name() == groupName(c) || strings.HasPrefix(assigned.Name(), pathname.Encode(c.AllocID)+".")) {
		return assigned, nil, nil
	}
	if !h.Usable() {
		return nil, nil, nil
	}
	limits, err := limitsOf(c.Resources)
	if err != nil {
		return nil, nil, err
	}
	g, err := h.OpenWith(groupName(c), *limits)
	return g, limits, err
}

func limitsOf(r driver.Resources) (*cgroup.Limits, error) {
	cores, err := cluster.ParseCores(r.Cores)
	return &cgroup.Limits{CPUShares: r.CPU, MemoryBytes: r.MemoryBytes(), MemoryLowBytes: r.MemoryLowBytes(), Cores: cores}, err
}

// groupName is the name of the group of a task whose host passes none.
func groupName(c *driver.TaskConfig) string { return pathname.Encode(c.AllocID + "." + c.Name) }

// killLost kills the processes in a handle if there is no record, and waits for their end for some seconds.
func (m machine) killLost(st state) error {
	if boot, err := process.BootID(); err != nil || boot != st.Shim.Boot {
		return err
	}
	killShim(st.Shim)
	return m.clear(shim.Record{Task: st.Task, Cgroup: st.Cgroup})
}

// group opens the control group of a task. It is nil if the task has none.
func (m machine) group(path string) (*cgroup.Group, error) {
	if path == "" {
		return nil, nil
	}
	h, err := cgroup.Find(m.root)
	if err != nil {
		return nil, err
	}
	return h.OpenPath(path)
}

// remaining describes the processes of a task. It is empty if none is left.
func (m machine) remaining(r shim.Record) string {
	pids, err := m.pids(r)
	if err != nil {
		return err.Error()
	}
	var all []process.Description
	for _, pid := range pids {
		switch d, err := process.Describe(pid); {
		case errors.Is(err, process.ErrGone):
		case err != nil:
			return err.Error()
		default:
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprint(all)
}

// clear kills the processes of a task once and waits for their end for some seconds.
func (m machine) clear(r shim.Record) error {
	ctx, cancel := context.WithTimeout(context.Background(), settleFor/2)
	defer cancel()
	g, err := m.group(r.Cgroup)
	if err != nil {
		return err
	}
	if g != nil {
		if err := g.Kill(ctx); err != nil {
			return err
		}
		return g.Wait(ctx)
	}
	// Without a control group only the task's session can be found.
	if r.Task.IsZero() {
		return nil
	}
	return process.KillSession(ctx, r.Task)
}

// measure returns the total usage of the processes of a task.
func (m machine) measure(r shim.Record) (process.Usage, time.Time, error) {
	pids, err := m.pids(r)
	if err != nil {
		return process.Usage{}, time.Time{}, err
	}
	var sum process.Usage
	for _, pid := range pids {
		switch u, err := process.UsageOf(pid); {
		case errors.Is(err, process.ErrGone):
		case err != nil:
			return process.Usage{}, time.Time{}, err
		default:
			sum.CPU += u.CPU
			sum.RSS += u.RSS
		}
	}
	return sum, time.Now(), nil
}

// pids returns the processes of a task: those of its control group, and the descendants of its shim,
// which may have left the group.
func (m machine) pids(r shim.Record) ([]int, error) {
	g, err := m.group(r.Cgroup)
	if err != nil {
		return nil, err
	}
	var pids []int
	if g != nil {
		if pids, err = g.PIDs(); err != nil {
			return nil, err
		}
	}
	if alive, err := r.Shim.Alive(); err != nil || !alive {
		return pids, err
	}
	below, err := process.Descendants(r.Shim.PID)
	for _, id := range below {
		pids = append(pids, id.PID)
	}
	slices.Sort(pids)
	return slices.Compact(pids), err
}
