package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// StatusFlags are the flags of the commands that list a kind of objects and show one.
type StatusFlags struct {
	All, Verbose bool
	filter       string
}

// Lister lists a kind of objects and shows one of them.
type Lister[Stub, Object any] struct {
	// Noun is the kind, as in "job".
	Noun string
	// List reads a list. ID is the whole id of an object.
	List func(context.Context, client.Query) ([]Stub, client.Answer, error)
	ID   func(Stub) string
	// Old reports whether the list leaves an object out unless -all is set; or nil.
	Old func(Stub) bool
	// Table lists objects.
	Table func([]Stub) *Table
	// Read reads an object, and Show prints it.
	Read func(ctx context.Context, id string, q client.Query) (Object, client.Answer, error)
	Show func(Object) error
}

// Status returns a command that lists a kind of objects and shows one of them.
func Status[Stub, Object any](short string, args Arguments, description string, lister func(*Call, *StatusFlags) *Lister[Stub, Object]) *Command {
	var f StatusFlags
	return &Command{
		Short: short, Args: args, Description: description, Connects: true, Formats: true,
		Options: Options{
			Flag(&f.All, "all", "Also list ended ones."),
			Flag(&f.filter, "filter EXPR", "List only those that match an expression over their fields, such as 'Status == \"blocked\"'."),
			Flag(&f.Verbose, "verbose", "Show whole ids and more columns."),
		},
		Run: func(c *Call) error { return lister(c, &f).show(c, &f) },
	}
}

// show shows the object that the argument names, or without one the list.
func (l *Lister[Stub, Object]) show(c *Call, f *StatusFlags) error {
	if len(c.Args) == 1 {
		object, err := l.Named(c, c.Args[0])
		switch {
		case err != nil:
			return err
		case c.Raw():
			return c.PrintRaw(object)
		}
		return l.Show(object)
	}
	stubs, _, err := l.List(c.Ctx, client.Query{Filter: f.filter})
	if err != nil {
		return Errorf("Error querying %ss: %v", l.Noun, err)
	}
	if len(stubs) == 0 {
		c.WarnUnmatched(f.filter, l.Noun)
	}
	hidden := 0
	if l.Old != nil && !f.All {
		before := len(stubs)
		stubs = slices.DeleteFunc(stubs, l.Old)
		hidden = before - len(stubs)
	}
	switch {
	case c.Raw():
		return c.PrintRaw(stubs)
	case len(stubs) > 0:
		l.Table(stubs).Write(c.Out)
	case hidden == 0:
		fmt.Fprintf(c.Out, "No %ss\n", l.Noun)
	}
	if hidden > 0 {
		fmt.Fprintf(c.Out, "%s left out; -all lists them\n", Count(hidden, "ended "+l.Noun))
	}
	return nil
}

// WarnUnmatched warns that a filter selected nothing: a script cannot distinguish that from a misspelled key. The
// servers refuse an unknown field, but they accept every key of a map.
func (c *Base) WarnUnmatched(filter, noun string) {
	if filter != "" {
		c.Warn(fmt.Sprintf("no %s matches the filter; a key of a map that no %s has, such as a misspelled one, matches none", noun, noun))
	}
}

// Named reads the object with this id, or the only one whose id begins with it.
func (l *Lister[Stub, Object]) Named(c *Call, prefix string) (object Object, err error) {
	stub, err := l.Find(c, prefix)
	if err != nil {
		return object, err
	}
	if object, _, err = l.Read(c.Ctx, l.ID(stub), client.Query{}); err != nil {
		return object, Errorf("Error querying %s: %v", l.Noun, err)
	}
	return object, nil
}

// Find returns the object with this id, or the only one whose id begins with it, as in the list.
func (l *Lister[Stub, Object]) Find(c *Call, prefix string) (found Stub, err error) {
	stubs, _, err := l.List(c.Ctx, client.Query{Prefix: prefix})
	if err != nil {
		return found, Errorf("Error querying %s: %v", l.Noun, err)
	}
	for _, s := range stubs {
		if l.ID(s) == prefix {
			return s, nil
		}
	}
	switch len(stubs) {
	case 0:
		return found, Errorf("No %s(s) with prefix or id %q found", l.Noun, prefix)
	case 1:
		return stubs[0], nil
	}
	return found, Errorf("Prefix matched multiple %ss\n\n%s", l.Noun, l.Table(stubs))
}
