package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start calls start, which forks a process with attr: the process begins its life in the group. In
// v2 the kernel puts it there. In v1 the calling thread enters the group for the time of the fork
// and leaves it again. After an error that is not start's own, the process may exist: kill the
// group.
func (g *Group) Start(attr *syscall.SysProcAttr, start func() error) error {
	if g.v2 != "" {
		dir, err := os.Open(g.v2)
		if err != nil {
			return fmt.Errorf("enter control group %s: %w", g.name, err)
		}
		defer dir.Close()
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	}
	if len(g.v1) == 0 {
		return start()
	}
	runtime.LockOSThread()
	home := true
	defer func() {
		if home { // a thread that stays in the group must not run other code
			runtime.UnlockOSThread()
		}
	}()
	thread := strconv.Itoa(unix.Gettid())
	before, err := positions(thread)
	if err != nil {
		return fmt.Errorf("enter control group %s: %w", g.name, err)
	}
	var entered []folder
	for _, f := range g.v1 {
		if err = write(filepath.Join(f.path, "tasks"), thread); err != nil {
			err = fmt.Errorf("enter control group %s: %w", g.name, err)
			break
		}
		entered = append(entered, f)
	}
	if err == nil {
		err = start()
	}
	for _, f := range entered {
		// The mount point is three elements above: MOUNT/nomad/NAME/tasks.
		mounted := filepath.Dir(filepath.Dir(f.path))
		if back := write(filepath.Join(mounted, before[f.controller], "tasks"), thread); back != nil {
			home = false
			err = errors.Join(err, fmt.Errorf("leave control group %s: %w", g.name, back))
		}
	}
	return err
}

// positions returns the path of a thread of this process in each hierarchy of v1.
func positions(thread string) (map[string]string, error) {
	b, err := os.ReadFile(filepath.Join("/proc/self/task", thread, "cgroup"))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(string(b)) { // NUMBER:CONTROLLER,...:PATH
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q is no line of a cgroup file", line)
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			all[c] = parts[2]
		}
	}
	return all, nil
}
