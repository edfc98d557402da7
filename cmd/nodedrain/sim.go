package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/cli"

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
