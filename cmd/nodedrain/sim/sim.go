package sim

import (
	"context"
	"errors"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// Commands returns the commands that simulate.
func Commands() cli.Program { return commands(sim.Play) }

func commands(play player) cli.Program {
	return cli.Program{
		"sim":        cli.Parent("Simulate drains, reproducible from a seed", help),
		"sim run":    func() *cli.Command { return run(play) },
		"sim swarm":  func() *cli.Command { return generate(play) },
		"sim shrink": func() *cli.Command { return reduce(play) },
		"sim plans":  plans,
	}
}

const help = `
  Plays whole clusters in one goroutine and in virtual time. The drainer, the state
  store, the state machine and the scheduler are real. The raft log, servers, clients
  and operators are simulated, with faults. After every entry, judges that share no
  code with the drainer check each of its guarantees.

  A run plays a scenario: a file in the language of package sim/scenario, or a
  scenario generated from a seed. The same scenario always takes the same steps and
  gives the same hash.
`

// player plays a scenario: it is [sim.Play], except in tests.
type player func(*scenario.Scenario, sim.Options) (*sim.Result, error)

// until returns a player that ends early when the context ends.
func (p player) until(ctx context.Context) player {
	return func(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
		o.Stop = ctx.Err
		return p(s, o)
	}
}

// simulation is one run of a command that simulates.
type simulation struct {
	call *cli.Call
	play player
}

// reporting returns the Run of a command whose report goes to standard output. The command fails
// if the report cannot be written.
func (s *simulation) reporting(run func() error) func(*cli.Call) error {
	return func(c *cli.Call) error {
		out := &cli.Reporter{To: c.Out}
		s.call, c.Out = c, out
		return errors.Join(run(), out.Err)
	}
}

// errSeedZero refuses the seed zero.
var errSeedZero = errors.New("-seed is 0 and must be above 0: seed 0 makes no random choices")

// sizeOption returns the flag of the size of generated scenarios.
func sizeOption(size *swarm.Size, text string) cli.Option {
	return cli.Value(func(name string) error { return size.UnmarshalText([]byte(name)) }, "size SIZE", text)
}
