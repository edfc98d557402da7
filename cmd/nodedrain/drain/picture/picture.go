package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

// Picture is a drain with its journal, or a plan of drains, ready to be drawn. Make it with [New] or [OfPlan].
type Picture struct {
	// title names what is drawn, state is how it ended, and facts are short facts about it.
	title, state string
	facts        []string
	outcome      cluster.Outcome
	// heading is the heading of the rows.
	heading string
	// end is the end of the drain, or now if it runs. deadline is that of the drain, or zero.
	end, deadline time.Duration
	rows          []row
	groups        []group
	hidden        int // groups that are not drawn
	// omitted describes the events that are missing, or is empty.
	omitted string
}

// row shows the events of one kind, or one stage.
type row struct {
	name string
	// class is the colour in an SVG.
	class string
	marks []mark
	// count is the number beside the row, or empty.
	count string
	// took is how long the stage or the drain was, or empty.
	took string
}

// stageClass is the colour of stages.
const stageClass = "marked"

// meaning is the meaning of the row's colour, or empty if the row has texts.
func (r row) meaning() string {
	switch r.class {
	case stageClass:
		return "stage leaves"
	case "fault":
		return "refused by the servers"
	}
	return ""
}

// ended ends the stage of the row.
func (r *row) ended(m mark) {
	stage := &r.marks[0]
	if stage.open {
		stage.until, stage.open = max(stage.at, m.at), false
		stage.text += "; " + m.text
		r.took = drawing.Rounded(stage.until - stage.at)
	}
}

// mark is an event of a row.
type mark struct {
	at, until time.Duration
	text      string
	// open means that the end of the mark is missing: the stage has not ended.
	open bool
}

// group is a lane of a group.
type group struct {
	wire.JournalGroup
	name      string
	at, until time.Duration
}

// maxGroups is the largest number of lanes.
const maxGroups = 32

// New returns the picture of a drain with a journal.
func New(story wire.DrainStory, now time.Time) *Picture {
	d, j := story.Drain, story.Journal
	since := func(t wire.Time) time.Duration { return t.Sub(d.Strategy.StartedAt.Time) } // clocks of leaders differ: it may be negative
	p := &Picture{
		title: "drain of " + cmp.Or(d.NodeName, d.NodeID), state: cmp.Or(d.Outcome, "running"), outcome: cluster.Outcome(d.Outcome),
		facts: []string{"id " + d.ID, "started " + cli.Clock(d.Strategy.StartedAt)}, heading: "events",
		hidden: j.GroupsOmitted,
	}
	if d.EndedAt.IsZero() {
		p.end = max(0, now.Sub(d.Strategy.StartedAt.Time))
		p.facts = append(p.facts, "running for "+drawing.Rounded(p.end))
	} else {
		p.end = max(0, since(d.EndedAt))
		p.facts = append(p.facts, "took "+drawing.Rounded(p.end))
	}
	if !d.Strategy.ForceDeadline.IsZero() {
		p.deadline = since(d.Strategy.ForceDeadline)
	}
	if j.EventsOmitted > 0 {
		p.omitted = cli.Count(j.EventsOmitted, "event") + " not kept: a journal has the first and the latest ones"
	}
	p.addRows(j, since)
	for _, g := range j.Groups {
		at := since(g.LowestAt)
		until := at + g.LowestFor
		if !g.LowestSince.IsZero() {
			until += max(0, now.Sub(g.LowestSince.Time))
		}
		p.addGroup(g, at, until)
	}
	p.keepLowest()
	return p
}

// OfPlan returns the picture of a plan. Deadline is that of the drains, or zero or less.
func OfPlan(plan *drainplan.Answer, deadline time.Duration) *Picture {
	p := &Picture{title: "plan of drains", state: "all drains end", outcome: cluster.OutcomeComplete, heading: "drains", deadline: deadline}
	if len(plan.Nodes) == 1 {
		p.title = "plan of the drain of " + plan.Nodes[0].Name
	}
	p.facts = append(p.facts, cli.Count(plan.Allocs, "allocation")+" leave", cli.Count(plan.Plays, "play"))
	if plan.Took > 0 {
		p.facts = append(p.facts, "takes "+drawing.Rounded(plan.Took))
	}
	for _, n := range plan.Nodes {
		p.end = max(p.end, n.Began+n.Took)
	}
	for _, g := range plan.Groups {
		p.end = max(p.end, g.LowestAt+g.LowestFor)
	}
	for _, n := range plan.Nodes {
		m := mark{at: n.Began, until: n.Began + n.Took, text: fmt.Sprintf("%s: %d leave, %d taken", n.Outcome, n.Allocs, n.Taken)}
		r := row{name: n.Name, class: outcomeClass(n.Outcome), took: drawing.Rounded(n.Took)}
		if n.Outcome == "" {
			p.state, p.outcome = "not all drains end", cluster.OutcomeNone
			m.until, m.open, m.text, r.took = p.end, true, fmt.Sprintf("never ends: %d wait", len(n.Waits)), "never"
		}
		r.marks = []mark{m}
		p.rows = append(p.rows, r)
	}
	for _, g := range plan.Groups {
		if g.Type != string(cluster.JobService) {
			continue
		}
		p.addGroup(wire.JournalGroup{
			Namespace: g.Namespace, JobID: g.JobID, Group: g.Group, Marked: g.Moves, Lowest: g.Lowest, Needed: min(g.Needed, g.Healthy),
		}, g.LowestAt, g.LowestAt+g.LowestFor)
	}
	p.keepLowest()
	return p
}

// addGroup adds the lane of a group that is lowest in that time.
func (p *Picture) addGroup(g wire.JournalGroup, at, until time.Duration) {
	p.groups = append(p.groups, group{JournalGroup: g, name: cli.JobName(g.Namespace, g.JobID) + "." + g.Group, at: at, until: until})
}

// keepLowest leaves out the groups that have too many others below them.
func (p *Picture) keepLowest() {
	if more := len(p.groups) - maxGroups; more > 0 {
		slices.SortStableFunc(p.groups, func(a, b group) int { return cmp.Compare(a.room(), b.room()) })
		p.groups = p.groups[:maxGroups]
		p.hidden += more
	}
}

// addRows makes the rows from the events.
func (p *Picture) addRows(j *wire.Journal, since func(wire.Time) time.Duration) {
	requests := row{name: "requests", class: "request"}
	deadline, refused := row{name: "deadline", class: "deadline"}, row{name: "refusals", class: "fault"}
	end, confirmed := row{name: "end", class: outcomeClass(string(p.outcome))}, row{name: "confirmed", class: "complete"}
	stages := make(map[string]*row)
	took, refusals := 0, 0
	for _, e := range j.Events {
		m := mark{at: since(e.Time), until: since(e.Time), text: e.Text}
		if !e.Until.IsZero() {
			m.until = max(m.at, since(e.Until))
		}
		switch e.Kind {
		case "requested", "changed", "paused", "resumed":
			requests.marks = append(requests.marks, m)
		case "stage began":
			m.until, m.open = max(m.at, p.end), true
			stages[e.Stage] = &row{name: e.Stage, class: stageClass, marks: []mark{m}}
		case "stage ended":
			if stages[e.Stage] == nil { // its beginning is not in the journal
				stages[e.Stage] = &row{name: e.Stage, class: stageClass, marks: []mark{m}}
			}
			stages[e.Stage].ended(m)
		case "deadline took":
			deadline.marks = append(deadline.marks, m)
			took += e.Allocs
		case "refused":
			refused.marks = append(refused.marks, m)
			refusals += e.Allocs
		case "ended":
			end.marks, end.took = []mark{m}, drawing.Rounded(max(0, m.at))
		case "confirmed":
			confirmed.marks = append(confirmed.marks, m)
		}
	}
	requests.count, deadline.count, refused.count = fmt.Sprint(len(requests.marks)), fmt.Sprint(took), fmt.Sprint(refusals)
	p.rows = append(p.rows, requests)
	for _, s := range cluster.Stages() {
		if stage := stages[s.String()]; stage != nil {
			p.rows = append(p.rows, *stage)
		}
	}
	p.rows = append(p.rows, deadline, refused, end, confirmed)
	p.rows = slices.DeleteFunc(p.rows, func(r row) bool { return len(r.marks) == 0 })
}

// scale returns a scale for all events.
func (p *Picture) scale(width, breaks int) drawing.Scale {
	times := []time.Duration{0, p.end}
	for _, r := range p.rows {
		for _, m := range r.marks {
			times = append(times, m.at, m.until)
		}
	}
	for _, g := range p.groups {
		times = append(times, g.at, g.until)
	}
	return drawing.NewScale(slices.Max(times), width, times, breaks)
}

// leftOut describes the groups that are missing.
func (p *Picture) leftOut() string {
	return "and " + cli.Count(p.hidden, "more group") + ", none of them farther below its need"
}

// room is how many more allocations were healthy at the lowest than the budget of the group required. It is negative
// if the group was below its budget.
func (g group) room() int { return g.Lowest - max(0, g.Needed) }

// lasted is how long the group was at its lowest, in all.
func (g group) lasted() string { return cli.Rough(g.until - g.at) }

// text describes the lane.
func (g group) text() string {
	return fmt.Sprintf("%s: %d healthy at the lowest, %d needed, first at %s, for %s in all", g.name, g.Lowest, max(0, g.Needed), drawing.Rounded(max(0, g.at)), g.lasted())
}

// outcomeClass is the colour of an outcome.
func outcomeClass(outcome string) string {
	switch cluster.Outcome(outcome) {
	case cluster.OutcomeNone:
		return "runson"
	case cluster.OutcomeDeadlineReached:
		return "deadline"
	}
	return strings.ReplaceAll(outcome, " ", "")
}
