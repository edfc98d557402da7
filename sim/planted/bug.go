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
	// Name is the file's name without its extension.
	Name string
	// Title describes in one line what the code does wrong.
	Title string
	// Why explains why an engineer would make the mistake and when it shows. Never empty.
	Why string
	// Breaks lists the guarantees that the bug breaks, the main one first. Never empty.
	Breaks []Guarantee
	// Edits are the changes of the product's code. Never empty.
	Edits []Edit
}

// Guarantee is the name of a guarantee: "G1" to "G12" of package drainer, "S1" of package
// sim/internal/placement, "S2" of package sim/internal/collected,
// "S3" of package sim/internal/claimed, "S4" of package sim/internal/moved, "S6" of package sim/internal/listed,
// "S7" of package sim/internal/journaled, "S8" of package sim/internal/timed, or "N1" to "N9" and "N12" of package client.
type Guarantee string

// Guarantees returns all guarantees in order.
func Guarantees() []Guarantee {
	return []Guarantee{"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12", "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "N1", "N2", "N3", "N4", "N5", "N6", "N7", "N8", "N9", "N12"}
}

// Edit replaces code inside one function.
type Edit struct {
	// Line is the line of the bug's file on which the edit begins.
	Line int
	// Folder is the package's folder from the top of the repository, with slashes.
	Folder string
	// Func is the function's name, with its receiver's type if it is a method: "term.step".
	Func string
	// Old is the code that the function must contain exactly once. New replaces it.
	Old, New string
}

const (
	extension = ".bug"
	breaks    = "breaks "
	at        = "@@ "
)

// Load reads every bug of a folder in the order of names. The error lists all broken files.
func Load(folder fs.FS) ([]*Bug, error) {
	names, err := fs.Glob(folder, "*"+extension)
	if err != nil {
		return nil, fmt.Errorf("listing planted bugs: %w", err)
	}
	var bugs []*Bug
	var errs []error
	for _, name := range names { // Glob sorts them
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("reading a planted bug: %w", err)
		}
		b, err := Parse(strings.TrimSuffix(name, extension), string(text))
		bugs, errs = append(bugs, b), append(errs, err)
	}
	return bugs, errors.Join(errs...)
}

// Parse reads a bug's file. An error names the file and the line.
func Parse(name, text string) (*Bug, error) {
	b := &Bug{Name: name}
	sections := strings.Split("\n"+text, "\n"+at)
	line, err := 1, b.head(sections[0][min(1, len(sections[0])):])
	for _, section := range sections[1:] {
		if err != nil {
			break
		}
		line = 1 + strings.Count(text[:strings.Index(text, at+section)], "\n")
		err = b.edit(line, section)
	}
	if err == nil && len(b.Edits) == 0 {
		err = fmt.Errorf("no line begins with %q: the bug changes nothing", at)
	}
	if err != nil {
		return nil, fmt.Errorf("%s%s:%d: %w", name, extension, line, err)
	}
	return b, nil
}

// head reads the title, the reason and the guarantees.
func (b *Bug) head(text string) error {
	title, rest, _ := strings.Cut(text, "\n\n")
	why, names, found := strings.Cut(rest, "\n\n"+breaks)
	b.Title, b.Why = title, strings.TrimSpace(why)
	switch {
	case b.Title == "" || strings.Contains(b.Title, "\n"):
		return errors.New("the title is one line, with a blank line behind it")
	case !found || b.Why == "":
		return fmt.Errorf("a reason, a blank line and %q with guarantees follow the title", breaks)
	}
	for _, name := range strings.Fields(names) {
		if !slices.Contains(Guarantees(), Guarantee(name)) || slices.Contains(b.Breaks, Guarantee(name)) {
			return fmt.Errorf("%q is no guarantee, or is listed twice", name)
		}
		b.Breaks = append(b.Breaks, Guarantee(name))
	}
	if len(b.Breaks) == 0 {
		return fmt.Errorf("no guarantee follows %q", breaks)
	}
	return nil
}

// edit reads a folder, a function and the lines of an edit, marked as in a diff.
func (b *Bug) edit(number int, section string) error {
	lines := strings.Split(strings.TrimRight(section, "\n"), "\n")
	folder, function, found := strings.Cut(lines[0], " ")
	e := Edit{Line: number, Folder: folder, Func: function}
	for _, line := range lines[1:] {
		switch {
		case line == "":
		case line[0] == ' ':
			e.Old, e.New = e.Old+line[1:]+"\n", e.New+line[1:]+"\n"
		case line[0] == '-':
			e.Old += line[1:] + "\n"
		case line[0] == '+':
			e.New += line[1:] + "\n"
		default:
			return fmt.Errorf("%q: a line of an edit begins with a space, a minus or a plus", line)
		}
	}
	switch {
	case !found || function == "" || !fs.ValidPath(folder) || path.Ext(folder) != "":
		return fmt.Errorf("%q: an edit begins with a package's folder and a function, such as %q", lines[0], "drainer term.step")
	case strings.HasPrefix(folder, "sim/") || folder == "sim":
		return fmt.Errorf("%s is not part of the product", folder)
	case e.Old == e.New || strings.TrimSpace(e.Old) == "":
		return errors.New("the edit has no old code, or changes nothing")
	}
	b.Edits = append(b.Edits, e)
	return nil
}
