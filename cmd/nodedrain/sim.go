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

// simCommand is "nodedrain sim", and what its commands share.
type simCommand struct {
	ctx       context.Context // ends when the user interrupts
	out, errs io.Writer
	// getenv is os.Getenv, but for tests.
	getenv func(string) string
	// play is [sim.Play].
	play func(*scenario.Scenario, sim.Options) (*sim.Result, error)
}

func (c *simCommand) Synopsis() string { return "Simulate drains, replayable from a seed" }

func (c *simCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain sim <command> [options]

  Plays whole clusters in one goroutine and in virtual time: the real drainer,
  state store, state machine and scheduler, and a raft log, servers, clients and
  operators that are simulated, with everything that may go wrong. Every guarantee
  of the drainer is counted again, at every entry, by judges that share no code
  with it.

  What is played is a scenario: a file in the language of package sim/scenario, or
  one made from a seed. Equal scenarios are played equally, to the last step: the
  hash of a run says so.
`)
}

func (c *simCommand) Run([]string) int { return cli.RunResultHelp }

// exit tells why a command failed, and returns its exit code.
func (c *simCommand) exit(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(c.errs, err)
	return 1
}

// reporting runs a command whose report goes to standard output, and has it fail if the
// report could not be written there.
func (c simCommand) reporting(run func(simCommand) error) int {
	out := &reporter{to: c.out}
	c.out = out
	err := run(c)
	return c.exit(errors.Join(err, out.err))
}

// until is c.play, which ends when the context does.
func (c *simCommand) until(ctx context.Context) func(*scenario.Scenario, sim.Options) (*sim.Result, error) {
	return func(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
		o.Stop = ctx.Err
		return c.play(s, o)
	}
}

// arguments reads a command line in which options may also stand after what they are
// about. The error says where the options are listed.
func arguments(set *flag.FlagSet, command string, args []string) (about []string, err error) {
	set.SetOutput(io.Discard) // the error tells
	for {
		if err := set.Parse(args); err != nil {
			return nil, fmt.Errorf("%w; \"nodedrain %s -h\" lists the options", err, command)
		}
		if set.NArg() == 0 {
			return about, nil
		}
		about = append(about, set.Arg(0))
		args = set.Args()[1:]
	}
}

// given are the options that were given.
func given(set *flag.FlagSet) map[string]bool {
	names := map[string]bool{}
	set.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
}

// notTogether refuses an option that another makes pointless.
func notTogether(given map[string]bool, pairs [][2]string) error {
	for _, p := range pairs {
		if given[p[0]] && given[p[1]] {
			return fmt.Errorf("-%s and -%s do not go together", p[0], p[1])
		}
	}
	return nil
}

// terminal is how wide the terminal is that is written to, or zero if it is none.
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
