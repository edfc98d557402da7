package alloc

import (
	"github.com/posener/complete"

	"flag"
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Signal is "nodedrain alloc signal".
func Signal() *cli.Command {
	var f signalFlags
	return &cli.Command{
		Short: "Send a signal to tasks of an allocation",
		Help: `
Usage: nodedrain alloc signal [options] ALLOC [TASK]

  Sends a signal to a task, or without TASK to every running task of the allocation.
  ALLOC is the allocation's id or a prefix of it.

Options:

  -s SIGNAL         The name of the signal, such as HUP or SIGHUP. Default: SIGKILL.
  -task TASK        The task, instead of the second argument.
`,
		Connects: true, Flags: f.set,
		Args:       taskArguments(),
		FlagValues: complete.Flags{"s": complete.PredictSet("SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM", "SIGUSR1", "SIGUSR2")},
		Run:        func(c *cli.Call) error { return (&signalCommand{c}).run(&f) },
	}
}

type signalCommand struct{ *cli.Call }

// signalFlags are its flags.
type signalFlags struct {
	taskFlags
	signal string
}

func (f *signalFlags) set(set *flag.FlagSet) {
	f.taskFlags.set(set)
	set.StringVar(&f.signal, "s", "SIGKILL", "")
}

func (c *signalCommand) run(f *signalFlags) error {
	given, err := f.alloc(c.Call)
	if err != nil {
		return err
	}
	name := signalName(f.signal)
	if name == "" {
		return c.UsageError("The signal must have a name")
	}
	api := c.API
	a, err := alloc(&c.Base, api, given)
	if err != nil {
		return err
	}
	if f.task != "" {
		if _, err := taskOf(a, f.task); err != nil {
			return err
		}
	}
	if err := api.Alloc(a.ID).Signal(c.Ctx, wire.SignalRequest{Task: f.task, Signal: name}); err != nil {
		return cli.Errorf("Error signalling allocation: %v", err)
	}
	fmt.Fprintf(c.Out, "Signal %s sent to %s\n", name, tasksText(a, f.task))
	return nil
}

// signalName returns the whole name of a signal.
func signalName(given string) string {
	name := strings.ToUpper(strings.TrimSpace(given))
	if name == "" || strings.HasPrefix(name, "SIG") {
		return name
	}
	return "SIG" + name
}

// tasksText names a task of an allocation, or its running tasks.
func tasksText(a *wire.Allocation, task string) string {
	if task == "" {
		return fmt.Sprintf("the running tasks of allocation %q", cli.ShortID(a.ID, false))
	}
	return fmt.Sprintf("task %q of allocation %q", task, cli.ShortID(a.ID, false))
}
