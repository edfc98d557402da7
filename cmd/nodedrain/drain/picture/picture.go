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
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

// Picture is a drain with its journal, ready to be drawn. Make it with [New].
type Picture struct {
	drain   *wire.Drain
	journal *wire.Journal
	// end is the end of the drain, or now if it runs.
	end    time.Duration
	rows   []row
	groups []group
	hidden int // groups that are not drawn
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
	p := &Picture{drain: story.Drain, journal: story.Journal}
	p.end = max(0, p.since(story.Drain.EndedAt))
	if story.Drain.EndedAt.IsZero() {
		p.end = max(0, now.Sub(story.Drain.Strategy.StartedAt.Time))
	}
	p.addRows()
	for _, g := range p.journal.Groups {
		lane := group{JournalGroup: g, name: cli.JobName(g.Namespace, g.JobID) + "." + g.Group, at: p.since(g.LowestAt)}
		lane.until = lane.at + g.LowestFor
		if !g.LowestSince.IsZero() {
			lane.until += max(0, now.Sub(g.LowestSince.Time))
		}
		p.groups = append(p.groups, lane)
	}
	if p.hidden = max(0, len(p.groups)-maxGroups); p.hidden > 0 {
		slices.SortStableFunc(p.groups, func(a, b group) int { return cmp.Compare(a.room(), b.room()) })
		p.groups = p.groups[:maxGroups]
	}
	p.hidden += p.journal.GroupsOmitted
	return p
}

// since is the time from the start of the drain. Clocks of leaders differ, so it may be negative.
func (p *Picture) since(t wire.Time) time.Duration { return t.Sub(p.drain.Strategy.StartedAt.Time) }

// addRows makes the rows from the events.
func (p *Picture) addRows() {
	requests := row{name: "requests", class: "request"}
	deadline, refused := row{name: "deadline", class: "deadline"}, row{name: "refusals", class: "fault"}
	end, confirmed := row{name: "end", class: outcomeClass(p.drain.Outcome)}, row{name: "confirmed", class: "complete"}
	stages := make(map[string]*row)
	took, refusals := 0, 0
	for _, e := range p.journal.Events {
		m := mark{at: p.since(e.Time), until: p.since(e.Time), text: e.Text}
		if !e.Until.IsZero() {
			m.until = max(m.at, p.since(e.Until))
		}
		switch e.Kind {
		case "requested", "changed":
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

// title is the name of the drain.
func (p *Picture) title() string { return "drain of " + cmp.Or(p.drain.NodeName, p.drain.NodeID) }

// state is the outcome of the drain, or that it runs.
func (p *Picture) state() string { return cmp.Or(p.drain.Outcome, "running") }

// facts are short facts about the drain.
func (p *Picture) facts() []string {
	facts := []string{"id " + p.drain.ID, "started " + cli.Clock(p.drain.Strategy.StartedAt)}
	if p.drain.EndedAt.IsZero() {
		return append(facts, "running for "+drawing.Rounded(p.end))
	}
	return append(facts, "took "+drawing.Rounded(p.end))
}

// omitted describes the events that are missing, or is empty.
func (p *Picture) omitted() string {
	if p.journal.EventsOmitted == 0 {
		return ""
	}
	return cli.Count(p.journal.EventsOmitted, "event") + " not kept: a journal has the first and the latest ones"
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
