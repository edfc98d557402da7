package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Exit codes of a plan, as of Nomad's command.
const (
	exitChanges  = 1
	exitPlanFail = 255
)

// Plan is "nodedrain job plan".
func Plan() *cli.Command {
	return &cli.Command{
		Short: "Show what \"job run\" would do",
		Description: `
  Shows what "job run" would do with the job in FILE: the difference to the registered
  job, the allocations that the scheduler would create, stop or keep, and why allocations
  could not be placed. It changes nothing. FILE is as for "job run".
`,
		Exits: `
  0    No allocation would be created or stopped.
  1    Allocations would be created or stopped.
  255  The request failed.
`,
		Args: "FILE", Connects: true, Failure: exitPlanFail, Run: planJob,
	}
}

func planJob(c *cli.Call) error {
	body, err := jobBody(c, c.Args[0])
	if err != nil {
		return err
	}
	id, body, err := planRequest(c.Args[0], body)
	if err != nil {
		return err
	}
	plan, _, err := c.API.JobFile(body).Plan(c.Ctx, id)
	if err != nil {
		return cli.Errorf("Error during plan: %v", err)
	}
	c.Warn(plan.Warnings)
	for _, line := range jobDiffLines(plan.Diff) {
		fmt.Fprintln(c.Out, line)
	}
	fmt.Fprintln(c.Out)
	eval.GroupShortages(c.Out, plan.FailedTGAllocs)
	if len(plan.FailedTGAllocs) == 0 {
		fmt.Fprintln(c.Out, "Every allocation can be placed")
	}
	fmt.Fprintf(c.Out, "\nJob Modify Index: %d\nnodedrain job run -check-index %d registers the job unless it has changed since\n",
		plan.JobModifyIndex, plan.JobModifyIndex)
	if code := planCode(plan.Annotations); code != 0 {
		return cli.ExitCode(code)
	}
	return nil
}

// planRequest returns the id of the job in a registration, and the body that plans it.
func planRequest(file string, registration json.RawMessage) (id string, body json.RawMessage, err error) {
	var request struct{ Job struct{ ID string } }
	if err := jsonbody.Decode(registration, &request); err != nil { // as the servers, which name the place
		return "", nil, cli.Errorf("Error reading job: %s: %v", file, err)
	}
	if request.Job.ID == "" {
		return "", nil, cli.Errorf("Error reading job: %s has no %q", file, "ID")
	}
	body, err = with(registration, map[string]json.RawMessage{"Diff": json.RawMessage("true")})
	return request.Job.ID, body, err
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
			line += " (" + cli.SingleLine(updates) + ")"
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
		lines = append(lines, indent+diffSign(f.Type)+cli.SingleLine(f.Name)+": "+values)
	}
	for _, o := range objects {
		lines = append(lines, indent+diffSign(o.Type)+cli.SingleLine(o.Name))
		lines = append(lines, fieldLines(indent+"  ", o.Fields, o.Objects)...)
	}
	return lines
}

// updatesText names what happens to the allocations of a group.
func updatesText(updates map[string]uint64) string {
	var parts []string
	for _, update := range slices.Sorted(maps.Keys(updates)) {
		parts = append(parts, fmt.Sprintf("%d %s", updates[update], update))
	}
	return strings.Join(parts, ", ")
}
