package planted

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Bug is one planted bug.
type Bug struct {
	// Name is the name of its file, without the ending.
	Name string
	// Title says in one line what the code does wrong.
	Title string
	// Why are the lines that tell why somebody would make the mistake, and what has
	// to come together for it to show. Never empty.
	Why []string
	// Breaks are the guarantees that it should break, the first first. Never empty.
	Breaks []Guarantee
	// Hunks are what it changes. Never empty.
	Hunks []Hunk
}

// Guarantee is one of those of package drainer, by its name: "G1" to "G11".
type Guarantee string

// Guarantees are those that a simulation can break, in their order.
func Guarantees() []Guarantee {
	return []Guarantee{"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11"}
}

// Hunk is whole lines of one file, and what stands there instead.
type Hunk struct {
	// Line is where the hunk begins in the bug's file.
	Line int
	// File is the file it changes, from the top of the repository, with slashes.
	File string
	// Lines are as in a diff: a mark and a line. Blank ones are context.
	Lines []string
}

// Old is the text that must be in the file exactly once, each line ended.
func (h Hunk) Old() string { return h.side('-') }

// New is what stands there with the bug.
func (h Hunk) New() string { return h.side('+') }

func (h Hunk) side(mark byte) string {
	var text strings.Builder
	for _, line := range h.Lines {
		switch {
		case line == "":
			text.WriteByte('\n')
		case line[0] == ' ' || line[0] == mark:
			text.WriteString(line[1:] + "\n")
		}
	}
	return text.String()
}

// String is the bug as it stands in its file.
func (b *Bug) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n%s\n\n%s", b.Title, strings.Join(b.Why, "\n"), breaks)
	for _, g := range b.Breaks {
		fmt.Fprintf(&text, " %s", g)
	}
	text.WriteString("\n")
	for _, h := range b.Hunks {
		fmt.Fprintf(&text, "\n%s %s\n%s\n", at, h.File, strings.Join(h.Lines, "\n"))
	}
	return text.String()
}

// The words of a bug's file.
const (
	breaks = "breaks"
	at     = "@@"
)

// Parse reads a bug's file. An error names the file and the line.
func Parse(name, text string) (*Bug, error) {
	p := &parser{bug: &Bug{Name: name}}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		p.number = i + 1
		if err := p.line(strings.TrimRight(line, "\r")); err != nil {
			return nil, fmt.Errorf("%s.bug:%d: %w", name, p.number, err)
		}
	}
	if err := p.end(); err != nil {
		return nil, fmt.Errorf("%s.bug:%d: %w", name, p.number, err)
	}
	return p.bug, nil
}

// parser reads a bug line by line: its title, why, what it breaks, its hunks.
type parser struct {
	bug    *Bug
	number int // of the line
}

func (p *parser) line(line string) error {
	b := p.bug
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case b.Title == "":
		b.Title = line
		return titleError(line)
	case word == at:
		return p.begin(rest)
	case len(b.Hunks) > 0:
		return p.hunkLine(line)
	case word == breaks:
		return p.breaks(rest)
	case b.Breaks != nil && line != "":
		return fmt.Errorf("after %q comes a hunk, which begins with %q and a file", breaks, at)
	case b.Breaks == nil && (line != "" || len(b.Why) > 0):
		b.Why = append(b.Why, line)
	}
	return nil
}

func titleError(line string) error {
	if strings.TrimSpace(line) != line || line == "" {
		return errors.New("the first line is the title")
	}
	return nil
}

func (p *parser) breaks(rest string) error {
	b := p.bug
	if b.Breaks != nil {
		return fmt.Errorf("%q stands here twice", breaks)
	}
	b.Why = withoutBlankEnd(b.Why)
	if len(b.Why) == 0 {
		return errors.New("nothing says why somebody would make the mistake")
	}
	for _, name := range strings.Split(rest, " ") {
		g := Guarantee(name)
		switch {
		case !slices.Contains(Guarantees(), g):
			return fmt.Errorf("%q is no guarantee", name)
		case slices.Contains(b.Breaks, g):
			return fmt.Errorf("%s stands here twice", g)
		}
		b.Breaks = append(b.Breaks, g)
	}
	return nil
}

// begin begins a hunk.
func (p *parser) begin(file string) error {
	if p.bug.Breaks == nil {
		return fmt.Errorf("what the bug breaks comes before its first hunk: %q", breaks+" G1")
	}
	if err := p.endHunk(); err != nil {
		return err
	}
	if !fs.ValidPath(file) || path.Ext(file) != ".go" {
		return fmt.Errorf("%q is no Go file of the repository", file)
	}
	if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "sim/") {
		return fmt.Errorf("%s is no part of the product", file)
	}
	p.bug.Hunks = append(p.bug.Hunks, Hunk{Line: p.number, File: file})
	return nil
}

func (p *parser) hunkLine(line string) error {
	if line != "" && !strings.ContainsRune(" -+", rune(line[0])) {
		return fmt.Errorf("a line of a hunk begins with a space, %q or %q", "-", "+")
	}
	h := &p.bug.Hunks[len(p.bug.Hunks)-1]
	h.Lines = append(h.Lines, line)
	return nil
}

// endHunk looks at the hunk that has ended, if there is one.
func (p *parser) endHunk() error {
	if len(p.bug.Hunks) == 0 {
		return nil
	}
	h := &p.bug.Hunks[len(p.bug.Hunks)-1]
	h.Lines = withoutBlankEnd(h.Lines)
	switch {
	case strings.TrimSpace(h.Old()) == "":
		return fmt.Errorf("the hunk of line %d says nothing of what is in %s", h.Line, h.File)
	case h.Old() == h.New():
		return fmt.Errorf("the hunk of line %d changes nothing", h.Line)
	}
	return nil
}

func (p *parser) end() error {
	if len(p.bug.Hunks) == 0 {
		return errors.New("the bug changes nothing: it has no hunk")
	}
	return p.endHunk()
}

func withoutBlankEnd(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
