package client

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// driverEvent is the type of a task's event that its driver has reported.
const driverEvent = "Driver"

// A task keeps the last maxDriverEvents events of its driver, so that they leave room for the events
// of the client. In each driverEventTime it takes as many, because each costs a record and a report.
const (
	maxDriverEvents = 3
	driverEventTime = 10 * time.Second
)

// driverEvents counts the events that the driver has reported for the present start of a task.
type driverEvents struct {
	since time.Duration
	taken int
}

// event handles a message of a driver about a start of a task.
func (d *drivers) event(name string, generation Generation, e driver.Event) {
	s := d.state(name)
	if s == nil || s.generation != generation || e.Message == "" || e.Task == "" {
		return
	}
	for _, a := range d.core.allocs {
		for _, t := range a.tasks {
			if t.rec.ID == e.Task && t.task.Driver == name && t.rec.Phase != PhaseDead {
				t.start.reported(e.Message)
				return
			}
		}
	}
}

// reported adds a message of the driver to the events of the task.
func (s *taskStart) reported(message string) {
	now, n := s.t.core().now.Boot, &s.driverEvents
	if n.taken == 0 || now >= n.since+driverEventTime {
		*n = driverEvents{since: now}
	}
	if n.taken == maxDriverEvents {
		return // the client's log has the message
	}
	n.taken++
	s.t.keepDriverEvents(maxDriverEvents - 1)
	s.t.event(driverEvent, cluster.CutText(message))
}

// keepDriverEvents removes the oldest events of the driver, until at most count are left.
func (t *taskRunner) keepDriverEvents(count int) {
	var kept []cluster.TaskEvent
	for _, e := range slices.Backward(t.rec.State.Events) {
		if e.Type == driverEvent {
			if count == 0 {
				continue
			}
			count--
		}
		kept = append(kept, e)
	}
	slices.Reverse(kept)
	t.rec.State.Events = kept
}
