// Package bootclock is the clock that starts at boot and continues while the machine is suspended.
package bootclock

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine booted, including suspend.
func Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("bootclock: the kernel has no boot-time clock: %v", err)) // Linux has it since 2.6.39
	}
	return time.Duration(t.Nano())
}
