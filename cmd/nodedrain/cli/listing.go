package cli

import (
	"flag"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// StatusFlags are the flags of the commands that list a kind of objects and show one.
type StatusFlags struct {
	All, Verbose bool
	filter       string
}

func (f *StatusFlags) set(set *flag.FlagSet) {
	set.BoolVar(&f.All, "all", false, "")
	set.BoolVar(&f.Verbose, "verbose", false, "")
	set.StringVar(&f.filter, "filter", "", "")
}

// Lister lists a kind of objects and shows one of them.
type Lister[Stub any] struct {
	// Noun is the kind, as in "job".
	Noun string
	// List reads a list. ID is the whole id of an object.
	List func(client.Query) ([]Stub, client.Answer, error)
	ID   func(Stub) string
	// Old reports whether the list leaves an object out unless -all is given; or nil.
	Old func(Stub) bool
	// Table lists objects.
	Table func([]Stub) *Table
	// One shows an object.
	One func(Stub) error
}

// Status returns a command that lists a kind of objects and shows one of them. usage is the first line
// of its help, about the description. The context is that of the search that completes an id.
func Status[Stub any](short, usage, about, context string, lister func(*Call, *StatusFlags) *Lister[Stub]) *Command {
	var f StatusFlags
	return &Command{
		Short: short, Help: "Usage: nodedrain " + usage + "\n\n" + about + statusOptions, Exits: "\n", Connects: true, Formats: true, Flags: f.set,
		Args: Arguments{Most: 1, Usage: "This command takes either one or no arguments", Complete: IDs(context)},
		Run:  func(c *Call) error { return lister(c, &f).show(c, &f) },
	}
}

// show shows the object that the argument names, or without one the list.
func (l *Lister[Stub]) show(c *Call, f *StatusFlags) error {
	if len(c.Args) == 1 {
		stub, err := l.Find(c.Args[0])
		if err != nil {
			return err
		}
		return l.One(stub)
	}
	stubs, _, err := l.List(client.Query{Filter: f.filter})
	if err != nil {
		return Errorf("Error querying %ss: %v", l.Noun, err)
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

// Find returns the object with this id, or the only one whose id begins with it.
func (l *Lister[Stub]) Find(given string) (found Stub, err error) {
	stubs, _, err := l.List(client.Query{Prefix: given})
	if err != nil {
		return found, Errorf("Error querying %s: %v", l.Noun, err)
	}
	for _, s := range stubs {
		if l.ID(s) == given {
			return s, nil
		}
	}
	switch len(stubs) {
	case 0:
		return found, Errorf("No %s(s) with prefix or id %q found", l.Noun, given)
	case 1:
		return stubs[0], nil
	}
	return found, Errorf("Prefix matched multiple %ss\n\n%s", l.Noun, l.Table(stubs))
}

// statusOptions are the options of [StatusFlags], for the help.
const statusOptions = `

Options:

  -all              Also list ended ones.
  -filter EXPR      List only those that match an expression over their fields, such as
                    'Status == "blocked"'.
  -verbose          Show whole ids and more columns.
`
