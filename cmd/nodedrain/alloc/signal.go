package alloc

import (
	"flag"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// SignalCommand is "nodedrain alloc signal".
type SignalCommand struct{ cli.Base }

// SignalFlags are its flags.
type SignalFlags struct {
	taskFlags
	signal string
}

func (f *SignalFlags) Set() *flag.FlagSet {
	set := f.taskFlags.set("alloc signal")
	set.StringVar(&f.signal, "s", "SIGKILL", "")
	return set
}

func (c *SignalCommand) Synopsis() string { return "Send a signal to tasks of an allocation" }

func (c *SignalCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain alloc signal [options] ALLOC [TASK]

  Sends a signal to a task, or without TASK to every running task of the allocation.
  ALLOC is the allocation's id or a prefix of it.

Options:

  -s SIGNAL         The name of the signal, such as HUP or SIGHUP. Default: SIGKILL.
  -task TASK        The task, instead of the second argument.
` + cli.ConnectHelp)
}

func (c *SignalCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *SignalCommand) run(args []string) error {
	var f SignalFlags
	about, err := cli.ParseArguments(f.Set(), "alloc signal", args)
	if err != nil {
		return err
	}
	given, err := f.about("alloc signal", about)
	if err != nil {
		return err
	}
	name := signalName(f.signal)
	if name == "" {
		return cli.UsageError("alloc signal", "The signal must have a name")
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	a, err := alloc(&c.Base, asked, given)
	if err != nil {
		return err
	}
	if f.task != "" {
		if _, err := taskOf(a, f.task); err != nil {
			return err
		}
	}
	if err := asked.Alloc(a.ID).Signal(c.Ctx, wire.SignalRequest{Task: f.task, Signal: name}); err != nil {
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

// AutocompleteArgs completes the allocation.
func (c *SignalCommand) AutocompleteArgs() complete.Predictor { return c.Ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *SignalCommand) AutocompleteFlags() complete.Flags {
	flags := cli.FlagPredictors(new(SignalFlags).Set())
	flags["-s"] = complete.PredictSet("SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM", "SIGUSR1", "SIGUSR2")
	return flags
}
