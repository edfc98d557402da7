package alloc

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// allocs lists allocations, and finds one of them.
func allocs(c *cli.Call, verbose bool) *cli.Lister[*wire.AllocationListStub, *wire.Allocation] {
	return &cli.Lister[*wire.AllocationListStub, *wire.Allocation]{
		Noun:  "allocation",
		List:  c.API.Allocations,
		ID:    func(a *wire.AllocationListStub) string { return a.ID },
		Old:   EndedAlloc,
		Table: func(allocs []*wire.AllocationListStub) *cli.Table { return StubTable(allocs, verbose, time.Now()) },
		Read:  c.API.Allocation,
	}
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
func taskOf(a *wire.Allocation, task string) (string, error) {
	names := taskNames(a)
	list := "\n  * " + strings.Join(names, "\n  * ")
	switch {
	case slices.Contains(names, task):
		return task, nil
	case len(names) == 0:
		return "", cli.Errorf("Allocation %q has no tasks", cli.ShortID(a.ID, false))
	case task != "":
		return "", cli.Errorf("Allocation %q has no task %q. Its tasks are:%s", cli.ShortID(a.ID, false), task, list)
	case len(names) > 1:
		return "", cli.Errorf("Allocation %q has several tasks:%s\n\nPlease specify the task.", cli.ShortID(a.ID, false), list)
	}
	return names[0], nil
}

// taskNamed returns the allocation that the first argument names, and the task that the user names; see
// taskOf.
func taskNamed(c *cli.Call, task string) (*wire.Allocation, string, error) {
	a, err := allocs(c, false).Named(c, c.Args[0])
	if err != nil {
		return nil, "", err
	}
	task, err = taskOf(a, task)
	return a, task, err
}

// taskFlag is a task that the user names with -task, or as the second argument.
type taskFlag string

func (f *taskFlag) option() cli.Option {
	return cli.Flag((*string)(f), "task TASK", "The task, instead of the second argument.")
}

// resolve reads the second argument.
func (f *taskFlag) resolve(c *cli.Call) error {
	if len(c.Args) < 2 {
		return nil
	}
	if *f != "" && string(*f) != c.Args[1] {
		return c.UsageError(fmt.Sprintf("The task is %q with -task, and %q as an argument", *f, c.Args[1]))
	}
	*f = taskFlag(c.Args[1])
	return nil
}

// alloc returns the allocation of the first argument. Without a name of a task the command is about its
// running tasks, which the text names.
func (f *taskFlag) alloc(c *cli.Call) (a *wire.Allocation, text string, err error) {
	if a, err = allocs(c, false).Named(c, c.Args[0]); err != nil {
		return nil, "", err
	}
	id := cli.ShortID(a.ID, false)
	if *f == "" {
		return a, fmt.Sprintf("the running tasks of allocation %q", id), nil
	}
	_, err = taskOf(a, string(*f))
	return a, fmt.Sprintf("task %q of allocation %q", *f, id), err
}
