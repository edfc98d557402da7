package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/internal/await"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// A Group is the control group of one task. Its methods may be called concurrently. Folders that do
// not exist have no processes.
type Group struct {
	name string
	home Hierarchies
	v2   string   // folder in cgroup v2, or empty
	v1   []folder // in the order of usedV1, then the cpuset of a group with cores for itself
	// hasCores: the group has cores for itself.
	hasCores bool
}

// reserve makes the group one with cores for itself.
func (g *Group) reserve() {
	if g.hasCores {
		return
	}
	g.hasCores = true
	v2, v1 := g.home.reserved(g.name)
	g.v2 = v2
	if v1 != "" {
		g.v1 = append(g.v1, folder{controller: "cpuset", path: v1})
	}
}

// folder is the folder of a group in a hierarchy of v1.
type folder struct{ controller, path string }

// Name returns the name that the group was opened with.
func (g *Group) Name() string { return g.name }

// Path is the folder that a host passes to a driver as cpuset_cgroup: the one of v2, or else the
// first of v1.
func (g *Group) Path() string {
	if g.v2 != "" {
		return g.v2
	}
	return g.v1[0].path
}

// Populated reports whether a process of the group lives. A zombie does not, unless it has living
// threads.
func (g *Group) Populated() (bool, error) {
	if g.v2 != "" {
		switch b, err := os.ReadFile(filepath.Join(g.v2, "cgroup.events")); {
		case isGone(err):
		case err != nil:
			return false, fmt.Errorf("ask whether %s has processes: %w", g.name, err)
		default:
			if n, ok := value(string(b), "populated"); !ok || n != 0 {
				return true, nil
			}
		}
	}
	threads, err := g.threadsV1()
	return len(threads) > 0, err
}

// PIDs returns the processes of the group and of all groups below it, sorted. It may be empty while
// the group is populated: it is for descriptions and not for decisions.
func (g *Group) PIDs() ([]int, error) {
	var pids []int
	if g.v2 != "" {
		err := walk(g.v2, func(dir string) error {
			listed, err := readPIDs(filepath.Join(dir, "cgroup.procs"))
			if errors.Is(err, unix.EOPNOTSUPP) { // a group of threads
				listed, err = readPIDs(filepath.Join(dir, "cgroup.threads"))
			}
			pids = append(pids, listed...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list the processes of %s: %w", g.name, err)
		}
	}
	threads, err := g.threadsV1()
	if err != nil {
		return nil, err
	}
	pids = append(pids, threads...)
	for i, pid := range pids {
		leader, err := process.Leader(pid)
		switch {
		case errors.Is(err, process.ErrGone): // it ended after it was listed
		case err != nil:
			return nil, fmt.Errorf("list the processes of %s: %w", g.name, err)
		default:
			pids[i] = leader
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// threadsV1 returns the threads of all folders of v1.
func (g *Group) threadsV1() ([]int, error) {
	var all []int
	for _, f := range g.v1 {
		err := walk(f.path, func(dir string) error {
			listed, err := readPIDs(filepath.Join(dir, "tasks"))
			if err != nil {
				return err
			}
			members, err := f.members(listed)
			all = append(all, members...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list the threads of %s: %w", g.name, err)
		}
	}
	return all, nil
}

// members leaves out a thread that only forks a process into the group, see [Group.Start]: its process
// is elsewhere. Without this a kill of the group would kill the driver that forks, and a wait would
// wait for the driver's end. The kernel shows a thread that has ended in no group. So a process whose
// first thread has ended counts: one that forks keeps its first thread.
func (f folder) members(threads []int) (members []int, err error) {
	for _, thread := range threads {
		leader, err := process.Leader(thread)
		ended := false
		if err == nil && leader != thread {
			ended, err = process.LeaderEnded(leader)
		}
		if err == nil && leader != thread && !ended {
			var at map[string]string
			at, err = positions(leader, leader)
			if place := filepath.Join(f.mounted(), at[f.controller]); err == nil && place != f.path && !strings.HasPrefix(place, f.path+"/") {
				continue
			}
		}
		if err != nil && !isGone(err) && !errors.Is(err, process.ErrGone) {
			return nil, err
		}
		members = append(members, thread)
	}
	return members, nil
}

// mounted is the mount point: MOUNT/nomad/NAME.
func (f folder) mounted() string { return filepath.Dir(filepath.Dir(f.path)) }

// Killed describes the processes of a group that have got SIGKILL and have not ended.
func Killed(g *Group) ([]process.Description, error) { return describe(g, process.Killed) }

// Remaining describes the processes that the group still has.
func (g *Group) Remaining() ([]process.Description, error) {
	return describe(g, func(int) bool { return true })
}

// describe describes the processes of a group that count.
func describe(g *Group, counts func(pid int) bool) ([]process.Description, error) {
	pids, err := g.PIDs()
	if err != nil {
		return nil, err
	}
	var all []process.Description
	for _, pid := range pids {
		if !counts(pid) {
			continue
		}
		switch d, err := process.Describe(pid); {
		case errors.Is(err, process.ErrGone):
		case err != nil:
			return nil, err
		default:
			all = append(all, d)
		}
	}
	return all, nil
}

// Wait returns nil when no process of the group lives, or the cause of ctx. The kernel wakes it in
// v2. In v1 it waits for the end of each process; one that left the group alive delays the answer.
func (g *Group) Wait(ctx context.Context) error {
	if g.v2 != "" {
		if err := g.waitUnified(ctx); err != nil {
			return fmt.Errorf("wait for the end of %s: %w", g.name, err)
		}
	}
	for {
		threads, err := g.threadsV1()
		if err != nil || len(threads) == 0 {
			return err
		}
		leader, err := process.Leader(threads[0])
		if errors.Is(err, process.ErrGone) {
			continue
		}
		if err != nil {
			return err
		}
		if err := waitProcess(ctx, leader); err != nil {
			return fmt.Errorf("wait for the end of %s: %w", g.name, err)
		}
	}
}

// recheck is the time after which a wait reads again without an event. The kernel delays an event by up to 10 ms
// after the last one, and drops it if the group is removed in that time.
const recheck = 2 * time.Second

// waitUnified waits for "populated 0" in v2.
func (g *Group) waitUnified(ctx context.Context) error {
	for {
		brief, end := context.WithTimeout(ctx, recheck)
		err := g.waitEvent(brief)
		end()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return err
		}
	}
}

// waitEvent waits for the event of "populated 0".
func (g *Group) waitEvent(ctx context.Context) error {
	f, err := os.Open(filepath.Join(g.v2, "cgroup.events"))
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 256)
	return await.Change(ctx, f, func(fd int) (bool, error) {
		n, err := unix.Pread(fd, buf, 0)
		if isGone(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		populated, ok := value(string(buf[:n]), "populated")
		return ok && populated == 0, nil
	})
}

func waitProcess(ctx context.Context, pid int) error {
	id, err := process.Identify(pid)
	if errors.Is(err, process.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	return process.AwaitEnd(ctx, id)
}

// Remove deletes the folders, those of child groups first. It tries for about a second, since the
// kernel reports a group as busy for a moment after its last process has ended. The error names the
// processes that remain. Parents stay.
func (g *Group) Remove(ctx context.Context) error {
	const first, tries = time.Millisecond, 10
	wait := first
	for try := 1; ; try++ {
		err := g.removeOnce()
		if err == nil {
			return nil
		}
		if try == tries || !errors.Is(err, unix.EBUSY) {
			if remaining, _ := g.Remaining(); len(remaining) > 0 {
				err = fmt.Errorf("%w; remaining: %v", err, remaining)
			}
			return fmt.Errorf("remove control group %s: %w", g.name, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(context.Cause(ctx), err)
		case <-timer.C:
		}
		wait *= 2
	}
}

func (g *Group) removeOnce() error {
	var failed []error
	for _, dir := range g.folders() {
		var below []string
		err := walk(dir, func(dir string) error {
			below = append(below, dir)
			return nil
		})
		if err != nil {
			failed = append(failed, err)
		}
		for _, dir := range slices.Backward(below) {
			if err := unix.Rmdir(dir); err != nil && !isGone(err) {
				failed = append(failed, &fs.PathError{Op: "rmdir", Path: dir, Err: err})
			}
		}
	}
	if g.hasCores {
		failed = append(failed, g.home.shareRest())
	}
	return errors.Join(failed...)
}

// folders returns the folders of all hierarchies.
func (g *Group) folders() []string {
	var all []string
	if g.v2 != "" {
		all = append(all, g.v2)
	}
	for _, f := range g.v1 {
		all = append(all, f.path)
	}
	return all
}

// walk calls f for a folder and the folders below it, parents first. Folders that do not exist, or
// that vanish meanwhile, are left out.
func walk(dir string, f func(dir string) error) error {
	if err := f(dir); err != nil && !isGone(err) {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !isGone(err) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := walk(filepath.Join(dir, e.Name()), f); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPIDs reads a list of pids. The kernel lists a process of another pid namespace as 0.
func readPIDs(path string) ([]int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var pids []int
	for field := range strings.FieldsSeq(string(b)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// isGone reports whether a file of the kernel was removed, before it was opened or after.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ESRCH)
}
