package drain

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain/picture"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
)

// Plan is "nodedrain drain plan".
func Plan() *cli.Command {
	var f planFlags
	return &cli.Command{
		Short: "Show what drains would do",
		Description: `
  Shows what the drains of one or more nodes would do, before they begin. A server drains
  a copy of the cluster's state in virtual time, with the code that drains, and reports
  what came of it: when and how each drain ends, what the deadline takes, how low the
  health of each group falls, and what finds no place. It changes nothing.

  The times of a group are those that the servers have observed. For a group without
  observed times they are those that its job declares. NODE is a node's name, its id or a
  prefix of the id.
`,
		Args: "[NODE...]", Connects: true, Formats: true, Run: f.run,
		Options: append(f.Options(),
			cli.Heading(""),
			cli.Flag(&f.filter, "filter EXPRESSION", "Also plan the drains of the nodes that match, as in \"nodedrain node status -filter\"."),
			cli.Flag(&f.timeline, "timeline", "Draw the plan too, with ASCII only if the locale (LC_ALL, LC_CTYPE, LANG) is not UTF-8."),
			cli.Flag(&f.svg, "svg FILE", `Draw the plan as an SVG too. "-" is standard output; the report then goes to standard error.`),
			cli.Flag(&f.oneByOne, "one-by-one", "Begin the drain of a node when the one before it has ended. Without it all begin at once."),
		),
	}
}

// planFlags are its flags.
type planFlags struct {
	Strategy
	filter   string
	oneByOne bool
	timeline bool
	svg      string
}

func (f *planFlags) run(c *cli.Call) error {
	switch {
	case len(c.Args) == 0 && f.filter == "":
		return c.UsageError("A NODE or -filter is required")
	case f.Conflict() != "":
		return c.UsageError(f.Conflict())
	case c.Raw() && (f.timeline || f.svg != ""):
		return c.UsageError("-timeline and -svg exclude -json and -t")
	}
	limit, err := f.Limit()
	if err != nil {
		return err
	}
	request := drainplan.Request{
		Filter: f.filter, OneByOne: f.oneByOne, DrainSpec: f.Spec(limit),
	}
	for _, name := range c.Args {
		node, _, err := c.Find(name, "Error planning drains")
		if err != nil {
			return err
		}
		request.Nodes = append(request.Nodes, node.ID)
	}
	return f.show(c, request)
}

// show requests a plan, prints it, and draws it if the flags require it.
func (f *planFlags) show(c *cli.Call, request drainplan.Request) error {
	svg, err := c.OpenPicture(f.svg)
	if err != nil {
		return cli.Errorf("Error opening the SVG: %v", err)
	}
	defer svg.Abandon()
	plan, err := requestPlan(c, request, false)
	switch {
	case err != nil:
		return planError(err)
	case c.Raw():
		return c.PrintRaw(plan)
	}
	printPlan(c, plan, request)
	drawn := picture.OfPlan(plan, request.DrainSpec.Deadline)
	if f.timeline {
		fmt.Fprintln(c.Out, "\nTimeline")
		if err := drawn.Text(c.Out, cli.TerminalWidth(c.Out), cli.NotUnicode(c.Getenv)); err != nil {
			return err
		}
	}
	if svg != nil {
		return svg.Write(drawn.SVG)
	}
	return nil
}

func planError(err error) error { return cli.Errorf("Error planning drains: %v", err) }

// PlanOf requests and prints the plan of the drain of one node. With plain no line is drawn over.
func PlanOf(c *cli.Call, node string, spec *wire.DrainSpec, plain bool) (*drainplan.Answer, error) {
	request := drainplan.Request{Nodes: []string{node}, DrainSpec: spec}
	plan, err := requestPlan(c, request, plain)
	if err != nil {
		return nil, planError(err)
	}
	printPlan(c, plan, request)
	return plan, nil
}

// printPlan prints a plan.
func printPlan(c *cli.Call, plan *drainplan.Answer, request drainplan.Request) {
	fmt.Fprintln(c.Out, plan.Sentence)
	c.SectionIfAny("Nodes", planNodes(plan.Nodes))
	c.SectionIfAny("Groups", planGroups(plan.Groups))
	c.SectionIfAny("Without A Place", planUnplaced(plan.Unplaced))
	c.SectionIfAny("Never Leave", planWaits(plan.Nodes))
	fmt.Fprintln(c.Out)
	for _, note := range planNotes(plan, request) {
		fmt.Fprintln(c.Out, note)
	}
	fmt.Fprintln(c.Out, "Limits of this plan:")
	for _, text := range plan.Limits {
		fmt.Fprintln(c.Out, "  * "+text)
	}
}

func planNodes(nodes []drainplan.Node) *cli.Table {
	t := cli.NewTable("Node", "Begins", "Ends After", "Outcome", "Leave", "Taken")
	for _, n := range nodes {
		ends, outcome := cli.Rough(n.Took), n.Outcome
		if n.Outcome == "" {
			ends, outcome = "never", "-"
		}
		t.Row(fmt.Sprintf("%s (%s)", n.Name, cli.ShortID(n.ID, false)), after(n.Began), ends, outcome, fmt.Sprint(n.Allocs), fmt.Sprint(n.Taken))
	}
	return t
}

func after(d time.Duration) string {
	if d == 0 {
		return "at once"
	}
	return "after " + cli.Rough(d)
}

func planGroups(groups []drainplan.Group) *cli.Table {
	t := cli.NewTable("Group", "Moves", "Rounds", "Lowest Healthy", "Needed", "Down For", "Left After", "Note")
	for _, g := range groups {
		lowest, needed, down := fmt.Sprintf("%d of %d", g.Lowest, g.Count), fmt.Sprint(max(0, g.Needed)), "-"
		switch {
		case g.Type != "service":
			lowest, needed = "-", "-"
		case g.Lowest < min(g.Needed, g.Healthy):
			needed += " (below)"
		}
		if g.Down > 0 {
			down = cli.Rough(g.Down)
		}
		if g.Down > 0 && !g.Recovered && g.Lowest == 0 {
			down = "until it has room"
		}
		t.Row(cli.JobName(g.Namespace, g.JobID)+"."+g.Group, fmt.Sprint(g.Moves), fmt.Sprint(g.Rounds), lowest, needed, down, cli.Rough(g.Left), planNote(g))
	}
	return t
}

// planNote is the most important remark about a group.
func planNote(g drainplan.Group) string {
	switch {
	case g.StopsFirst != "":
		return "stops first: " + cli.SingleLine(g.StopsFirst)
	case g.NoRoom && g.Type == "service":
		return "its budget has no room now"
	case g.Longest:
		return "the drain waits for it longest"
	}
	return ""
}

func planUnplaced(all []drainplan.Unplaced) *cli.Table {
	t := cli.NewTable("Group", "Allocations", "Why")
	for _, u := range all {
		t.Row(cli.JobName(u.Namespace, u.JobID)+"."+u.Group, fmt.Sprint(u.Allocs), u.Why)
	}
	return t
}

// mostWaits bounds the allocations that a plan lists.
const mostWaits = 20

func planWaits(nodes []drainplan.Node) *cli.Table {
	t := cli.NewTable("Node", "Allocation", "Group", "Reason", "Detail")
	listed, more := 0, 0
	for _, n := range nodes {
		for _, a := range n.Waits {
			if listed == mostWaits {
				more++
				continue
			}
			listed++
			t.Row(n.Name, cli.ShortID(a.ID, false), cli.JobName(a.Namespace, a.JobID)+"."+a.TaskGroup, a.Reason, a.Detail)
		}
	}
	if more > 0 {
		t.Row("...", fmt.Sprintf("and %d more", more))
	}
	return t
}

// planNotes are the lines below the tables.
func planNotes(p *drainplan.Answer, request drainplan.Request) (lines []string) {
	if p.Most > 0 {
		lines = append(lines, fmt.Sprintf("The drains end after %s to %s in %s", cli.Rough(p.Least), cli.Rough(p.Most), cli.Count(p.Plays, "play")))
	}
	if p.EnoughDeadline > 0 {
		lines = append(lines, fmt.Sprintf("A deadline of %s takes nothing", cli.Rough(p.EnoughDeadline)))
	}
	switch {
	case p.MovedTwice == 0 || len(p.Unplaced) > 0: // without room elsewhere no order helps
	case request.OneByOne:
		lines = append(lines, fmt.Sprintf("%s would move twice: they are placed on a node that is drained later. To prevent this, make all nodes ineligible first",
			cli.Count(p.MovedTwice, "allocation")))
	default:
		lines = append(lines, fmt.Sprintf("If the nodes are drained one after the other, %s would move twice, unless all nodes are ineligible first",
			cli.Count(p.MovedTwice, "allocation")))
	}
	return lines
}
