package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	// The first thread of this process must stay where it is: the kernel takes its group for that of
	// the whole process. Another goroutine cannot run on it while it is locked.
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		runtime.UnlockOSThread()
		return g.startV1(start)
	}
	defer runtime.UnlockOSThread()
	done := make(chan error)
	go func() { done <- g.startV1(start) }()
	return <-done
}

// startV1 calls start on a thread that is in the group meanwhile.
func (g *Group) startV1(start func() error) error {
	runtime.LockOSThread()
	home := true
	defer func() {
		if home { // a thread that stays in the group must not run other code
			runtime.UnlockOSThread()
		}
	}()
	self := unix.Gettid()
	thread := strconv.Itoa(self)
	before, err := positions(unix.Getpid(), self)
	if err != nil {
		return fmt.Errorf("enter control group %s: %w", g.name, err)
	}
	var entered []folder
	for _, f := range g.entered() {
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
		if back := write(filepath.Join(f.mounted(), before[f.controller], "tasks"), thread); back != nil {
			home = false
			err = errors.Join(err, fmt.Errorf("leave control group %s: %w", g.name, back))
		}
	}
	return err
}

// entered are the folders of v1 that a process of the group is in: those of the group, and the cpuset that all groups
// without cores of their own share.
func (g *Group) entered() []folder {
	shared := folder{controller: "cpuset", path: filepath.Join(g.home.v1["cpuset"], parent, shareV1)}
	if _, err := os.Stat(shared.path); g.hasCores || g.home.v1["cpuset"] == "" || err != nil {
		return g.v1
	}
	return append(slices.Clip(g.v1), shared)
}

// positions returns the path of a thread of a process in each hierarchy of v1.
func positions(process, thread int) (map[string]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/cgroup", process, thread))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(string(b)) { // NUMBER:CONTROLLER,...:PATH
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q is not a line of a cgroup file", line)
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			all[c] = parts[2]
		}
	}
	return all, nil
}
