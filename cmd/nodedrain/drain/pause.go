package drain

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Pause is "nodedrain drain pause".
func Pause() *cli.Command {
	var all bool
	return &cli.Command{
		Short: "Pause all drains",
		Description: `
  Pauses all drains with one request, also those that begin later, until "nodedrain drain
  resume -all". A paused drain lets no more allocations leave, except those whose job or
  group is gone. It does not end, and its deadline does not pass. What is marked already
  stops all the same, and volumes are released. The nodes get no new allocations. Forced
  drains and those past their deadline are not paused: the command lists them with the
  reason. To pause the drain of one node, use "nodedrain node drain -pause NODE".
`,
		Exits: `
  0   All drains are paused, except those listed as not paused. Also if they were before.
  1   The request failed. If no server answered, repeat it: that changes nothing.
`,
		Connects: true, Formats: true,
		Options: cli.Options{cli.Flag(&all, "all", "Pause all drains. Required.")},
		Run: func(c *cli.Call) error {
			if !all {
				return c.UsageError("-all is required; to pause the drain of one node: nodedrain node drain -pause NODE")
			}
			return pauseAll(c)
		},
	}
}

// Resume is "nodedrain drain resume".
func Resume() *cli.Command {
	var all bool
	return &cli.Command{
		Short: "Resume all drains",
		Description: `
  Ends the pause of all drains. The paused time is added to their deadlines: the command
  lists the drains that go on with their new deadlines. Drains with a pause of their own
  stay paused, and the command lists them. To resume the drain of one node, use "nodedrain
  node drain -resume NODE".
`,
		Exits: `
  0   There is no pause of all drains any more. Also if there was none before.
  1   The request failed. If no server answered, repeat it: that changes nothing.
`,
		Connects: true, Formats: true,
		Options: cli.Options{cli.Flag(&all, "all", "Resume all drains. Required.")},
		Run: func(c *cli.Call) error {
			if !all {
				return c.UsageError("-all is required; to resume the drain of one node: nodedrain node drain -resume NODE")
			}
			return resumeAll(c)
		},
	}
}

func pauseAll(c *cli.Call) error {
	done, _, err := client.PauseDrains(c.Ctx, c.API, "")
	switch {
	case err != nil:
		return cli.Errorf("Error pausing drains: %v", err)
	case c.Raw():
		return c.PrintRaw(done)
	case done.Changed:
		fmt.Fprintln(c.Out, "All drains are paused, also those that begin later")
	default:
		fmt.Fprintf(c.Out, "%s: nothing has changed\n", AllPausedText(done.All))
	}
	c.SectionIfAny("Paused", pausedTable(done.Drains))
	c.SectionIfAny("Not Paused", skippedTable(done.Skipped))
	fmt.Fprintf(c.Out, "\n%s\nTo resume all drains: %s%s\n", StoppingText(done.Drains), resumeAllCommand, c.SameServers())
	return nil
}

func resumeAll(c *cli.Call) error {
	done, _, err := client.ResumeDrains(c.Ctx, c.API, "")
	switch {
	case err != nil:
		return cli.Errorf("Error resuming drains: %v", err)
	case c.Raw():
		return c.PrintRaw(done)
	case done.Changed:
		fmt.Fprintln(c.Out, "The pause of all drains has ended")
	default:
		fmt.Fprintln(c.Out, "There was no pause of all drains: nothing has changed")
	}
	c.SectionIfAny("Resumed", resumedTable(done.Drains))
	list, _, err := c.API.Drains(c.Ctx, client.Query{})
	if err != nil {
		return cli.Errorf("Error querying drains: %v", err)
	}
	own := cli.NewTable("Node", "Name", "Paused Since")
	for _, a := range list.Active {
		if a.Drain.PausedBy != "" {
			own.Row(cli.ShortID(a.Drain.NodeID, false), a.Drain.NodeName, cli.Clock(a.Drain.PausedSince))
		}
	}
	c.SectionIfAny("Still Paused by Their Own Pause", own)
	return nil
}

const resumeAllCommand = "nodedrain drain resume -all"

// pausedTable lists the drains that a pause holds.
func pausedTable(drains []wire.PausedDrain) *cli.Table {
	t := cli.NewTable("Node", "Name", "Drain", "Still Stopping")
	for _, d := range drains {
		t.Row(cli.ShortID(d.Node, false), d.Name, cli.ShortID(d.Drain, false), fmt.Sprint(d.Stopping))
	}
	return t
}

// skippedTable lists the drains that a pause does not hold.
func skippedTable(drains []wire.SkippedDrain) *cli.Table {
	t := cli.NewTable("Node", "Name", "Drain", "Reason")
	for _, d := range drains {
		t.Row(cli.ShortID(d.Node, false), d.Name, cli.ShortID(d.Drain, false), d.Why)
	}
	return t
}

// resumedTable lists the drains that go on, with their deadlines.
func resumedTable(drains []wire.PausedDrain) *cli.Table {
	t := cli.NewTable("Node", "Name", "Drain", "Deadline")
	for _, d := range drains {
		t.Row(cli.ShortID(d.Node, false), d.Name, cli.ShortID(d.Drain, false), cli.TimeCell(d.ForceDeadline))
	}
	return t
}

// StoppingText returns what a pause of drains does not stop.
func StoppingText(drains []wire.PausedDrain) string {
	stopping := 0
	for _, d := range drains {
		stopping += d.Stopping
	}
	switch stopping {
	case 0:
		return "No allocation is stopping. Volumes are released all the same"
	case 1:
		return "1 allocation that is marked already stops all the same. Volumes are released all the same"
	}
	return fmt.Sprintf("%d allocations that are marked already stop all the same. Volumes are released all the same", stopping)
}

// AllPausedText returns since when all drains are paused, and the operator who paused them.
func AllPausedText(all *wire.DrainPause) string {
	text := "All drains are paused since " + cli.Clock(all.At)
	if by := cli.Author(all.By); by != "" {
		text += " by " + by
	}
	return text
}

// PausedText returns since when a running drain is paused, and by which pause, or empty.
func PausedText(d *wire.Drain) string {
	text := "since " + cli.Clock(d.PausedSince)
	switch d.PausedBy {
	case wire.PausedByDrain:
		return text
	case wire.PausedByAll:
		return text + ", by the pause of all drains"
	case wire.PausedByBoth:
		return text + ", by its own pause and that of all drains"
	}
	return ""
}

// pausedCell returns since when a drain is paused, and by which pause.
func pausedCell(d *wire.Drain) string {
	if d.PausedBy == "" {
		return "-"
	}
	return fmt.Sprintf("%s (%s)", cli.Clock(d.PausedSince), d.PausedBy)
}

// printPauseOfAll prints that all drains are paused, if they are. A server of an older build has no such pause.
func printPauseOfAll(c *cli.Call) {
	all, _, err := client.DrainPause(c.Ctx, c.API, client.Query{})
	if err == nil && all != nil && !all.At.IsZero() {
		fmt.Fprintf(c.Out, "%s. To resume them: %s%s\n", AllPausedText(all), resumeAllCommand, c.SameServers())
	}
}

// PauseOne pauses the drain of a node.
func PauseOne(c *cli.Call, node *wire.Node) error {
	done, _, err := client.PauseDrains(c.Ctx, c.API, node.ID)
	if err != nil {
		return cli.Errorf("Error pausing the drain: %v", err)
	}
	if done.Changed {
		fmt.Fprintf(c.Out, "The drain of node %s is paused\n", NodeText(node))
	} else {
		fmt.Fprintf(c.Out, "The drain of node %s has been paused before: nothing has changed\n", NodeText(node))
	}
	fmt.Fprintf(c.Out, "%s\nTo resume it: nodedrain node drain -resume%s %s\n", StoppingText(done.Drains), c.SameServers(), node.ID)
	if done.All != nil {
		fmt.Fprintf(c.Out, "%s, too\n", AllPausedText(done.All))
	}
	return nil
}

// ResumeOne resumes the drain of a node. The pause of all drains is an error if it holds the drain: the drain does not
// go on.
func ResumeOne(c *cli.Call, node *wire.Node) error {
	done, _, err := client.ResumeDrains(c.Ctx, c.API, node.ID)
	if err != nil {
		return cli.Errorf("Error resuming the drain: %v", err)
	}
	if done.Changed {
		fmt.Fprintf(c.Out, "The drain of node %s goes on, with %s\n", NodeText(node), deadlineText(done.Drains))
		return nil
	}
	if done.All != nil {
		report, _, err := c.API.NodeDrain(c.Ctx, node.ID, client.Query{})
		if err != nil {
			return cli.Errorf("Error reading the drain: %v", err)
		}
		if report.Drain != nil && report.Drain.PausedBy != "" {
			return cli.Errorf("%s: the drain of node %s stays paused, and nothing has changed\nTo resume all drains: %s%s",
				AllPausedText(done.All), NodeText(node), resumeAllCommand, c.SameServers())
		}
	}
	fmt.Fprintf(c.Out, "The drain of node %s is not paused: nothing has changed\n", NodeText(node))
	return nil
}

// NodeText returns the name of a node and its short id.
func NodeText(node *wire.Node) string {
	return fmt.Sprintf("%q (%s)", node.Name, cli.ShortID(node.ID, false))
}

// deadlineText returns the deadline of the first drain.
func deadlineText(drains []wire.PausedDrain) string {
	if len(drains) == 0 || drains[0].ForceDeadline.IsZero() {
		return "no deadline"
	}
	return "the deadline " + cli.Clock(drains[0].ForceDeadline)
}

// pausing returns an event when a pause of the drain begins, and one when it ends.
func (f *Follower) pausing(d *wire.Drain) (events []event) {
	if d == nil {
		return nil
	}
	switch before := f.paused; {
	case before == "" && d.PausedBy != "":
		text := fmt.Sprintf("Node %q drain paused: ", f.Node)
		if d.PausedBy == wire.PausedByAll {
			text = fmt.Sprintf("Node %q drain paused, as all drains are: ", f.Node)
		}
		events = append(events, event{d.PausedSince.Time, text + "what is marked already stops all the same"})
	case before != "" && d.PausedBy == "":
		events = append(events, event{text: fmt.Sprintf("Node %q drain resumed: %s", f.Node, cli.LimitText(d.Strategy))})
	}
	f.paused = d.PausedBy
	return events
}

// movedByResume reports whether a strategy differs from the one before only because a resume has moved the deadline. The
// report of the drain has the line about it.
func movedByResume(n *wire.Node, before, after *wire.DrainStrategy) bool {
	if before.Deadline != after.Deadline || before.IgnoreSystemJobs != after.IgnoreSystemJobs || before.MaxSurge != after.MaxSurge {
		return false
	}
	last := ""
	for _, e := range n.Events {
		if strings.HasPrefix(e.Message, "Node drain") {
			last = e.Message
		}
	}
	return last == cluster.EventDrainResumed
}

// Paused reports whether the drain was paused when it was last read.
func (f *Follower) Paused() bool { return f.paused != "" }
