package guard

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Stopped states that a watchdog has stopped tasks of an allocation. The watchdog writes it to the
// disk before it sends the first signal. The next client reads it, or a client that was frozen.
type Stopped struct {
	Alloc cluster.AllocID
	// BootID names the boot to which the times belong.
	BootID string
	// After is the group's StopOnClientAfter.
	After time.Duration
	// Signals are the tasks that got their kill signal, or SIGKILL without one, with the time. They had
	// processes.
	Signals map[string]time.Duration
}

// Reason is a text for operators.
func (s *Stopped) Reason() string {
	return "stopped by the watchdog: no client has reached a server for " + s.After.String()
}
