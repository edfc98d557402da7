package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/cli"
	"golang.org/x/term"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// simCommand is "nodedrain sim" and the base of its subcommands.
type simCommand struct {
	ctx       context.Context // ends when the user interrupts
	out, errs io.Writer
	// getenv is os.Getenv, except in tests.
	getenv func(string) string
	// play is [sim.Play].
	play func(*scenario.Scenario, sim.Options) (*sim.Result, error)
}

func (c *simCommand) Synopsis() string { return "Simulate drains, reproducible from a seed" }

func (c *simCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain sim <command> [options]

  Plays whole clusters in one goroutine and in virtual time. The drainer, the state
  store, the state machine and the scheduler are real. The raft log, servers, clients
  and operators are simulated, with faults. After every entry, judges that share no
  code with the drainer check each of its guarantees.

  A run plays a scenario: a file in the language of package sim/scenario, or a
  scenario generated from a seed. The same scenario always takes the same steps and
  gives the same hash.
`)
}

func (c *simCommand) Run([]string) int { return cli.RunResultHelp }

// exit prints a command's error and returns its exit code.
func (c *simCommand) exit(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(c.errs, err)
	return 1
}

// reporting runs a command whose report goes to standard output. The command fails if the
// report cannot be written.
func (c simCommand) reporting(run func(simCommand) error) int {
	out := &reporter{to: c.out}
	c.out = out
	err := run(c)
	return c.exit(errors.Join(err, out.err))
}

// until returns c.play, ended early when the context ends.
func (c *simCommand) until(ctx context.Context) func(*scenario.Scenario, sim.Options) (*sim.Result, error) {
	return func(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
		o.Stop = ctx.Err
		return c.play(s, o)
	}
}

// arguments parses a command line in which flags may follow arguments, and returns the
// arguments. The error points to the help.
func arguments(set *flag.FlagSet, command string, args []string) (about []string, err error) {
	set.SetOutput(io.Discard) // the caller prints the error
	for {
		if err := parse(set, command, args); err != nil {
			return nil, err
		}
		if set.NArg() == 0 {
			return about, nil
		}
		about = append(about, set.Arg(0))
		args = set.Args()[1:]
	}
}

// given returns the names of the flags that the command line sets.
func given(set *flag.FlagSet) map[string]bool {
	names := map[string]bool{}
	set.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
}

// notTogether refuses pairs of flags that exclude each other.
func notTogether(given map[string]bool, pairs [][2]string) error {
	for _, p := range pairs {
		if given[p[0]] && given[p[1]] {
			return fmt.Errorf("-%s and -%s are mutually exclusive", p[0], p[1])
		}
	}
	return nil
}

// terminal returns the width of the terminal behind out, or zero if there is none.
func terminal(out io.Writer) (columns int) {
	f, ok := beneath(out).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
