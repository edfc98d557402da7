package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Limits of a file.
const (
	MaxBytes  = 1 << 20
	MaxLines  = 10_000
	MaxNodes  = 100_000
	MaxJobs   = 100_000
	MaxAllocs = 1_000_000
	// MaxWanted limits the sum of all counts, and the count of one edit. The scheduler takes
	// minutes to place more allocations.
	MaxWanted = 100_000

	// maxProblems limits the reported errors, and the warnings.
	maxProblems = 20
)

// Extension is the extension of scenario files.
const Extension = ".drain"

// Warning describes a part of a file that is valid and probably a mistake.
type Warning struct {
	File string
	Line int
	Text string
}

// String returns the warning with its place: "case.drain:12: ...".
func (w Warning) String() string { return fmt.Sprintf("%s:%d: warning: %s", w.File, w.Line, w.Text) }

// Parse reads a scenario. name is the name of the file, for errors and warnings. Without its folder
// and its extension it is the name of the scenario. The error lists the first mistakes, one on each
// line, with the name of the file and the line number. The scenario is nil if there is an error.
func Parse(name string, r io.Reader) (*Scenario, []Warning, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", name, err)
	}
	lines := strings.Split(string(text), "\n")
	switch {
	case len(text) > MaxBytes:
		return nil, nil, fmt.Errorf("%s is longer than %d bytes", name, MaxBytes)
	case len(lines) > MaxLines:
		return nil, nil, fmt.Errorf("%s has more than %d lines", name, MaxLines)
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return nil, nil, fmt.Errorf("%s is not text", name)
	}
	p := newParser(name)
	p.read(lines)
	if len(p.problems) > 0 {
		return nil, p.warnings, errors.Join(p.problems...)
	}
	return p.scenario, p.warnings, nil
}

// Check returns the error that [Parse] would return for the printed scenario, or nil.
func (s *Scenario) Check() error {
	var text bytes.Buffer
	if err := Print(&text, s); err != nil {
		return err
	}
	_, _, err := Parse(s.Name+Extension, &text)
	return err
}

// parser reads one file.
type parser struct {
	file     string
	line     int // the current line
	scenario *Scenario
	problems []error
	warnings []Warning
	scope    *scope
	// open is the job whose groups may follow, or nil.
	open *declared
	// once holds the lines of the directives that a file may have once.
	once map[string]int
	// allocs counts the allocations.
	allocs int
}

// scope holds the names that a line may use: those that the lines above it declare.
type scope struct {
	// nodes, jobs and volumes are the declared ones; nodes and volumes have their line.
	nodes   map[cluster.NodeID]int
	jobs    map[cluster.JobKey]*declared
	volumes map[cluster.VolumeID]int
	// classes are the classes of nodes.
	classes map[string]bool
	cluster *Cluster
	// room is how many more names ranges may expand to.
	room int
}

// declared is a declared job.
type declared struct {
	line int
	// at is its index in the scenario's jobs.
	at     int
	groups map[string]bool
	// own is true if its line has a parameter of a group.
	own bool
}

func newParser(file string) *parser {
	s := &Scenario{Name: strings.TrimSuffix(path.Base(file), Extension)}
	return &parser{
		file:     file,
		scenario: s,
		once:     map[string]int{},
		scope: &scope{
			nodes: map[cluster.NodeID]int{}, jobs: map[cluster.JobKey]*declared{}, classes: map[string]bool{},
			volumes: map[cluster.VolumeID]int{}, cluster: &s.Cluster, room: maxNames,
		},
	}
}

// problem records an error of the current line.
func (p *parser) problem(err error) {
	if err != nil && !p.full() {
		for text := range strings.SplitSeq(err.Error(), "\n") {
			p.problems = append(p.problems, fmt.Errorf("%s:%d: %s", p.file, p.line, text))
		}
	}
}

// full reports whether no more errors are kept.
func (p *parser) full() bool { return len(p.problems) >= maxProblems }

// warn records a warning of a line.
func (p *parser) warn(line int, format string, args ...any) {
	if len(p.warnings) < maxProblems {
		p.warnings = append(p.warnings, Warning{File: p.file, Line: line, Text: fmt.Sprintf(format, args...)})
	}
}

// read reads the file's lines.
func (p *parser) read(lines []string) {
	setup, expected := sections(lines)
	p.scenario.Prose = prose(setup)
	for i, line := range setup {
		p.line = i + 1
		if words := split(line); len(words) > 0 && !p.full() {
			p.problem(p.directive(words))
		}
	}
	p.close()
	if len(expected) > 2 {
		p.line = len(lines)
		p.problem(errors.New("more than two expected texts: there are only the story and the end"))
	}
	for i, to := range []*string{&p.scenario.Story, &p.scenario.End} {
		if i < len(expected) {
			*to = section(expected[i])
		}
	}
	p.wanted()
	p.realOnly()
	p.services()
	review{p}.wholeFile()
	slices.SortStableFunc(p.warnings, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
}

// wanted refuses more allocations than a run can place in reasonable time.
func (p *parser) wanted() {
	left := MaxWanted
	for j, g := range p.scenario.EachGroup() {
		if left -= g.Count; left < 0 {
			p.line = p.scope.jobs[j.Key].line
			p.problem(fmt.Errorf("the sum of counts down to job %s is more than %d", JobText(j.Key), MaxWanted))
			return
		}
	}
	for i := range p.scenario.Events {
		e := &p.scenario.Events[i]
		if edit, is := e.Op.(*Edit); is && edit.Count != nil && *edit.Count > MaxWanted {
			p.line = e.Line
			p.problem(fmt.Errorf("count=%d: at most %d", *edit.Count, MaxWanted))
		}
	}
}

// directive reads a line.
func (p *parser) directive(words []string) error {
	verb, rest := words[0], words[1:]
	if verb != "group" {
		p.close()
	}
	if len(p.scenario.Events) > 0 && verb != "at" && verb != "run" && slices.Contains(directiveNames(), verb) {
		return fmt.Errorf("%q must come before the first \"at\"", verb)
	}
	switch verb {
	case "seed":
		return p.seed(rest)
	case "cluster":
		return p.single(verb, p.scope.fields(&p.scenario.Cluster), rest)
	case "drainer":
		return p.single(verb, knobs(&p.scenario.Drainer), rest)
	case "run":
		err := p.single(verb, p.scope.fields(&p.scenario.Run), rest)
		return errors.Join(err, p.scenario.checkCut())
	case "node":
		return p.node(rest)
	case "volume":
		return p.volume(rest)
	case "job":
		return p.job(rest)
	case "group":
		return p.group(rest)
	case "alloc":
		return p.alloc(rest)
	case "client":
		return p.client(rest)
	case "at":
		return p.event(rest)
	}
	return unknown("directive", verb, directiveNames())
}

func directiveNames() []string {
	return []string{"seed", "cluster", "drainer", "node", "volume", "job", "group", "alloc", "client", "at", "run"}
}
