package node

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/client"
)

// now reads the node's clocks.
func now() client.Time { return client.Time{Boot: sinceBoot(), Wall: time.Now().Round(0)} }

// sinceBoot is the time since the machine booted, including suspend.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("node: the kernel has no boot-time clock: %v", err)) // Linux has it since 2.6.39
	}
	return time.Duration(t.Nano())
}
