package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/demo/openb"
	"github.com/seed-f9cf0b39/nodedrain/sim/foretell"
)

// plansCommand is one run of "nodedrain sim plans".
type plansCommand struct {
	simulation
	worlds int
	first  uint64
	each   bool
	dir    string
	drains int
	foretell.Options
}

// defaultWorlds is the default number of worlds. With 39 unseen plays each they take about a minute.
const defaultWorlds = 40

// defaultDrains is the default number of drains in a given cluster.
const defaultDrains = 40

// plans is "nodedrain sim plans".
func plans() *cli.Command {
	c := &plansCommand{worlds: defaultWorlds, first: 1, drains: defaultDrains}
	c.Slower = 1
	return &cli.Command{
		Short: "Compare plans of drains with what happens",
		Description: `
  Generates a cluster from each seed and lets it run, so that the servers learn how long
  allocations take. Then it plans drains of random nodes, and plays them many times with
  clients and delays that the plan has not seen. It prints how many of these plays end
  within the range of the plan, by how much the medians differ, how many allocations the
  deadline takes beside the foretold ones, and how often a group was less healthy than
  in all plays of the plan. Times count in whole seconds.

  The exit code is 0 only if, over all worlds with observed times and drains of 10 s or
  more, at least 90 % of the plays end within the range, and the medians differ by at
  most 15 % in the mean. Other worlds are printed without a bound.
`,
		Options: cli.Options{
			cli.Flag(&c.worlds, "worlds N", "Number of worlds."),
			cli.Flag(&c.first, "seed S", "The first seed."),
			cli.Flag(&c.dir, "cluster DIR", "Plan drains of single nodes of the cluster of DIR/nodes.csv and DIR/pods.csv, instead of worlds. The seed determines the nodes and all durations."),
			cli.Flag(&c.drains, "drains N", "With -cluster: the number of drains. Each begins in the same state."),
			cli.Flag(&c.each, "each", "Print a line for each world or drain."),
			cli.Flag(&c.Slower, "slower F", "Everything takes F times as long in the plays as before, so that the plans are wrong."),
		},
		CountsArgs: true, Run: c.reporting(c.run),
	}
}

// errPlans reports that a bound is missed. The bounds have been printed.
var errPlans = errors.New("plans differ too much from what happens")

func (c *plansCommand) run() error {
	switch {
	case len(c.call.Args) > 0:
		return fmt.Errorf("unexpected argument %q; \"nodedrain sim plans -h\" lists the options", c.call.Args[0])
	case c.worlds <= 0:
		return fmt.Errorf("-worlds is %d and must be above 0", c.worlds)
	case c.drains <= 0:
		return fmt.Errorf("-drains is %d and must be above 0", c.drains)
	case c.dir != "" && c.worlds != defaultWorlds:
		return errors.New("use -worlds or -cluster, not both; -drains is the number of drains in a cluster")
	case c.dir == "" && c.drains != defaultDrains:
		return errors.New("-drains needs -cluster; -worlds is the number of worlds")
	case c.first == 0:
		return errSeedZero
	case uint64(c.worlds-1) > math.MaxUint64-c.first:
		return fmt.Errorf("-worlds is %d: there are no seeds after %d", c.worlds, uint64(math.MaxUint64))
	case c.Slower <= 0 || c.Slower > 100 || math.IsNaN(c.Slower):
		return fmt.Errorf("-slower is %g and must be above 0, and at most 100", c.Slower)
	}
	report, err := c.compareAll(c.compare)
	if err != nil {
		return err
	}
	rows := report.Table()
	table := cli.NewTable(rows[0]...)
	for _, row := range rows[1:] {
		table.Row(row...)
	}
	table.Write(c.call.Out)
	missed := report.Missed()
	for _, bound := range missed {
		fmt.Fprintf(c.call.Out, "FAIL  %s\n", bound)
	}
	if len(missed) > 0 {
		return errPlans
	}
	return nil
}

// compareAll sums up comparisons. While none ends for long, lines count them.
func (c *plansCommand) compareAll(compare func(add func(*foretell.Comparison)) error) (report foretell.Report, err error) {
	var compared atomic.Int64
	of := c.worlds
	if c.dir != "" {
		of = c.drains
	}
	waiting := c.call.StartWaiting(func() string { return fmt.Sprintf("plans, %d of %d compared", compared.Load(), of) })
	defer waiting.End()
	err = compare(func(one *foretell.Comparison) {
		report.Add(one)
		compared.Add(1)
		if c.each {
			waiting.Printed()
			fmt.Fprintln(c.call.Out, one)
		}
	})
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted after %d comparisons: %w", compared.Load(), err)
	}
	return report, err
}

// compare compares plans, and passes each comparison on.
func (c *plansCommand) compare(add func(*foretell.Comparison)) error {
	if c.dir != "" {
		trace, err := openb.Load(c.dir)
		if err != nil {
			return err
		}
		return foretell.CompareDrains(c.call.Ctx, c.first, foretell.Cluster{Nodes: trace.Nodes(), Jobs: trace.Jobs()}, c.drains, c.Options, add)
	}
	for i := range c.worlds {
		one, err := foretell.Compare(c.call.Ctx, c.first+uint64(i), c.Options)
		if err != nil {
			return err
		}
		add(one)
	}
	return nil
}
