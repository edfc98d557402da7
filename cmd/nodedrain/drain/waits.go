package drain

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// maxWaits limits the groups that one line names.
const maxWaits = 3

// waits returns what the drain waits for, as it was last read.
func (f *Follower) waits() string {
	var parts []string
	if pause := f.pauseText(); pause != "" {
		parts = append(parts, pause)
	}
	groups := 0
	for _, h := range f.held {
		if f.Paused() && h.reason == rules.ReasonPaused.String() {
			continue
		}
		if groups++; groups > maxWaits {
			continue
		}
		text := h.short()
		if !h.since.IsZero() {
			text += ", since " + cli.Clock(wire.NewTime(h.since))
		}
		parts = append(parts, text)
	}
	if more := groups - maxWaits; more > 0 {
		parts = append(parts, cli.Count(more, "more group"))
	}
	switch left := f.Left(); {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case f.allocs == nil:
		return "the list of the node's allocations"
	case left > 0:
		return fmt.Sprintf("%s to stop", cli.Count(left, "allocation"))
	}
	return "the end of the drain"
}

// pauseText is the end of the pause that holds the running drain, or empty.
func (f *Follower) pauseText() string {
	switch {
	case f.DrainEnded:
	case f.paused == wire.PausedByDrain:
		return "the end of its pause"
	case f.paused == wire.PausedByAll:
		return "the end of the pause of all drains"
	case f.paused == wire.PausedByBoth:
		return "the end of its pause and of that of all drains"
	}
	return ""
}
