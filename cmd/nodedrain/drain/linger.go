package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// lingering returns an event for each group that still stops after the end of a drain that did not wait for
// it, with what its first allocation waits for, when that changes. The servers explain no drain that has ended, so it follows from
// what the clients report. A task may never end, such as one whose driver is off.
func (f *Follower) lingering() (events []event) {
	if !f.DrainEnded || f.cancelled || f.nothingLeft {
		return nil
	}
	var left []wire.DrainAlloc
	for _, id := range slices.Sorted(maps.Keys(f.allocs)) {
		if a := f.allocs[id]; alloc.Alive(a) && !f.Stays(a) {
			left = append(left, wire.DrainAlloc{
				Namespace: a.Namespace, JobID: a.JobID, TaskGroup: a.TaskGroup, Reason: rules.ReasonStopping.String(), Detail: stoppingText(a),
			})
		}
	}
	before := f.held
	f.held = heldGroups(left)
	for _, h := range f.held {
		if !slices.ContainsFunc(before, func(o heldGroup) bool { return o.String() == h.String() }) {
			events = append(events, event{text: "Waiting: " + h.String()})
		}
	}
	return events
}

// stoppingText says what an allocation waits for, as far as its client has reported it.
func stoppingText(a *wire.Allocation) string {
	var waits []string
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
		if s := a.TaskStates[name]; s != nil && s.Waiting != nil {
			// Without the time that is left: the text is new when the wait is.
			waits = append(waits, fmt.Sprintf("task %q waits for %s", name, cli.WaitText(s.Waiting, s.Waiting.Until.Time)))
		}
	}
	return cmp.Or(strings.Join(waits, "; "), a.ClientDescription, "its client does not report what it waits for")
}
