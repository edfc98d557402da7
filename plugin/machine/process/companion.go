package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// A companion is a process of the client's own program that outlives its client: a log keeper, the
// watchdog, the shim of a task. A machine has one for each task, so memory matters more than time.

// Economize makes this process a small one. Call it at the start of a companion.
func Economize() {
	runtime.GOMAXPROCS(1)
	runtime.MemProfileRate = 0 // its tables are large
	debug.SetGCPercent(10)     // of 4 MiB, the smallest heap of the runtime
}

// Rename changes the name of this process in lists of processes.
func Rename(name string) error { return os.WriteFile("/proc/self/comm", []byte(name), 0) }

// ReportReady writes the line that [AwaitReady] reads: the companion is ready, or cannot start.
func ReportReady(to io.Writer, protocol int, failed error) (err error) {
	if failed != nil {
		_, err = fmt.Fprintln(to, "error", failed)
	} else {
		_, err = fmt.Fprintln(to, "ready", protocol)
	}
	return err
}

// AwaitReady reads the first line of a companion, and returns an error unless it is ready.
func AwaitReady(from io.Reader, protocol int) error {
	line, err := bufio.NewReader(io.LimitReader(from, 4096)).ReadString('\n')
	if reason, failed := strings.CutPrefix(line, "error "); failed {
		return errors.New(strings.TrimSpace(reason))
	}
	if line == fmt.Sprintf("ready %d\n", protocol) {
		return nil
	}
	return errors.Join(fmt.Errorf("it did not report that it is ready: %q", line), err)
}

// Reap waits for the end of a child of this process, and calls wait, which reaps it. It waits on a
// pidfd first, because a blocking Wait call needs a thread, and a client has many companions.
func Reap(id Identity, wait func()) {
	if p, err := Open(id); err == nil {
		_ = p.Wait(context.Background())
		_ = p.Close()
	}
	wait()
}

// Kill kills a process and waits for its end. It is no error if the process has ended.
func Kill(ctx context.Context, id Identity) error {
	if err := kill(id); err != nil {
		return err
	}
	return AwaitEnd(ctx, id)
}

// AwaitEnd waits until a process has ended. It is no error if it had ended before.
func AwaitEnd(ctx context.Context, id Identity) error {
	p, err := Open(id)
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Close()
	return p.Wait(ctx)
}
