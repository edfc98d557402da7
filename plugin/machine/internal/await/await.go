// Package await waits for files that the kernel can poll, such as a pidfd or the events file of a
// control group. A wait costs neither a thread nor a timer.
package await

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Change waits until done reports true or an error. It calls done at once, and again each time the
// kernel reports a change of the file. If ctx ends first, it closes the file and returns the cause:
// the file is for one call.
func Change(ctx context.Context, f *os.File, done func(fd int) (bool, error)) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return fmt.Errorf("wait for %s: %w", f.Name(), err)
	}
	if err := f.SetReadDeadline(time.Time{}); err != nil { // an error: the kernel cannot poll the file
		return fmt.Errorf("wait for %s: %w", f.Name(), err)
	}
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	defer stop()
	var reached bool
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		reached, failed = done(int(fd))
		return reached || failed != nil
	})
	switch {
	case reached:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failed != nil:
		return failed
	}
	return fmt.Errorf("wait for %s: %w", f.Name(), err)
}
