package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// freezeFor is how long Kill waits until all processes are frozen. A process in state D delays it.
const freezeFor = 200 * time.Millisecond

// Kill sends SIGKILL to all processes of the group, also to those that fork at that moment, and
// thaws them so that they end. It returns before they have ended: call Wait. It may be called
// again, and is an error only if signals could not be sent.
func (g *Group) Kill(ctx context.Context) error {
	var failed []error
	if g.v2 != "" {
		failed = append(failed, g.killUnified(ctx))
	}
	if len(g.v1) > 0 {
		failed = append(failed, g.killV1(ctx))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("kill the processes of %s: %w", g.name, err)
	}
	return nil
}

func (g *Group) killUnified(ctx context.Context) error {
	kill := func() error { return write(filepath.Join(g.v2, "cgroup.kill"), "1") }
	err := kill()
	if err == nil {
		if killed, err := g.killHeadless(); err != nil || !killed {
			return err
		}
		err = kill() // they may have forked before
	}
	if err == nil {
		return nil
	}
	if _, gone := os.Stat(g.v2); isGone(gone) {
		return nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !isGone(err) { // a group of threads, or Linux before 5.14
		return err
	}
	freezer := filepath.Join(g.v2, "cgroup.freeze")
	if err := write(freezer, "1"); err != nil && !isGone(err) {
		return err
	}
	poll(ctx, func() bool {
		b, err := os.ReadFile(filepath.Join(g.v2, "cgroup.events"))
		n, ok := value(string(b), "frozen")
		return err != nil || ok && n == 1
	})
	err = g.signalAll(unix.SIGKILL)
	if thaw := write(freezer, "0"); thaw != nil && !isGone(thaw) {
		err = errors.Join(err, thaw)
	}
	return err
}

// killHeadless kills the processes whose first thread has ended while others run, and reports whether
// there were any. cgroup.kill sends the signal to the first thread only, so it does not end them.
func (g *Group) killHeadless() (bool, error) {
	pids, err := g.PIDs()
	if err != nil {
		return false, err
	}
	var headless []int
	for _, pid := range pids {
		switch ended, err := process.LeaderEnded(pid); {
		case errors.Is(err, process.ErrGone):
		case err != nil:
			return false, err
		case ended:
			headless = append(headless, pid)
		}
	}
	if len(headless) == 0 {
		return false, nil
	}
	return true, g.signalEach(headless, unix.SIGKILL)
}

func (g *Group) killV1(ctx context.Context) error {
	threads, err := g.threadsV1()
	if err != nil {
		return err
	}
	if len(threads) == 0 {
		return nil
	}
	freezer := ""
	if f := g.v1[0]; f.controller == "freezer" {
		freezer = f.path
		if err := write(filepath.Join(freezer, "freezer.state"), "FROZEN"); err != nil && !isGone(err) {
			return err
		}
		poll(ctx, func() bool {
			b, err := os.ReadFile(filepath.Join(freezer, "freezer.state"))
			return err != nil || strings.TrimSpace(string(b)) == "FROZEN"
		})
	}
	err = g.signalAll(unix.SIGKILL)
	if freezer == "" {
		return err
	}
	// A frozen process ignores SIGKILL in v1, also in a group below ours that the task has frozen.
	thaw := walk(freezer, func(dir string) error {
		return write(filepath.Join(dir, "freezer.state"), "THAWED")
	})
	return errors.Join(err, thaw)
}

// poll waits until done, at most freezeFor: the kernel has no event for the freezer of v1.
func poll(ctx context.Context, done func() bool) {
	ctx, cancel := context.WithTimeout(ctx, freezeFor)
	defer cancel()
	wait := time.NewTicker(time.Millisecond)
	defer wait.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
	}
}

// Signal sends a signal to all processes of the group. A process that is forked meanwhile may miss
// it. A group without processes is no error.
func (g *Group) Signal(sig syscall.Signal) error {
	if err := g.signalAll(sig); err != nil {
		return fmt.Errorf("signal the processes of %s: %w", g.name, err)
	}
	return nil
}

// signalAll sends a signal to each process.
func (g *Group) signalAll(sig syscall.Signal) error {
	pids, err := g.PIDs()
	if err != nil {
		return err
	}
	return g.signalEach(pids, sig)
}

// signalEach sends a signal to processes that were listed. It opens pidfds of all and lists again: a
// pidfd whose pid is in the second list belongs to a member, or to a process that has ended.
func (g *Group) signalEach(pids []int, sig syscall.Signal) error {
	open := map[int]int{}
	defer func() {
		for _, fd := range open {
			_ = unix.Close(fd)
		}
	}()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		case err != nil:
			return err
		default:
			open[pid] = fd
		}
	}
	again, err := g.PIDs()
	if err != nil {
		return err
	}
	var failed []error
	for _, pid := range pids {
		fd, ok := open[pid]
		if _, member := slices.BinarySearch(again, pid); !ok || !member {
			continue
		}
		if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			failed = append(failed, fmt.Errorf("pid %d: %w", pid, err))
		}
	}
	return errors.Join(failed...)
}
