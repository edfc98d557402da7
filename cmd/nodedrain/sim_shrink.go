package main

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

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/shrink"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// simShrinkCommand is "nodedrain sim shrink".
type simShrinkCommand struct{ simCommand }

// simShrinkFlags are the flags of "nodedrain sim shrink".
type simShrinkFlags struct {
	out, sizeName, check string
	seed                 uint64
	plays                int
	timeout              time.Duration
	freeze               bool
}

// defaultShrinkTimeout is when shrinking gives up.
const defaultShrinkTimeout = 5 * time.Minute

func (f *simShrinkFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("shrink", flag.ContinueOnError)
	set.StringVar(&f.out, "o", "", "")
	set.StringVar(&f.sizeName, "size", swarm.Small.String(), "")
	set.Uint64Var(&f.seed, "seed", 0, "")
	set.StringVar(&f.check, "check", "", "")
	set.IntVar(&f.plays, "plays", shrink.DefaultMaxPlays, "")
	set.DurationVar(&f.timeout, "timeout", defaultShrinkTimeout, "")
	set.BoolVar(&f.freeze, "freeze", false, "")
	return set
}

func (c *simShrinkCommand) Synopsis() string { return "Make a failing scenario small" }

func (c *simShrinkCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain sim shrink [options] FILE
       nodedrain sim shrink [options] [-size SIZE] -seed S

  Takes out of a scenario that breaks a guarantee whatever can be missed, and makes
  simpler what is left, as long as it breaks the same guarantee in the same way:
  events and faults first, then nodes, jobs, allocations and settings; counts are
  halved, times become round, faults become lighter ones. The small scenario is
  printed; what was done about it goes to standard error.

Options:

  -seed S           Shrink the scenario of a seed, as "nodedrain sim swarm" makes
                    it, rather than a file.
  -size SIZE        The size of that scenario: small, medium or large. Default:
                    small.
  -o FILE           Write the scenario there rather than print it. What stood there
                    is kept until then.
  -check CHECK      What it must fail, as in "G1 below limit". Default: what it
                    fails first.
  -freeze           Take nothing out, and only write down what chance decides.
  -plays N          How many scenarios to play at most. Default: %d.
  -timeout D        Real time after which to end with what there is. Default: %s.
`, shrink.DefaultMaxPlays, defaultShrinkTimeout))
}

func (c *simShrinkCommand) Run(args []string) int {
	return c.reporting(func(sim simCommand) error { return (&simShrinkCommand{sim}).run(args) })
}

func (c *simShrinkCommand) run(args []string) error {
	var f simShrinkFlags
	set := f.set()
	files, err := arguments(set, "sim shrink", args)
	if err != nil {
		return err
	}
	if err := refuseZeros(set); err != nil {
		return err
	}
	if f.check != "" && !shrink.Known(f.check) {
		return fmt.Errorf("-check: there is no check %q; \"nodedrain sim run\" names those that a scenario fails, as in \"G1 below limit\"", f.check)
	}
	s, err := f.scenario(given(set), files)
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
	ctx, cancel := context.WithTimeout(c.ctx, f.timeout)
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
	c.tell(report, time.Since(began))
	var text bytes.Buffer
	if err := scenario.Print(&text, small); err != nil {
		return fmt.Errorf("printing the scenario: %w", err)
	}
	if out == nil {
		_, _ = c.out.Write(text.Bytes()) // c.out remembers
		return nil
	}
	if err := out.write(func(w io.Writer) error { _, err := w.Write(text.Bytes()); return err }); err != nil {
		_, _ = c.out.Write(text.Bytes()) // what took so long is not thrown away
		return err
	}
	fmt.Fprintf(c.errs, "to play it: nodedrain sim run %s\n", quoted(f.out))
	return nil
}

// scenario is the one to be shrunk.
func (f *simShrinkFlags) scenario(given map[string]bool, files []string) (*scenario.Scenario, error) {
	switch {
	case given["seed"] && f.seed == 0:
		return nil, errors.New("-seed is 0 and must be above 0: none draws nothing")
	case f.seed > 0 && len(files) > 0:
		return nil, fmt.Errorf("%s and -seed: either a file or a seed", files[0])
	case f.seed > 0:
		size, err := swarm.ParseSize(f.sizeName)
		if err != nil {
			return nil, fmt.Errorf("-size: %w", err)
		}
		return swarm.Generate(f.seed, size), nil
	case len(files) == 0:
		return nil, errors.New("no scenario file is named, and no seed; \"nodedrain sim shrink -h\" says how")
	case len(files) > 1:
		return nil, fmt.Errorf("%s: one scenario at a time", files[1])
	case given["size"]:
		return nil, errors.New("-size is about a seed: say -seed S")
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	s, _, err := scenario.Parse(files[0], bytes.NewReader(text))
	return s, err
}

// shrinkLineInterval is how often it is told how far shrinking has come.
const shrinkLineInterval = 2 * time.Second

// progress tells now and then how far shrinking has come.
func (c *simShrinkCommand) progress(began time.Time) func(shrink.Report) {
	told := began
	return func(r shrink.Report) {
		if now := time.Now(); now.Sub(told) >= shrinkLineInterval {
			told = now
			fmt.Fprintf(c.errs, "%7s  %d plays: %s\n", now.Sub(began).Round(time.Second), r.Plays, r.After)
		}
	}
}

// tell tells what came of it.
func (c *simShrinkCommand) tell(r shrink.Report, took time.Duration) {
	fmt.Fprintf(c.errs, "%s: %s\n", r.Failure.Check, r.Failure.Text)
	fmt.Fprintf(c.errs, "%s before, %s now; %d plays in %s\n", r.Before, r.After, r.Plays, took.Round(time.Millisecond))
	if !r.Complete {
		fmt.Fprintln(c.errs, "plays or time ran out: it may become smaller with more of them (-plays, -timeout)")
	}
}
