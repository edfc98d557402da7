package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// ending is the final facts: the outcome of each drain, the allocations that are left on
// drained nodes, and the running allocations of each job. If it is brief, equal lines are
// counted.
func ending(state *statestore.Snapshot, brief bool) string {
	var lines []string
	for _, d := range drainsOf(state) {
		line := fmt.Sprintf("%s %s", d.NodeID, outcome(d))
		if left := leftOn(state, d); left != "" {
			line += ", left: " + left
		}
		if brief {
			line = strings.TrimPrefix(line, string(d.NodeID)+" ")
		}
		lines = append(lines, line)
	}
	for j := range state.Jobs() {
		for _, g := range j.TaskGroups {
			line := Standing(state, j, g)
			if brief {
				line = string(j.Type) + strings.TrimPrefix(line, scenario.GroupText(cluster.GroupKey{Job: j.Key(), Name: g.Name}))
			}
			lines = append(lines, line)
		}
	}
	if brief {
		lines = counted(lines)
	}
	return strings.Join(lines, "\n")
}

// drainsOf returns the drains of a state by id, those that run and those that have ended.
func drainsOf(state *statestore.Snapshot) []*cluster.Drain {
	drains := slices.Collect(state.Drains())
	for n := range state.DrainView().DrainingNodes() {
		drains = append(drains, n.Drain)
	}
	slices.SortFunc(drains, func(a, b *cluster.Drain) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return drains
}

// counted merges equal lines and puts their number before them. They keep their order.
func counted(lines []string) []string {
	counts := map[string]int{}
	var first []string
	for _, l := range lines {
		if counts[l] == 0 {
			first = append(first, l)
		}
		counts[l]++
	}
	for i, l := range first {
		first[i] = fmt.Sprintf("%d × %s", counts[l], l)
	}
	return first
}

func outcome(d *cluster.Drain) string {
	text := string(d.Outcome)
	if d.Outcome == cluster.OutcomeNone {
		text = "drains"
	}
	if d.StillStopping > 0 {
		text += fmt.Sprintf(", %d still stopping", d.StillStopping)
	}
	if d.PurgedRunning > 0 {
		text += fmt.Sprintf(", %d purged while running", d.PurgedRunning)
	}
	switch u := d.Unconfirmed; {
	case u == nil:
	case u.Count > 0:
		text += fmt.Sprintf(", %d unconfirmed", u.Count)
	case u.ConfirmedBy != "":
		text += ", confirmed by " + u.ConfirmedBy
	case u.Other != nil:
		text += fmt.Sprintf(", %d confirmed by %s with another drain", u.Other.Allocs, u.Other.By)
	default:
		text += ", confirmed later"
	}
	return text
}

// leftOn names the live allocations that were on the node during the drain.
func leftOn(state *statestore.Snapshot, d *cluster.Drain) string {
	var left []string
	for a := range state.WorkView().LiveAllocsByNode(d.NodeID) {
		if d.EndIndex == 0 || a.CreateIndex < d.EndIndex {
			left = append(left, a.Name)
		}
	}
	slices.Sort(left)
	return strings.Join(left, " ")
}

// unhealthy returns the groups of services with fewer healthy allocations than their count: first
// those below their limit.
func unhealthy(state *statestore.Snapshot) []string {
	var below, others []string
	for j := range state.Jobs() {
		if j.Type != cluster.JobService || j.Stopped() {
			continue
		}
		for _, g := range j.TaskGroups {
			key := cluster.GroupKey{Job: j.Key(), Name: g.Name}
			limit := g.Count
			if g.Migrate != nil {
				limit = max(0, g.Count-g.Migrate.MaxParallel)
			}
			_, healthy := standing(state, key)
			text := fmt.Sprintf("%s has %d of %d healthy", scenario.GroupText(key), healthy, g.Count)
			switch {
			case healthy < limit:
				below = append(below, text+fmt.Sprintf(", below its limit of %d", limit))
			case healthy < g.Count:
				others = append(others, text)
			}
		}
	}
	return append(below, others...)
}

// Standing is how many allocations of a group run and are healthy. A job that runs on every node has
// no count to compare with.
func Standing(state *statestore.Snapshot, j *cluster.Job, g *cluster.TaskGroup) string {
	key := cluster.GroupKey{Job: j.Key(), Name: g.Name}
	running, healthy := standing(state, key)
	switch {
	case j.Type.EveryNode() && running == 1:
		return fmt.Sprintf("%s runs on 1 node, %d healthy", scenario.GroupText(key), healthy)
	case j.Type.EveryNode():
		return fmt.Sprintf("%s runs on %d nodes, %d healthy", scenario.GroupText(key), running, healthy)
	}
	return fmt.Sprintf("%s runs %d of %d, %d healthy", scenario.GroupText(key), running, g.Count, healthy)
}

// standing counts the running allocations of a group, and the healthy ones among them.
func standing(state *statestore.Snapshot, key cluster.GroupKey) (running, healthy int) {
	for a := range state.AllocsByJob(key.Job) {
		if a.TaskGroup != key.Name || a.DesiredStatus != "run" || a.ClientStatus != "running" {
			continue
		}
		running++
		if d := a.DeploymentStatus; d != nil && d.Healthy != nil && *d.Healthy {
			healthy++
		}
	}
	return running, healthy
}

// witnessed returns the lowest healthy counts of the witness, and its findings.
func witnessed(w *witness.Witness, state witness.World) (lowest string, err error) {
	w.Audit(state)
	report := w.Report()
	var errs []error
	for _, f := range report.Findings {
		errs = append(errs, errors.New(f.String()))
	}
	var lines []string
	for _, g := range report.Groups {
		job := state.Job(g.Group.Job)
		if g.Lowest.Index == 0 || job == nil || job.Type != cluster.JobService {
			continue // the group has no limit
		}
		line := fmt.Sprintf("%s lowest %d of %d, limit %d", scenario.GroupText(g.Group), g.Lowest.Healthy, g.Lowest.Count, g.Lowest.Limit)
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), errors.Join(errs...)
}

// WitnessOptions are the options of a witness for a drainer's policy.
func WitnessOptions(p rules.Policy) witness.Options {
	margin := p.StopMargin
	if margin == 0 {
		margin = rules.DefaultStopMargin
	}
	return witness.Options{
		StopMargin:       margin,
		PluginsAfterStop: p.PluginsAfterDeadline == rules.PluginsAfterStop,
		MarkedIsComplete: p.Completion == rules.CompletionMarked,
	}
}
