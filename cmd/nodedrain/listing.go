package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// statusFlags are the flags of the commands that list a kind of objects and show one.
type statusFlags struct {
	connectFlags
	outputFlags
	all, verbose bool
	filter       string
}

func (f *statusFlags) set(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	f.connectFlags.set(set)
	f.outputFlags.set(set)
	set.BoolVar(&f.all, "all", false, "")
	set.BoolVar(&f.verbose, "verbose", false, "")
	set.StringVar(&f.filter, "filter", "", "")
	return set
}

// lister lists a kind of objects and shows one of them.
type lister[Stub any] struct {
	// name is the command, noun is the kind, as in "job".
	name, noun string
	// list reads a list. id is the whole id of an object.
	list func(client.Query) ([]Stub, client.Answer, error)
	id   func(Stub) string
	// old reports whether the list leaves an object out unless -all is given; or nil.
	old func(Stub) bool
	// table lists objects.
	table func([]Stub) *table
	// one shows an object.
	one func(Stub) error
}

// showStatus runs the command of the name, which lists a kind of objects and shows one of them.
func showStatus[Stub any](c *operatorCommand, name string, args []string, of func(*client.Client, *statusFlags) *lister[Stub]) error {
	var f statusFlags
	about, err := arguments(f.set(name), name, args)
	if err != nil {
		return err
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	return of(asked, &f).show(c.out, &f, about)
}

// show shows the object that the argument names, or without one the list.
func (l *lister[Stub]) show(out io.Writer, f *statusFlags, about []string) error {
	if len(about) > 1 {
		return misused(l.name, "This command takes either one or no arguments")
	}
	if len(about) == 1 {
		stub, err := l.find(about[0])
		if err != nil {
			return err
		}
		return l.one(stub)
	}
	stubs, _, err := l.list(client.Query{Filter: f.filter})
	if err != nil {
		return saidf("Error querying %ss: %v", l.noun, err)
	}
	hidden := 0
	if l.old != nil && !f.all {
		before := len(stubs)
		stubs = slices.DeleteFunc(stubs, l.old)
		hidden = before - len(stubs)
	}
	switch {
	case f.raw():
		return printRaw(&f.outputFlags, out, stubs)
	case len(stubs) > 0:
		l.table(stubs).write(out)
	case hidden == 0:
		fmt.Fprintf(out, "No %ss\n", l.noun)
	}
	if hidden > 0 {
		fmt.Fprintf(out, "%s left out; -all lists them\n", counted(hidden, "ended "+l.noun))
	}
	return nil
}

// find returns the object with this id, or the only one whose id begins with it.
func (l *lister[Stub]) find(given string) (found Stub, err error) {
	stubs, _, err := l.list(client.Query{Prefix: given})
	if err != nil {
		return found, saidf("Error querying %s: %v", l.noun, err)
	}
	for _, s := range stubs {
		if l.id(s) == given {
			return s, nil
		}
	}
	switch len(stubs) {
	case 0:
		return found, saidf("No %s(s) with prefix or id %q found", l.noun, given)
	case 1:
		return stubs[0], nil
	}
	return found, saidf("Prefix matched multiple %ss\n\n%s", l.noun, l.table(stubs))
}

// statusHelp is the help of a command that lists a kind of objects. usage is its first line, about
// says what the command shows.
func statusHelp(usage, about string) string {
	return strings.TrimSpace("Usage: nodedrain "+usage+"\n\n"+about+`

Options:

  -all              Also list ended ones.
  -filter EXPR      List only those that match an expression over their fields, such as
                    'Status == "blocked"'.
  -verbose          Show whole ids and more columns.
`) + "\n" + outputHelp + "\n" + connectHelp
}
