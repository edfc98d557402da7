package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/shrink"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// shrinkCommand is one run of "nodedrain sim shrink".
type shrinkCommand struct {
	simulation
	out, check string
	size       swarm.Size
	seed       uint64
	plays      int
	timeout    time.Duration
	freeze     bool
}

// defaultShrinkTimeout bounds shrinking.
const defaultShrinkTimeout = 5 * time.Minute

// reduce is "nodedrain sim shrink".
func reduce(play player) *cli.Command {
	c := &shrinkCommand{simulation: simulation{play: play}, plays: shrink.DefaultMaxPlays, timeout: defaultShrinkTimeout}
	return &cli.Command{
		Short: "Shrink a failing scenario",
		Forms: []string{"[options] FILE", "[options] [-size SIZE] -seed S"},
		Description: `
  Reduces a failing scenario while it still fails the same check. It removes events and
  faults first, then nodes, jobs, allocations and settings. It also halves counts,
  rounds times and replaces faults by lighter ones. It prints the small scenario to
  standard output and its progress to standard error.
`,
		Options: cli.Options{
			cli.Flag(&c.seed, "seed S", `Shrink the scenario of a seed, as "nodedrain sim swarm" generates it, instead of a file.`),
			sizeOption(&c.size, "Size of that scenario: small, medium or large. Default: small."),
			cli.Flag(&c.out, "o FILE", "Write the scenario to FILE instead of standard output. FILE is overwritten only at the end."),
			cli.Flag(&c.check, "check CHECK", `The check that must fail, such as "G1 below limit". Default: the first one that fails.`),
			cli.Flag(&c.freeze, "freeze", "Remove nothing. Only write all random choices into the scenario."),
			cli.Flag(&c.plays, "plays N", "Maximum number of scenarios to play."),
			cli.Flag(&c.timeout, "timeout D", "Real time after which to end with the smallest scenario so far."),
		},
		Positive: true,
		Args:     "FILE", CountsArgs: true, Run: c.reporting(c.run),
	}
}

func (c *shrinkCommand) run() error {
	if c.check != "" && !shrink.Known(c.check) {
		return fmt.Errorf("-check: there is no check %q; \"nodedrain sim run\" prints the checks that a scenario fails, such as \"G1 below limit\"", c.check)
	}
	s, err := c.load()
	if err != nil {
		return err
	}
	to := c.out
	if to == "-" {
		to = ""
	}
	out, err := cli.OpenFile(to)
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	defer out.Abandon()
	ctx, cancel := context.WithTimeout(c.call.Ctx, c.timeout)
	defer cancel()
	began := time.Now()
	work := shrink.Shrink
	if c.freeze {
		work = shrink.Freeze
	}
	played, end := c.progress(began)
	small, report, err := work(ctx, s, shrink.Judging(c.play.until(ctx)), shrink.Options{
		Check: c.check, MaxPlays: c.plays, Progress: played,
	})
	end()
	if err != nil {
		return err
	}
	c.print(report, time.Since(began))
	var text bytes.Buffer
	if err := scenario.Print(&text, small); err != nil {
		return fmt.Errorf("printing the scenario: %w", err)
	}
	if out == nil {
		_, _ = c.call.Out.Write(text.Bytes()) // c.call.Out keeps the error
		return nil
	}
	if err := out.Write(func(w io.Writer) error { _, err := w.Write(text.Bytes()); return err }); err != nil {
		_, _ = c.call.Out.Write(text.Bytes()) // do not lose the result
		return err
	}
	fmt.Fprintf(c.call.Errs, "replay: nodedrain sim run %s\n", quoted(c.out))
	return nil
}

// load returns the scenario to shrink.
func (c *shrinkCommand) load() (*scenario.Scenario, error) {
	files := c.call.Args
	switch {
	case c.call.Set("seed") && c.seed == 0:
		return nil, errSeedZero
	case c.seed > 0 && len(files) > 0:
		return nil, fmt.Errorf("%s: a scenario file excludes -seed", files[0])
	case c.seed > 0:
		return swarm.Generate(c.seed, c.size), nil
	case len(files) == 0:
		return nil, errors.New("neither a scenario file nor a seed is named; see \"nodedrain sim shrink -h\"")
	case len(files) > 1:
		return nil, fmt.Errorf("%s: one scenario at a time", files[1])
	case c.call.Set("size"):
		return nil, errors.New("-size needs -seed")
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	s, _, err := scenario.Parse(files[0], bytes.NewReader(text))
	return s, err
}

// shrinkLineInterval is the interval between lines of progress.
const shrinkLineInterval = 2 * time.Second

// progress returns a function that prints a line of progress every shrinkLineInterval, and one for the end. If no
// play ends for long, lines name it.
func (c *shrinkCommand) progress(began time.Time) (played func(shrink.Report), end func()) {
	var plays atomic.Int64
	waiting := c.call.StartWaiting(func() string { return fmt.Sprintf("play %d of the scenario", plays.Load()+1) })
	printed := began
	return func(r shrink.Report) {
		plays.Store(int64(r.Plays))
		if now := time.Now(); now.Sub(printed) >= shrinkLineInterval {
			printed = now
			waiting.Printed()
			fmt.Fprintf(c.call.Errs, "%7s  %d plays: %s\n", now.Sub(began).Round(time.Second), r.Plays, r.After)
		}
	}, waiting.End
}

// print prints the result.
func (c *shrinkCommand) print(r shrink.Report, took time.Duration) {
	fmt.Fprintf(c.call.Errs, "%s: %s\n", r.Failure.Check, r.Failure.Text)
	fmt.Fprintf(c.call.Errs, "%s before, %s now; %d plays in %s\n", r.Before, r.After, r.Plays, took.Round(time.Millisecond))
	if !r.Complete {
		fmt.Fprintln(c.call.Errs, "plays or time ran out: more of them may give a smaller scenario (-plays, -timeout)")
	}
}
