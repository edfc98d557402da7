package alloc

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// allocs lists allocations, and finds one of them.
func allocs(c *cli.Base, api *client.Client, verbose bool) *cli.Lister[*wire.AllocationListStub] {
	return &cli.Lister[*wire.AllocationListStub]{
		Noun: "allocation",
		List: func(q client.Query) ([]*wire.AllocationListStub, client.Answer, error) {
			return api.Allocations(c.Ctx, q)
		},
		ID:    func(a *wire.AllocationListStub) string { return a.ID },
		Old:   EndedAlloc,
		Table: func(allocs []*wire.AllocationListStub) *cli.Table { return StubTable(allocs, verbose, time.Now()) },
	}
}

// alloc returns the allocation that an id or a prefix of it names.
func alloc(c *cli.Base, api *client.Client, given string) (*wire.Allocation, error) {
	stub, err := allocs(c, api, false).Find(given)
	if err != nil {
		return nil, err
	}
	a, _, err := api.Allocation(c.Ctx, stub.ID, client.Query{})
	if err != nil {
		return nil, cli.Errorf("Error querying allocation: %v", err)
	}
	return a, nil
}

// taskNames returns the names of an allocation's tasks, sorted.
func taskNames(a *wire.Allocation) []string {
	names := map[string]bool{}
	for name := range a.TaskStates {
		names[name] = true
	}
	if a.AllocatedResources != nil {
		for name := range a.AllocatedResources.Tasks {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// taskOf returns the task of an allocation that the user names, or without a name its only task.
func taskOf(a *wire.Allocation, given string) (string, error) {
	names := taskNames(a)
	list := "\n  * " + strings.Join(names, "\n  * ")
	switch {
	case slices.Contains(names, given):
		return given, nil
	case len(names) == 0:
		return "", cli.Errorf("Allocation %q has no tasks", cli.ShortID(a.ID, false))
	case given != "":
		return "", cli.Errorf("Allocation %q has no task %q. Its tasks are:%s", cli.ShortID(a.ID, false), given, list)
	case len(names) > 1:
		return "", cli.Errorf("Allocation %q has several tasks:%s\n\nPlease specify the task.", cli.ShortID(a.ID, false), list)
	}
	return names[0], nil
}

// taskFlags are the flags of the commands about a task of an allocation.
type taskFlags struct{ task string }

func (f *taskFlags) set(set *flag.FlagSet) { set.StringVar(&f.task, "task", "", "") }

// taskArguments are the arguments of these commands.
func taskArguments() cli.Arguments {
	return cli.Arguments{Least: 1, Most: 2, Usage: "This command takes one or two arguments: <alloc> [<task>]", Complete: cli.IDs("allocs")}
}

// alloc returns the allocation of the arguments. The task may be the second one.
func (f *taskFlags) alloc(c *cli.Call) (alloc string, err error) {
	switch args := c.Args; {
	case len(args) == 2 && f.task != "" && f.task != args[1]:
		return "", c.UsageError(fmt.Sprintf("The task is %q with -task, and %q as an argument", f.task, args[1]))
	case len(args) == 2:
		f.task = args[1]
	}
	return c.Args[0], nil
}
