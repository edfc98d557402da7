package sim

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/shrink"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// ShrinkCommand is "nodedrain sim shrink".
type ShrinkCommand struct{ Base }

// ShrinkFlags are the flags of "nodedrain sim shrink".
type ShrinkFlags struct {
	out, check string
	size       swarm.Size
	seed       uint64
	plays      int
	timeout    time.Duration
	freeze     bool
}

// defaultShrinkTimeout bounds shrinking.
const defaultShrinkTimeout = 5 * time.Minute

// Set returns the set of the flags.
func (f *ShrinkFlags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("shrink", flag.ContinueOnError)
	set.StringVar(&f.out, "o", "", "")
	set.TextVar(&f.size, "size", swarm.Small, "")
	set.Uint64Var(&f.seed, "seed", 0, "")
	set.StringVar(&f.check, "check", "", "")
	set.IntVar(&f.plays, "plays", shrink.DefaultMaxPlays, "")
	set.DurationVar(&f.timeout, "timeout", defaultShrinkTimeout, "")
	set.BoolVar(&f.freeze, "freeze", false, "")
	return set
}

// Synopsis returns the command in one line.
func (c *ShrinkCommand) Synopsis() string { return "Shrink a failing scenario" }

// Help returns the help.
func (c *ShrinkCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain sim shrink [options] FILE
       nodedrain sim shrink [options] [-size SIZE] -seed S

  Reduces a failing scenario while it still fails the same check. It removes events and
  faults first, then nodes, jobs, allocations and settings. It also halves counts,
  rounds times and replaces faults by lighter ones. It prints the small scenario to
  standard output and its progress to standard error.

Options:

  -seed S           Shrink the scenario of a seed, as "nodedrain sim swarm" generates
                    it, instead of a file.
  -size SIZE        Size of that scenario: small, medium or large. Default: small.
  -o FILE           Write the scenario to FILE instead of standard output. FILE is
                    overwritten only at the end.
  -check CHECK      The check that must fail, such as "G1 below limit". Default: the
                    first one that fails.
  -freeze           Remove nothing. Only write all random choices into the scenario.
  -plays N          Maximum number of scenarios to play. Default: %d.
  -timeout D        Real time after which to end with the smallest scenario so far.
                    Default: %s.
`, shrink.DefaultMaxPlays, defaultShrinkTimeout))
}

// Run runs the command and returns its exit code.
func (c *ShrinkCommand) Run(args []string) int {
	return c.reporting(func(sim Base) error { return (&ShrinkCommand{sim}).run(args) })
}

func (c *ShrinkCommand) run(args []string) error {
	var f ShrinkFlags
	set := f.Set()
	files, err := cli.ParseArguments(set, "sim shrink", args)
	if err != nil {
		return err
	}
	if err := cli.RequirePositive(set); err != nil {
		return err
	}
	if f.check != "" && !shrink.Known(f.check) {
		return fmt.Errorf("-check: there is no check %q; \"nodedrain sim run\" prints the checks that a scenario fails, such as \"G1 below limit\"", f.check)
	}
	s, err := f.scenario(cli.SetFlags(set), files)
	if err != nil {
		return err
	}
	to := f.out
	if to == "-" {
		to = ""
	}
	out, err := openOutput(to)
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	defer out.abandon()
	ctx, cancel := context.WithTimeout(c.Ctx, f.timeout)
	defer cancel()
	began := time.Now()
	work := shrink.Shrink
	if f.freeze {
		work = shrink.Freeze
	}
	small, report, err := work(ctx, s, shrink.Judging(c.until(ctx)), shrink.Options{
		Check: f.check, MaxPlays: f.plays, Progress: c.progress(began),
	})
	if err != nil {
		return err
	}
	c.print(report, time.Since(began))
	var text bytes.Buffer
	if err := scenario.Print(&text, small); err != nil {
		return fmt.Errorf("printing the scenario: %w", err)
	}
	if out == nil {
		_, _ = c.Out.Write(text.Bytes()) // c.out keeps the error
		return nil
	}
	if err := out.write(func(w io.Writer) error { _, err := w.Write(text.Bytes()); return err }); err != nil {
		_, _ = c.Out.Write(text.Bytes()) // do not lose the result
		return err
	}
	fmt.Fprintf(c.Errs, "replay: nodedrain sim run %s\n", quoted(f.out))
	return nil
}

// scenario returns the scenario to shrink.
func (f *ShrinkFlags) scenario(present map[string]bool, files []string) (*scenario.Scenario, error) {
	switch {
	case present["seed"] && f.seed == 0:
		return nil, errors.New("-seed is 0 and must be above 0: seed 0 makes no random choices")
	case f.seed > 0 && len(files) > 0:
		return nil, fmt.Errorf("%s: a scenario file excludes -seed", files[0])
	case f.seed > 0:
		return swarm.Generate(f.seed, f.size), nil
	case len(files) == 0:
		return nil, errors.New("neither a scenario file nor a seed is named; see \"nodedrain sim shrink -h\"")
	case len(files) > 1:
		return nil, fmt.Errorf("%s: one scenario at a time", files[1])
	case present["size"]:
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

// progress returns a function that prints a line of progress every shrinkLineInterval.
func (c *ShrinkCommand) progress(began time.Time) func(shrink.Report) {
	printed := began
	return func(r shrink.Report) {
		if now := time.Now(); now.Sub(printed) >= shrinkLineInterval {
			printed = now
			fmt.Fprintf(c.Errs, "%7s  %d plays: %s\n", now.Sub(began).Round(time.Second), r.Plays, r.After)
		}
	}
}

// print prints the result.
func (c *ShrinkCommand) print(r shrink.Report, took time.Duration) {
	fmt.Fprintf(c.Errs, "%s: %s\n", r.Failure.Check, r.Failure.Text)
	fmt.Fprintf(c.Errs, "%s before, %s now; %d plays in %s\n", r.Before, r.After, r.Plays, took.Round(time.Millisecond))
	if !r.Complete {
		fmt.Fprintln(c.Errs, "plays or time ran out: more of them may give a smaller scenario (-plays, -timeout)")
	}
}
