package redact

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// TaskStates hides the texts of a client that may repeat a part of a configuration or of an
// environment: the errors of drivers, and the command lines of processes. It returns the same pointer
// if there is none.
func TaskStates(s *cluster.TaskStates) *cluster.TaskStates {
	if s == nil || !slices.ContainsFunc(s.Tasks, hasTexts) {
		return s
	}
	c := &cluster.TaskStates{Tasks: slices.Clone(s.Tasks)}
	for i := range c.Tasks {
		t := &c.Tasks[i]
		if t.Waiting != nil && waitMayRepeat(t.Waiting) {
			w := *t.Waiting
			w.Detail, t.Waiting = Hidden, &w
		}
		t.Events = slices.Clone(t.Events)
		for j := range t.Events {
			if e := &t.Events[j]; eventMayRepeat(*e) {
				e.Message, e.Details = Hidden, nil
			}
		}
	}
	return c
}

func hasTexts(t cluster.TaskState) bool {
	return t.Waiting != nil && waitMayRepeat(t.Waiting) || slices.ContainsFunc(t.Events, eventMayRepeat)
}

func waitMayRepeat(w *cluster.TaskWait) bool {
	switch w.For {
	case cluster.WaitShutdownDelay, cluster.WaitGrace, cluster.WaitDisk, cluster.WaitDevice, cluster.WaitPort, cluster.WaitCore:
		return false
	}
	return w.Detail != ""
}

// eventMayRepeat reports whether an event has a text that is not one of the client's own sentences.
func eventMayRepeat(e cluster.TaskEvent) bool {
	if len(e.Details) > 0 {
		return true
	}
	switch e.Type {
	case "Received", "Started", "Killing", "Killed", "Terminated", "Restarting", "Not Restarting", "Alloc Unhealthy":
		return false
	}
	return e.Message != ""
}
