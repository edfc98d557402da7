package scenario

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Print writes a scenario in its one canonical form: what is left out of it is at its
// default, and equal scenarios are equal texts. [Parse] reads it back as it was, but
// for the lines of events.
func Print(w io.Writer, s *Scenario) error {
	p := &printer{w: bufio.NewWriter(w)}
	for _, text := range s.Prose {
		p.line(strings.TrimRight("# "+text, blanks))
	}
	p.gap()
	if s.Seed != 0 {
		p.line("seed", strconv.FormatUint(s.Seed, 10))
	}
	p.only("cluster", s.Cluster.fields())
	p.only("drainer", s.Drainer.fields())
	p.gap()
	for i := range s.Nodes {
		p.directive("node "+listText(s.Nodes[i].IDs), s.Nodes[i].fields())
	}
	p.gap()
	p.jobs(s.Jobs)
	p.gap()
	p.allocs(s.Allocs)
	p.gap()
	for i := range s.Clients {
		p.directive("client "+s.Clients[i].Match.String(), s.Clients[i].fields())
	}
	p.gap()
	for i := range s.Events {
		p.event(&s.Events[i])
	}
	p.gap()
	p.only("run", s.Run.fields(nil))
	p.text(expectation(s.Story, s.End))
	return p.w.Flush()
}

// printer writes lines. Errors wait for the flush.
type printer struct {
	w *bufio.Writer
	// wrote says that something was written, apart that a blank line is to come
	// before what is next.
	wrote, apart bool
}

func (p *printer) text(text string) { _, _ = p.w.WriteString(text) }

func (p *printer) line(words ...string) {
	if p.apart {
		p.text("\n")
	}
	p.wrote, p.apart = true, false
	p.text(strings.Join(words, " ") + "\n")
}

// gap sets what is next apart from what was written.
func (p *printer) gap() { p.apart = p.wrote }

func (p *printer) directive(head string, fields []field) {
	p.line(append([]string{head}, written(fields)...)...)
}

// only writes a directive if it says anything.
func (p *printer) only(head string, fields []field) {
	if words := written(fields); len(words) > 0 {
		p.line(append([]string{head}, words...)...)
	}
}

// jobs writes jobs. Those in a row that are alike but for their names share a line.
func (p *printer) jobs(jobs []Job) {
	for len(jobs) > 0 {
		first := &jobs[0]
		run := 1
		for run < len(jobs) && jobs[run].continues(&jobs[run-1]) {
			run++
		}
		head := "job " + jobText(first.Key)
		if run > 1 {
			head = "job " + rangeText(jobText(first.Key), string(jobs[run-1].Key.ID))
		}
		p.job(head, first)
		jobs = jobs[run:]
	}
}

// job writes a job, its own group on its line and the others below.
func (p *printer) job(head string, j *Job) {
	fields, groups := j.fields(), j.Groups
	if len(groups) > 0 && groups[0].Name == string(j.Key.ID) {
		own := groups[0].fields()
		if j.plain() {
			own = own[1:] // without its count
		}
		fields, groups = append(fields, own...), groups[1:]
	}
	p.directive(head, fields)
	for i := range groups {
		p.directive("group "+groupText(cluster.GroupKey{Job: j.Key, Name: groups[i].Name}), groups[i].fields())
	}
}

// plain reports whether the job's line need not say how many of it there are.
func (j *Job) plain() bool {
	return j.Type.EveryNode() && len(j.Groups) == 1 && j.Groups[0].Count == 1
}

// continues reports whether the job may stand on the line of the one before.
func (j *Job) continues(before *Job) bool {
	if j.Key.Namespace != before.Key.Namespace || !follows(string(j.Key.ID), string(before.Key.ID)) ||
		len(j.Groups) != 1 || j.Groups[0].Name != string(j.Key.ID) ||
		len(before.Groups) != 1 || before.Groups[0].Name != string(before.Key.ID) {
		return false
	}
	return slices.Equal(written(j.fields()), written(before.fields())) &&
		slices.Equal(written(j.Groups[0].fields()), written(before.Groups[0].fields()))
}

// allocs writes allocations. Those of jobs in a row share a line if each has one
// node, and all the same or each the next.
func (p *printer) allocs(allocs []Alloc) {
	for len(allocs) > 0 {
		first := allocs[0]
		run := 1
		for run < len(allocs) && allocs[run].continues(&allocs[run-1], &first, run) {
			run++
		}
		head := "alloc " + groupText(first.Group)
		if run > 1 {
			last := allocs[run-1]
			head = "alloc " + rangeText(jobText(first.Group.Job), string(last.Group.Job.ID))
			if last.On[0] != first.On[0] {
				first.On = nil
				for _, a := range allocs[:run] {
					first.On = append(first.On, a.On[0])
				}
			}
		}
		p.directive(head+first.Indexes.text(), first.fields(nil))
		allocs = allocs[run:]
	}
}

// continues reports whether the allocations may stand on the line of those before,
// which began with first and has n.
func (a *Alloc) continues(before, first *Alloc, n int) bool {
	group, last := a.Group, before.Group
	if len(a.On) != 1 || len(before.On) != 1 ||
		group.Job.Namespace != last.Job.Namespace || !follows(string(group.Job.ID), string(last.Job.ID)) ||
		group.Name != string(group.Job.ID) || last.Name != string(last.Job.ID) {
		return false
	}
	same := a.On[0] == before.On[0]
	next := follows(string(a.On[0]), string(before.On[0]))
	if n > 1 { // the line's kind is settled
		same = same && before.On[0] == first.On[0]
		next = next && before.On[0] != first.On[0]
	}
	if !same && !next || a.Indexes != before.Indexes {
		return false
	}
	return slices.Equal(written(a.fields(nil)[1:]), written(before.fields(nil)[1:])) // all but on=
}

func (p *printer) event(e *Event) {
	words := []string{"at", durationText(e.At)}
	if e.Before != "" {
		words = append(words, "before", string(e.Before))
	}
	if e.Maybe {
		words = append(words, "maybe")
	}
	words = append(words, e.Op.words()...)
	p.line(append(words, written(e.Op.fields(nil))...)...)
}
