package scenario

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Print writes a scenario in its canonical form. Defaults are left out, and equal scenarios have equal
// texts. [Parse] reads the same scenario from it, except for the line numbers of events.
func Print(w io.Writer, s *Scenario) error {
	p := &printer{w: bufio.NewWriter(w)}
	for _, text := range s.Prose {
		p.line(strings.TrimRight("# "+text, blanks))
	}
	p.gap()
	if s.Seed != 0 {
		p.line("seed", strconv.FormatUint(s.Seed, 10))
	}
	p.optional("cluster", parameters(&s.Cluster))
	p.optional("drainer", knobs(&s.Drainer))
	p.gap()
	for i := range s.Nodes {
		p.directive("node "+listText(s.Nodes[i].IDs), parameters(&s.Nodes[i]))
	}
	for i := range s.Volumes {
		v := &s.Volumes[i]
		p.directive("volume "+listText(v.Names)+v.Indexes.text(), parameters(v))
	}
	p.gap()
	p.jobs(s.Jobs)
	p.gap()
	p.allocs(s.Allocs)
	p.gap()
	for i := range s.Clients {
		p.directive("client "+s.Clients[i].Match.String(), parameters(&s.Clients[i]))
	}
	p.gap()
	for i := range s.Events {
		p.event(&s.Events[i])
	}
	p.gap()
	p.optional("run", parameters(&s.Run))
	p.text(expectation(s.Story, s.End))
	return p.w.Flush()
}

// printer writes lines. The flush returns their errors.
type printer struct {
	w *bufio.Writer
	// wrote is true after the first line. With blank, a blank line comes before the next one.
	wrote, blank bool
}

func (p *printer) text(text string) { _, _ = p.w.WriteString(text) }

func (p *printer) line(words ...string) {
	if p.blank {
		p.text("\n")
	}
	p.wrote, p.blank = true, false
	p.text(strings.Join(words, " ") + "\n")
}

// gap separates the lines so far from the next one by a blank line.
func (p *printer) gap() { p.blank = p.wrote }

func (p *printer) directive(head string, fields []field) {
	p.line(append([]string{head}, written(fields)...)...)
}

// optional writes a directive if it has parameters.
func (p *printer) optional(head string, fields []field) {
	if words := written(fields); len(words) > 0 {
		p.line(append([]string{head}, words...)...)
	}
}

// jobs writes jobs. Jobs with consecutive names and equal parameters share a line.
func (p *printer) jobs(jobs []Job) {
	for len(jobs) > 0 {
		first := &jobs[0]
		run := 1
		for run < len(jobs) && jobs[run].continues(&jobs[run-1]) {
			run++
		}
		head := "job " + JobText(first.Key)
		if run > 1 {
			head = "job " + rangeText(JobText(first.Key), string(jobs[run-1].Key.ID))
		}
		p.job(head, first)
		jobs = jobs[run:]
	}
}

// job writes a job. The group with its name is on the same line, the others follow.
func (p *printer) job(head string, j *Job) {
	fields, groups := parameters(j), j.Groups
	if len(groups) > 0 && groups[0].Name == string(j.Key.ID) {
		own := parameters(&groups[0])
		if j.countIsDefault() {
			own = own[1:] // without its count
		}
		fields, groups = append(fields, own...), groups[1:]
	}
	p.directive(head, fields)
	for i := range groups {
		p.directive("group "+GroupText(cluster.GroupKey{Job: j.Key, Name: groups[i].Name}), parameters(&groups[i]))
	}
}

// countIsDefault reports whether the job's line leaves out the count.
func (j *Job) countIsDefault() bool {
	return j.Type.EveryNode() && len(j.Groups) == 1 && j.Groups[0].Count == 1
}

// continues reports whether the job may share the line of the one before.
func (j *Job) continues(before *Job) bool {
	if j.Key.Namespace != before.Key.Namespace || !follows(string(j.Key.ID), string(before.Key.ID)) ||
		len(j.Groups) != 1 || j.Groups[0].Name != string(j.Key.ID) ||
		len(before.Groups) != 1 || before.Groups[0].Name != string(before.Key.ID) {
		return false
	}
	return slices.Equal(written(parameters(j)), written(parameters(before))) &&
		slices.Equal(written(parameters(&j.Groups[0])), written(parameters(&before.Groups[0])))
}

// allocs writes allocations. Those of jobs with consecutive names share a line if they are all on one
// node, or each on the next node.
func (p *printer) allocs(allocs []Alloc) {
	for len(allocs) > 0 {
		first := allocs[0]
		run := 1
		for run < len(allocs) && allocs[run].continues(&allocs[run-1], &first, run) {
			run++
		}
		head := "alloc " + GroupText(first.Group)
		if run > 1 {
			last := allocs[run-1]
			head = "alloc " + rangeText(JobText(first.Group.Job), string(last.Group.Job.ID))
			if last.On[0] != first.On[0] {
				first.On = nil
				for _, a := range allocs[:run] {
					first.On = append(first.On, a.On[0])
				}
			}
		}
		p.directive(head+first.Indexes.text(), parameters(&first))
		allocs = allocs[run:]
	}
}

// continues reports whether the allocations may share the line of those before. The line has n
// declarations and begins with first.
func (a *Alloc) continues(before, first *Alloc, n int) bool {
	group, last := a.Group, before.Group
	if len(a.On) != 1 || len(before.On) != 1 ||
		group.Job.Namespace != last.Job.Namespace || !follows(string(group.Job.ID), string(last.Job.ID)) ||
		group.Name != string(group.Job.ID) || last.Name != string(last.Job.ID) {
		return false
	}
	same := a.On[0] == before.On[0]
	next := follows(string(a.On[0]), string(before.On[0]))
	if n > 1 { // the line is already on one node, or on a range
		same = same && before.On[0] == first.On[0]
		next = next && before.On[0] != first.On[0]
	}
	if !same && !next || a.Indexes != before.Indexes {
		return false
	}
	return slices.Equal(written(parameters(a)[1:]), written(parameters(before)[1:])) // all but on=
}

func (p *printer) event(e *Event) {
	words := []string{"at", DurationText(e.At)}
	if e.Before != "" {
		words = append(words, "before", string(e.Before))
	}
	if e.Maybe {
		words = append(words, "maybe")
	}
	words = append(words, spelled(e.Op)...)
	p.line(append(words, written(parameters(e.Op))...)...)
}
