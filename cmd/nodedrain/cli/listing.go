package cli

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// StatusFlags are the flags of the commands that list a kind of objects and show one.
type StatusFlags struct {
	ConnectFlags
	OutputFlags
	All, Verbose bool
	filter       string
}

func (f *StatusFlags) Set(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	f.ConnectFlags.Set(set)
	f.OutputFlags.Set(set)
	set.BoolVar(&f.All, "all", false, "")
	set.BoolVar(&f.Verbose, "verbose", false, "")
	set.StringVar(&f.filter, "filter", "", "")
	return set
}

// Lister lists a kind of objects and shows one of them.
type Lister[Stub any] struct {
	// name is the command, noun is the kind, as in "job".
	Name, Noun string
	// list reads a list. id is the whole id of an object.
	List func(client.Query) ([]Stub, client.Answer, error)
	Id   func(Stub) string
	// old reports whether the list leaves an object out unless -all is given; or nil.
	Old func(Stub) bool
	// table lists objects.
	Table func([]Stub) *Table
	// one shows an object.
	One func(Stub) error
}

// ShowStatus runs the command of the name, which lists a kind of objects and shows one of them.
func ShowStatus[Stub any](c *Base, name string, args []string, of func(*client.Client, *StatusFlags) *Lister[Stub]) error {
	var f StatusFlags
	about, err := ParseArguments(f.Set(name), name, args)
	if err != nil {
		return err
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	return of(asked, &f).show(c.Out, &f, about)
}

// show shows the object that the argument names, or without one the list.
func (l *Lister[Stub]) show(out io.Writer, f *StatusFlags, about []string) error {
	if len(about) > 1 {
		return UsageError(l.Name, "This command takes either one or no arguments")
	}
	if len(about) == 1 {
		stub, err := l.Find(about[0])
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
	case f.Raw():
		return PrintRaw(&f.OutputFlags, out, stubs)
	case len(stubs) > 0:
		l.Table(stubs).Write(out)
	case hidden == 0:
		fmt.Fprintf(out, "No %ss\n", l.Noun)
	}
	if hidden > 0 {
		fmt.Fprintf(out, "%s left out; -all lists them\n", Count(hidden, "ended "+l.Noun))
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
		if l.Id(s) == given {
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

// StatusHelp is the help of a command that lists a kind of objects. usage is its first line, about
// says what the command shows.
func StatusHelp(usage, about string) string {
	return strings.TrimSpace("Usage: nodedrain "+usage+"\n\n"+about+`

Options:

  -all              Also list ended ones.
  -filter EXPR      List only those that match an expression over their fields, such as
                    'Status == "blocked"'.
  -verbose          Show whole ids and more columns.
`) + "\n" + OutputHelp + "\n" + ConnectHelp
}
