package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/shrink"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// simSwarmCommand is "nodedrain sim swarm".
type simSwarmCommand struct{ simCommand }

// simSwarmFlags are the flags of "nodedrain sim swarm".
type simSwarmFlags struct {
	seeds, workers int
	first          uint64
	sizeName       string
	json           bool
	keep           string

	size swarm.Size
}

func (f *simSwarmFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("swarm", flag.ContinueOnError)
	set.IntVar(&f.seeds, "seeds", swarm.DefaultSeeds, "")
	set.StringVar(&f.sizeName, "size", swarm.Small.String(), "")
	set.Uint64Var(&f.first, "seed", swarm.DefaultFirst, "")
	set.IntVar(&f.workers, "workers", 0, "")
	set.BoolVar(&f.json, "json", false, "")
	set.StringVar(&f.keep, "keep", "", "")
	return set
}

func (c *simSwarmCommand) Synopsis() string { return "Make scenarios from seeds and play them" }

func (c *simSwarmCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain sim swarm [options]

  Makes a scenario from each of many seeds and plays it: a cluster, jobs, drains,
  and whatever may go wrong, of which each seed has some kinds and not others. A
  seed fails if it breaks a guarantee of the drainer, or if, played again, it comes
  to something else. The swarm fails too if what is rare was rarer than it should
  be, since then it says little. The exit code is 0 only if nothing failed.

  Equal seeds are played equally on every machine.

Options:

  -seeds N          How many to play. Default: %d.
  -size SIZE        small, some eight nodes; medium, fifty; large, a thousand nodes
                    with twenty thousand allocations. Default: small.
  -seed S           The first seed. Default: %d.
  -workers W        How many to play at once. Default: as many as there are
                    processors.
  -keep DIR         Write what fails into DIR, as scenarios that leave as little
                    to chance as they can.
  -json             Print nothing but one object in JSON: the hash of each seed,
                    what failed, what was counted, and how fast it went.
`, swarm.DefaultSeeds, swarm.DefaultFirst))
}

func (c *simSwarmCommand) Run(args []string) int { return c.exit(c.run(args)) }

// errSwarm says that a swarm failed, and that what was wrong was told.
type errSwarm struct{}

func (errSwarm) Error() string { return "the swarm failed" }

func (c *simSwarmCommand) run(args []string) error {
	var f simSwarmFlags
	set := f.set()
	about, err := arguments(set, "sim swarm", args)
	if err != nil {
		return err
	}
	if err := f.check(set, about); err != nil {
		return err
	}
	hashes := make([]seedHash, 0, f.seeds)
	progress := c.progress(&f)
	report, interrupted := swarm.Play(c.ctx, swarm.Options{
		First: f.first, Seeds: f.seeds, Size: f.size, Workers: f.workers, Play: c.play,
		Each: func(r swarm.Run) {
			hashes = append(hashes, seedHash{r.Seed, hexHash(r.Hash)})
			progress.played(r)
		},
	})
	progress.close()
	kept, err := c.keep(&f, report)
	if err != nil {
		return err
	}
	if f.json {
		err = printSwarm(c.out, report, hashes, kept)
	} else {
		c.tell(report, kept)
	}
	switch {
	case err != nil:
		return fmt.Errorf("printing the report: %w", err)
	case interrupted != nil:
		return fmt.Errorf("interrupted after %d of %d seeds: %w", report.Seeds, f.seeds, interrupted)
	case !report.OK():
		return errSwarm{}
	}
	return nil
}

func (f *simSwarmFlags) check(set *flag.FlagSet, about []string) (err error) {
	if len(about) > 0 {
		return fmt.Errorf("unexpected argument %q; \"nodedrain sim swarm -h\" lists the options", about[0])
	}
	given := given(set)
	switch {
	case f.seeds <= 0:
		return fmt.Errorf("-seeds is %d and must be above 0", f.seeds)
	case f.first == 0:
		return errors.New("-seed is 0 and must be above 0: none draws nothing")
	case given["workers"] && f.workers <= 0:
		return fmt.Errorf("-workers is %d and must be above 0", f.workers)
	}
	if f.size, err = swarm.ParseSize(f.sizeName); err != nil {
		return fmt.Errorf("-size: %w", err)
	}
	return nil
}

// tell tells what came of a swarm.
func (c *simSwarmCommand) tell(r *swarm.Report, kept map[uint64]string) {
	for _, failure := range r.Failures {
		fmt.Fprintf(c.out, "FAIL  seed %d: %s: %s\n", failure.Seed, failure.Kind, failure.Text)
		fmt.Fprintf(c.out, "      to play it again: %s\n", replaySeed(failure.Size, failure.Seed))
		fmt.Fprintf(c.out, "      to make it small: nodedrain sim shrink -size %s -seed %d\n", failure.Size, failure.Seed)
		if file := kept[failure.Seed]; file != "" {
			fmt.Fprintf(c.out, "      kept, frozen: nodedrain sim run %s\n", file)
		}
	}
	if more := r.Failed - len(r.Failures); more > 0 {
		fmt.Fprintf(c.out, "FAIL  and %d seeds more\n", more)
	}
	for _, short := range r.Short {
		fmt.Fprintf(c.out, "RARE  %s\n", short)
	}
	verdict := "ok  "
	if !r.OK() {
		verdict = "FAIL"
	}
	fmt.Fprintf(c.out, "%s  %d %s seeds from %d on, %d failed, %d played twice, hash %s\n",
		verdict, r.Seeds, r.Size, r.First, r.Failed, r.Twice, hexHash(r.Hash))
	fmt.Fprintf(c.out, "      %s on %d workers: %.0f seeds per minute, %.2f busy simulated hours per second; %d entries in %d steps\n",
		r.Took.Round(time.Millisecond), r.Workers, r.SeedsPerMinute(), r.BusyHoursPerSecond(), r.Entries, r.Steps)
}

// keep writes what failed into files, by seed.
func (c *simSwarmCommand) keep(f *simSwarmFlags, r *swarm.Report) (kept map[uint64]string, err error) {
	kept = map[uint64]string{}
	if f.keep == "" || len(r.Failures) == 0 {
		return kept, nil
	}
	if err := os.MkdirAll(f.keep, 0o755); err != nil {
		return nil, fmt.Errorf("keeping what failed: %w", err)
	}
	for _, failure := range r.Failures {
		s := c.frozen(swarm.Generate(failure.Seed, failure.Size))
		var text bytes.Buffer
		if err := scenario.Print(&text, s); err != nil {
			return nil, fmt.Errorf("keeping seed %d: %w", failure.Seed, err)
		}
		file := filepath.Join(f.keep, fmt.Sprintf("%s-%d%s", failure.Size, failure.Seed, scenario.Ending))
		if err := created(file, func(w io.Writer) error { _, err := text.WriteTo(w); return err }); err != nil {
			return nil, fmt.Errorf("keeping seed %d: %w", failure.Seed, err)
		}
		kept[failure.Seed] = file
	}
	return kept, nil
}

// freezePlays bounds how often a failing seed is played to be frozen.
const freezePlays = 100

// frozen is the scenario frozen, if it fails when it is played again. What fails only
// in other ways, as what differs from one time to the next, is kept as it is.
func (c *simSwarmCommand) frozen(s *scenario.Scenario) *scenario.Scenario {
	frozen, _, err := shrink.Freeze(c.ctx, s, shrink.Judging(c.play), shrink.Options{MaxPlays: freezePlays})
	if err != nil {
		return s
	}
	return frozen
}
