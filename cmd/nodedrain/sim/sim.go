package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Base is "nodedrain sim" and the base of its subcommands.
type Base struct {
	Ctx       context.Context // ends when the user interrupts
	Out, Errs io.Writer
	// getenv is os.Getenv, except in tests.
	Getenv func(string) string
	// play is [sim.Play].
	Play func(*scenario.Scenario, sim.Options) (*sim.Result, error)
}

// NewBase returns the base of the commands that simulate.
func NewBase(ctx context.Context, std cli.Stdio) Base {
	return Base{Ctx: ctx, Out: std.Out, Errs: std.Errs, Getenv: std.Getenv, Play: sim.Play}
}

// Synopsis returns the command in one line.
func (c *Base) Synopsis() string { return "Simulate drains, reproducible from a seed" }

// Help returns the help.
func (c *Base) Help() string {
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

// Run runs the command and returns its exit code.
func (c *Base) Run([]string) int { return cli.ShowHelp }

// exit prints a command's error and returns its exit code.
func (c *Base) exit(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(c.Errs, err)
	return 1
}

// reporting runs a command whose report goes to standard output. The command fails if the
// report cannot be written.
func (c Base) reporting(run func(Base) error) int {
	out := &cli.Reporter{To: c.Out}
	c.Out = out
	err := run(c)
	return c.exit(errors.Join(err, out.Err))
}

// until returns c.play, ended early when the context ends.
func (c *Base) until(ctx context.Context) func(*scenario.Scenario, sim.Options) (*sim.Result, error) {
	return func(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
		o.Stop = ctx.Err
		return c.Play(s, o)
	}
}
