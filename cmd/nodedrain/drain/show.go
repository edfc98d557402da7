package drain

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain/picture"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Show is "nodedrain drain show".
func Show() *cli.Command {
	c := new(showCommand)
	return &cli.Command{
		Short: "Show what happened in a drain",
		Description: `
  Shows a drain, running or ended, with its journal: what operators requested, when each
  stage began to leave and had left, how many allocations had to leave because of the
  deadline, what the servers refused, and how the drain ended. For each group of which
  the drain moved allocations it shows the lowest number of healthy allocations, when the
  group first had it, for how long in all, and how many the group needed then. The
  servers keep the journal as long as the record of the drain. DRAIN is the id of the
  drain or a prefix of it.
`,
		Options: cli.Options{
			cli.Flag(&c.timeline, "timeline", "Draw the journal too, with ASCII only if the locale (LC_ALL, LC_CTYPE, LANG) is not UTF-8."),
			cli.Flag(&c.svg, "svg FILE", `Draw the journal as an SVG too. "-" is standard output; the report then goes to standard error.`),
		},
		Args: "DRAIN", Connects: true, Formats: true,
		Run: c.run,
	}
}

// showCommand is one run of "nodedrain drain show".
type showCommand struct {
	timeline bool
	svg      string
}

func (s *showCommand) run(c *cli.Call) error {
	if c.Raw() && (s.timeline || s.svg != "") {
		return c.UsageError("-timeline and -svg exclude -json and -t")
	}
	d, err := findDrain(c, c.Args[0])
	if err != nil {
		return err
	}
	svg, err := c.OpenPicture(s.svg)
	if err != nil {
		return cli.Errorf("Error opening the SVG: %v", err)
	}
	defer svg.Abandon()
	story, _, err := client.DrainStory(c.Ctx, c.API, d.ID, client.Query{})
	switch {
	case err != nil:
		return cli.Errorf("Error querying drain: %v", err)
	case c.Raw():
		return c.PrintRaw(story)
	}
	return s.print(c, story, svg)
}

// print prints a drain, and draws it if the flags require it.
func (s *showCommand) print(c *cli.Call, story *wire.DrainStory, svg *cli.File) error {
	storyFacts(story.Drain).Write(c.Out)
	j, now := story.Journal, time.Now()
	if j == nil {
		fmt.Fprintln(c.Out, "\nThis drain has no journal. The servers keep journals from cluster version 9 on.")
		return nil
	}
	c.SectionIfAny("Plan", foretoldTable(story.Drain, j.Plan))
	for i, e := range j.Events {
		if e.By != "" && cli.Author(e.By) == "" { // without access control the name states nothing
			j.Events[i].Text = strings.Replace(e.Text, e.By, "an operator", 1)
		}
	}
	c.SectionIfAny("Events", eventTable(j))
	c.SectionIfAny("Groups", groupTable(j, now))
	if j.GroupsOmitted > 0 {
		fmt.Fprintf(c.Out, "and %s, none of them farther below its need\n", cli.Count(j.GroupsOmitted, "more group"))
	}
	drawn := picture.New(*story, now)
	if s.timeline {
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

func storyFacts(d *wire.Drain) *cli.Facts {
	var f cli.Facts
	f.Add("ID", d.ID)
	f.Add("Node", fmt.Sprintf("%s (%s)", d.NodeName, cli.ShortID(d.NodeID, false)))
	f.Add("Limit", cli.LimitText(d.Strategy))
	f.Add("Started", cli.Clock(d.Strategy.StartedAt))
	if d.EndedAt.IsZero() {
		f.Add("Ended", "-")
	} else {
		f.Add("Ended", fmt.Sprintf("%s, after %s", cli.Clock(d.EndedAt), cli.Rough(d.EndedAt.Sub(d.Strategy.StartedAt.Time))))
		f.Add("Outcome", OutcomeCell(d))
	}
	f.AddAny("Paused", PausedText(d))
	f.AddAny("By", cli.Author(d.UpdatedBy))
	f.AddAny("Meta", cli.PairsText(d.Meta))
	return &f
}

// foretoldTable compares what a plan foretold with what happened. It is empty without a plan.
func foretoldTable(d *wire.Drain, p *wire.DrainPlan) *cli.Table {
	t := cli.NewTable("Foretold", "Happened")
	if p == nil {
		return t
	}
	happened := "the drain runs"
	if !d.EndedAt.IsZero() {
		happened = fmt.Sprintf("%s left in %s", cli.Count(moved(d), "allocation"), cli.Rough(d.EndedAt.Sub(d.UpdatedAt.Time)))
	}
	t.Row(p.Sentence, happened)
	if p.Most > 0 {
		t.Row(fmt.Sprintf("%s to %s", cli.Rough(p.Least), cli.Rough(p.Most)), "")
	}
	return t
}

// moved counts the allocations that a drain has marked.
func moved(d *wire.Drain) (sum int) {
	for _, n := range d.Marked {
		sum += n
	}
	return sum
}

func eventTable(j *wire.Journal) *cli.Table {
	t := cli.NewTable("Time", "Event")
	for i, e := range j.Events {
		if j.EventsOmitted > 0 && i == j.EventsFirst {
			t.Row("...", cli.Count(j.EventsOmitted, "event")+" not kept")
		}
		text := e.Text
		if !e.Until.IsZero() && e.Allocs > 1 {
			text += ", the last one at " + cli.Clock(e.Until)
		}
		t.Row(cli.Clock(e.Time), text)
	}
	return t
}

func groupTable(j *wire.Journal, now time.Time) *cli.Table {
	t := cli.NewTable("Group", "Moved", "Lowest Healthy", "Needed", "First At", "For")
	for _, g := range j.Groups {
		lasted := g.LowestFor
		if !g.LowestSince.IsZero() {
			lasted += max(0, now.Sub(g.LowestSince.Time))
		}
		needed := fmt.Sprint(max(0, g.Needed))
		if g.Lowest < g.Needed {
			needed += fmt.Sprintf(" (%d too few)", g.Needed-g.Lowest)
		}
		t.Row(cli.JobName(g.Namespace, g.JobID)+"."+g.Group, fmt.Sprint(g.Marked), fmt.Sprint(g.Lowest), needed, cli.Clock(g.LowestAt), cli.Rough(lasted))
	}
	return t
}

// TimeLeftText is the estimated time that a drain takes, with the reason if it has become longer. It is empty if
// nothing is known.
func TimeLeftText(p *wire.DrainProgress, now time.Time) string {
	text := timeLeftCell(p, now)
	if text != "" && p.EndsLater != "" {
		text += ", longer than before: " + cli.SingleLine(p.EndsLater)
	}
	return text
}

func timeLeftCell(p *wire.DrainProgress, now time.Time) string {
	if p.EndsAbout.IsZero() {
		return ""
	}
	return "about " + cli.Rough(max(0, p.EndsAbout.Sub(now)))
}
