package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// ending is the final facts: how each drain ended, what is left on the nodes that
// were drained, and how the jobs stand. Facts of many are counted.
func ending(w *world.World, brief bool) string {
	state := w.State()
	var lines []string
	drains := slices.Collect(state.Drains())
	for n := range state.DrainingNodes() {
		drains = append(drains, n.Drain)
	}
	slices.SortFunc(drains, func(a, b *cluster.Drain) int { return strings.Compare(string(a.ID), string(b.ID)) })
	for _, d := range drains {
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
			line := Standing(state, cluster.GroupKey{Job: j.Key(), Name: g.Name}, g.Count)
			if brief {
				line = string(j.Type) + strings.TrimPrefix(line, GroupLabel(cluster.GroupKey{Job: j.Key(), Name: g.Name}))
			}
			lines = append(lines, line)
		}
	}
	if brief {
		lines = tallied(lines)
	}
	return strings.Join(lines, "\n")
}

// tallied counts equal lines, in the order in which they first come.
func tallied(lines []string) []string {
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
	return text
}

// leftOn names what was on the node while it drained and has not ended.
func leftOn(state *statestore.Snapshot, d *cluster.Drain) string {
	var left []string
	for a := range state.LiveAllocsByNode(d.NodeID) {
		if d.EndIndex == 0 || a.CreateIndex < d.EndIndex {
			left = append(left, a.Name)
		}
	}
	slices.Sort(left)
	return strings.Join(left, " ")
}

// Standing is how many of a group are as its owner wants them.
func Standing(state *statestore.Snapshot, key cluster.GroupKey, count int) string {
	running, healthy := 0, 0
	for a := range state.AllocsByJob(key.Job) {
		if a.TaskGroup != key.Name || a.DesiredStatus != "run" || a.ClientStatus != "running" {
			continue
		}
		running++
		if d := a.DeploymentStatus; d != nil && d.Healthy != nil && *d.Healthy {
			healthy++
		}
	}
	return fmt.Sprintf("%s runs %d of %d, %d healthy", GroupLabel(key), running, count, healthy)
}

// GroupLabel names a group, without what goes without saying.
func GroupLabel(key cluster.GroupKey) string {
	return strings.TrimPrefix(strings.TrimSuffix(key.String(), string("."+key.Job.ID)), "default/")
}

// witnessed returns the lowest healthy counts the witness saw, and what it found.
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
			continue // it has no limit
		}
		line := fmt.Sprintf("%s lowest %d of %d, limit %d", GroupLabel(g.Group), g.Lowest.Healthy, g.Lowest.Count, g.Lowest.Limit)
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), errors.Join(errs...)
}

// WitnessOptions are what a witness has to be told of a policy.
func WitnessOptions(p rules.Policy) witness.Options {
	margin := p.StopMargin
	if margin == 0 {
		margin = rules.DefaultStopMargin
	}
	return witness.Options{
		StopMargin:       margin,
		PluginsAfterStop: p.PluginsAfterDeadline == rules.PluginsAfterStop,
		AskedIsComplete:  p.Completion == rules.CompletionMarked,
	}
}
