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

// Bounds of a file. A larger file is refused before it is read.
const (
	MaxBytes  = 1 << 20
	MaxLines  = 10_000
	MaxNodes  = 100_000
	MaxJobs   = 100_000
	MaxAllocs = 1_000_000
	// MaxWanted is how many allocations all jobs together may want, and one edit may ask
	// for: a scheduler that has to place them one by one takes minutes for as many.
	MaxWanted = 100_000

	// maxProblems bounds the errors that are told at once, and the warnings.
	maxProblems = 20
)

// Ending is the ending of the names of scenario files.
const Ending = ".drain"

// Warning describes a part of a file that is valid and probably not meant.
type Warning struct {
	File string
	Line int
	Text string
}

// String returns the warning with its place: "case.drain:12: ...".
func (w Warning) String() string { return fmt.Sprintf("%s:%d: warning: %s", w.File, w.Line, w.Text) }

// Parse reads a scenario. The name is the file's, for errors and warnings; without
// its folder and its ending it is the scenario's. An error tells of the first
// mistakes, each on a line of its own with the file's name and the line: correct the
// file. The scenario is nil if there is an error.
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
		return nil, nil, fmt.Errorf("%s is no text", name)
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
	_, _, err := Parse(s.Name+Ending, &text)
	return err
}

// parser reads one file.
type parser struct {
	file     string
	line     int // the one that is read
	scenario *Scenario
	problems []error
	warnings []Warning
	scope
	// open is the job whose groups may follow, or nil.
	open *declared
	// once are the directives that there may be one of, and where they stand.
	once map[string]int
	// allocs counts the allocations.
	allocs int
}

// scope holds the names that a line may use: what the lines above it declare.
type scope struct {
	// nodes and jobs are declared, each with its line.
	nodes map[cluster.NodeID]int
	jobs  map[cluster.JobKey]*declared
	// classes are the classes of nodes.
	classes map[string]bool
	cluster *Cluster
	// room is how many more names the ranges of the file may stand for.
	room int
}

// declared is a job that is declared.
type declared struct {
	line int
	// at is where it stands among the scenario's jobs.
	at     int
	groups map[string]bool
	// own says that its line speaks of its own group.
	own bool
}

func newParser(file string) *parser {
	s := &Scenario{Name: strings.TrimSuffix(path.Base(file), Ending)}
	return &parser{
		file:     file,
		scenario: s,
		once:     map[string]int{},
		scope: scope{
			nodes: map[cluster.NodeID]int{}, jobs: map[cluster.JobKey]*declared{}, classes: map[string]bool{},
			cluster: &s.Cluster, room: maxNames,
		},
	}
}

// problem notes an error of the line.
func (p *parser) problem(err error) {
	if err != nil && !p.full() {
		for text := range strings.SplitSeq(err.Error(), "\n") {
			p.problems = append(p.problems, fmt.Errorf("%s:%d: %s", p.file, p.line, text))
		}
	}
}

// full reports whether no more errors are kept.
func (p *parser) full() bool { return len(p.problems) >= maxProblems }

// warn notes a warning of a line.
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
		p.problem(errors.New("more than two sections after the first: there are only the story and the end"))
	}
	for i, to := range []*string{&p.scenario.Story, &p.scenario.End} {
		if i < len(expected) {
			*to = section(expected[i])
		}
	}
	p.wanted()
	review{p}.implausible()
	slices.SortStableFunc(p.warnings, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
}

// wanted refuses more allocations than a run can place in reasonable time.
func (p *parser) wanted() {
	left := MaxWanted
	for i := range p.scenario.Jobs {
		j := &p.scenario.Jobs[i]
		for _, g := range j.Groups {
			if left -= g.Count; left < 0 {
				p.line = p.jobs[j.Key].line
				p.problem(fmt.Errorf("the jobs down to %s want more than %d allocations", jobText(j.Key), MaxWanted))
				return
			}
		}
	}
	for i := range p.scenario.Events {
		e := &p.scenario.Events[i]
		if edit, is := e.Op.(*Edit); is && edit.Count != nil && *edit.Count > MaxWanted {
			p.line = e.Line
			p.problem(fmt.Errorf("count=%d: more than %d allocations", *edit.Count, MaxWanted))
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
		return fmt.Errorf("%q belongs before the first \"at\"", verb)
	}
	switch verb {
	case "seed":
		return p.seed(rest)
	case "cluster":
		return p.single(verb, p.scenario.Cluster.fields(), rest)
	case "drainer":
		return p.single(verb, p.scenario.Drainer.fields(), rest)
	case "run":
		err := p.single(verb, p.scenario.Run.fields(&p.scope), rest)
		return errors.Join(err, p.scenario.soundCore())
	case "node":
		return p.node(rest)
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
	return []string{"seed", "cluster", "drainer", "node", "job", "group", "alloc", "client", "at", "run"}
}
