package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// jobPlanCommand is "nodedrain job plan".
type jobPlanCommand struct{ operatorCommand }

// jobPlanFlags are its flags.
type jobPlanFlags struct{ connectFlags }

func (f *jobPlanFlags) set() *flag.FlagSet { return f.flags("job plan") }

// Exit codes of a plan, as of Nomad's command.
const (
	exitChanges  = 1
	exitPlanFail = 255
)

func (c *jobPlanCommand) Synopsis() string { return "Show what \"job run\" would do" }

func (c *jobPlanCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain job plan [options] FILE

  Shows what "job run" would do with the job in FILE: the difference to the registered
  job, the allocations that the scheduler would create, stop or keep, and why allocations
  could not be placed. It changes nothing. FILE is as for "job run".

Options:
`+connectHelp) + `

Exit code:

  0    No allocation would be created or stopped.
  1    Allocations would be created or stopped.
  255  The request failed.
`
}

// Run runs the command. Every error is told from a plan with changes.
func (c *jobPlanCommand) Run(args []string) int {
	code, err := c.run(args)
	if err != nil {
		c.exit(err)
		return exitPlanFail
	}
	return code
}

func (c *jobPlanCommand) run(args []string) (code int, err error) {
	var f jobPlanFlags
	files, err := arguments(f.set(), "job plan", args)
	switch {
	case err != nil:
		return 0, err
	case len(files) != 1:
		return 0, misused("job plan", "This command takes one argument: <path>")
	}
	body, err := jobBody(c.in, files[0])
	if err != nil {
		return 0, err
	}
	id, body, err := planRequest(files[0], body)
	if err != nil {
		return 0, err
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return 0, err
	}
	defer asked.Close()
	plan, _, err := asked.PlanJob(c.ctx, id, body)
	if err != nil {
		return 0, saidf("Error during plan: %v", err)
	}
	c.warn(plan.Warnings)
	for _, line := range jobDiffLines(plan.Diff) {
		fmt.Fprintln(c.out, line)
	}
	fmt.Fprintln(c.out)
	groupShortages(c.out, plan.FailedTGAllocs)
	if len(plan.FailedTGAllocs) == 0 {
		fmt.Fprintln(c.out, "Every allocation can be placed")
	}
	fmt.Fprintf(c.out, "\nJob Modify Index: %d\nnodedrain job run -check-index %d registers the job unless it has changed since\n",
		plan.JobModifyIndex, plan.JobModifyIndex)
	return planCode(plan.Annotations), nil
}

// planRequest returns the id of the job in a registration, and the body that plans it.
func planRequest(file string, registration json.RawMessage) (id string, body json.RawMessage, err error) {
	var request wire.JobPlanRequest
	if err := json.Unmarshal(registration, &request); err != nil {
		return "", nil, saidf("Error reading job: %s: %v", file, err)
	}
	if request.Job == nil || request.Job.ID == nil || *request.Job.ID == "" {
		return "", nil, saidf("Error reading job: %s has no %q", file, "ID")
	}
	request.Diff = true
	body, err = json.Marshal(request)
	return *request.Job.ID, body, err
}

// planCode is the exit code of a plan.
func planCode(annotations *wire.PlanAnnotations) int {
	if annotations == nil {
		return 0
	}
	for _, u := range annotations.DesiredTGUpdates {
		if u.Place+u.Stop+u.Migrate+u.RescheduleNow+u.Disconnect > 0 {
			return exitChanges
		}
	}
	return 0
}

// diffSign marks a line of a difference.
func diffSign(t wire.DiffType) string {
	switch t {
	case wire.DiffAdded:
		return "+ "
	case wire.DiffDeleted:
		return "- "
	case wire.DiffEdited:
		return "+/- "
	}
	return "  "
}

// jobDiffLines returns a difference as lines. Parts that are equal have one line.
func jobDiffLines(d *wire.JobDiff) (lines []string) {
	if d == nil {
		return nil
	}
	lines = append(lines, fmt.Sprintf("%sJob %q", diffSign(d.Type), d.ID))
	lines = append(lines, fieldLines("  ", d.Fields, d.Objects)...)
	for _, g := range d.TaskGroups {
		line := fmt.Sprintf("  %sGroup %q", diffSign(g.Type), g.Name)
		if updates := updatesText(g.Updates); updates != "" {
			line += " (" + singleLine(updates) + ")"
		}
		lines = append(lines, line)
		lines = append(lines, fieldLines("    ", g.Fields, g.Objects)...)
		for _, t := range g.Tasks {
			lines = append(lines, fmt.Sprintf("    %sTask %q", diffSign(t.Type), t.Name))
			lines = append(lines, fieldLines("      ", t.Fields, t.Objects)...)
		}
	}
	return lines
}

// fieldLines returns the fields of a part, then its blocks with their fields.
func fieldLines(indent string, fields []*wire.FieldDiff, objects []*wire.ObjectDiff) (lines []string) {
	for _, f := range fields {
		values := fmt.Sprintf("%q => %q", f.Old, f.New)
		switch f.Type {
		case wire.DiffAdded:
			values = fmt.Sprintf("%q", f.New)
		case wire.DiffDeleted:
			values = fmt.Sprintf("%q", f.Old)
		}
		lines = append(lines, indent+diffSign(f.Type)+singleLine(f.Name)+": "+values)
	}
	for _, o := range objects {
		lines = append(lines, indent+diffSign(o.Type)+singleLine(o.Name))
		lines = append(lines, fieldLines(indent+"  ", o.Fields, o.Objects)...)
	}
	return lines
}

// updatesText names what happens to the allocations of a group.
func updatesText(updates map[string]uint64) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(updates)) {
		parts = append(parts, fmt.Sprintf("%d %s", updates[what], what))
	}
	return strings.Join(parts, ", ")
}

// AutocompleteArgs completes the file.
func (c *jobPlanCommand) AutocompleteArgs() complete.Predictor { return complete.PredictFiles("*") }

// AutocompleteFlags completes the flags.
func (c *jobPlanCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(jobPlanFlags).set())
}
