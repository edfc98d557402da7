package sim

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/shrink"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// SwarmCommand is "nodedrain sim swarm".
type SwarmCommand struct{ Base }

// SwarmFlags are the flags of "nodedrain sim swarm".
type SwarmFlags struct {
	seeds, workers int
	first          uint64
	fresh          bool // the clock gives the first seed
	size           swarm.Size
	json           bool
	keep           string
}

// Set returns the set of the flags.
func (f *SwarmFlags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("swarm", flag.ContinueOnError)
	set.IntVar(&f.seeds, "seeds", swarm.DefaultSeeds, "")
	set.TextVar(&f.size, "size", swarm.Small, "")
	set.Uint64Var(&f.first, "seed", swarm.DefaultFirst, "")
	set.BoolVar(&f.fresh, "fresh", false, "")
	set.IntVar(&f.workers, "workers", 0, "")
	set.BoolVar(&f.json, "json", false, "")
	set.StringVar(&f.keep, "keep", "", "")
	return set
}

// Synopsis returns the command in one line.
func (c *SwarmCommand) Synopsis() string { return "Generate scenarios from seeds and play them" }

// Help returns the help.
func (c *SwarmCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain sim swarm [options]

  Generates a scenario from each seed and plays it: a cluster, jobs, drains and faults.
  Each seed has a subset of the kinds of faults. A seed fails if it breaks a guarantee
  of the drainer, or if a second play gives a different result. The swarm also fails if
  rare events happened less often than required: its coverage is then too low. The exit
  code is 0 only if all seeds were played and nothing failed.

  The same seed gives the same result on every machine.

Options:

  -seeds N          Number of seeds to play. Default: %d.
  -size SIZE        small: about five nodes; medium: about thirty-five; large: a
                    thousand nodes with twenty thousand allocations. Default: small.
  -seed S           The first seed. Default: %d.
  -fresh            Take the first seed from the clock, to play seeds that were never
                    played before. Prints the command that plays the same seeds
                    again. Excludes -seed.
  -workers W        Number of seeds played in parallel. Default: the number of
                    processors.
  -keep DIR         Write the first %d failing seeds into DIR as scenario files, with
                    random choices fixed where possible. Creates DIR.
  -json             Print only one JSON object: the hash of each seed, the failures,
                    the counts and the speed.
`, swarm.DefaultSeeds, swarm.DefaultFirst, swarm.DefaultKeep))
}

// Run runs the command and returns its exit code.
func (c *SwarmCommand) Run(args []string) int {
	return c.reporting(func(sim Base) error { return (&SwarmCommand{sim}).run(args) })
}

// errSwarm reports a failed swarm. The failures have been printed.
type errSwarm struct{}

func (errSwarm) Error() string { return "the swarm failed" }

func (c *SwarmCommand) run(args []string) error {
	var f SwarmFlags
	set := f.Set()
	arguments, err := cli.ParseArguments(set, "sim swarm", args)
	if err != nil {
		return err
	}
	if err := f.check(set, arguments); err != nil {
		return err
	}
	if err := f.openKeep(); err != nil {
		return fmt.Errorf("-keep: %w", err)
	}
	if f.fresh && !f.json {
		fmt.Fprintf(c.Out, "fresh seeds; to replay them: %s\n", f.again())
	}
	var hashes []seedHash
	played, end := c.progress(&f)
	report, unplayed := swarm.Play(c.Ctx, swarm.Options{
		First: f.first, Seeds: f.seeds, Size: f.size, Workers: f.workers, Play: c.Play,
		Each: func(r swarm.Run) {
			hashes = append(hashes, seedHash{r.Seed, hexHash(r.Hash)})
			played(r)
		},
	})
	end()
	kept, unkept := c.keep(&f, report)
	if f.json {
		if err := printSwarm(c.Out, report, f.seeds, hashes, kept); err != nil {
			return unkept // c.out keeps the other error
		}
	} else {
		c.print(report, f.seeds, kept)
	}
	switch {
	case unplayed != nil:
		err = fmt.Errorf("interrupted after %d of %d seeds: %w", report.Seeds, f.seeds, unplayed)
	case !report.OK():
		err = errSwarm{}
	}
	return errors.Join(unkept, err)
}

func (f *SwarmFlags) check(set *flag.FlagSet, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("unexpected argument %q; \"nodedrain sim swarm -h\" lists the options", arguments[0])
	}
	present := cli.SetFlags(set)
	if f.fresh {
		if err := cli.Exclusive(present, [][2]string{{"fresh", "seed"}}); err != nil {
			return err
		}
		f.first = freshSeed(time.Now())
	}
	switch {
	case f.seeds <= 0:
		return fmt.Errorf("-seeds is %d and must be above 0", f.seeds)
	case f.first == 0:
		return errors.New("-seed is 0 and must be above 0: seed 0 makes no random choices")
	case uint64(f.seeds-1) > math.MaxUint64-f.first:
		return fmt.Errorf("-seeds is %d and must not be above %d: there are no seeds after %d", f.seeds, math.MaxUint64-f.first+1, uint64(math.MaxUint64))
	case present["workers"] && f.workers <= 0:
		return fmt.Errorf("-workers is %d and must be above 0", f.workers)
	}
	return nil
}

// freshSeed returns the first seed of a swarm that begins now: the microseconds since 1970. A
// swarm plays fewer than a million seeds per second, so the next fresh swarm repeats none of them.
func freshSeed(now time.Time) uint64 { return uint64(now.UnixMicro()) }

// again returns the command that plays the same seeds again.
func (f *SwarmFlags) again() string {
	command := fmt.Sprintf("nodedrain sim swarm -size %s -seed %d -seeds %d", f.size, f.first, f.seeds)
	return command
}

// print prints the result of a swarm of the requested number of seeds.
func (c *SwarmCommand) print(r *swarm.Report, seeds int, kept map[uint64]string) {
	for _, failure := range r.Failures {
		c.printFailure(failure, kept[failure.Seed])
	}
	if more := r.Failed - len(r.Failures); more > 0 {
		fmt.Fprintf(c.Out, "FAIL  and %d more seeds, neither shown nor kept\n", more)
	}
	for _, short := range r.Short {
		fmt.Fprintf(c.Out, "RARE  %s\n", short)
	}
	verdict, of := "ok  ", ""
	if r.Seeds < seeds {
		verdict, of = "STOP", fmt.Sprintf(" interrupted after %d of", r.Seeds)
	}
	if !r.OK() {
		verdict = "FAIL"
	}
	fmt.Fprintf(c.Out, "%s %s %d %s seeds from %d on, %d failed, %d played twice, hash %s\n",
		verdict, of, seeds, r.Size, r.First, r.Failed, r.Twice, hexHash(r.Hash))
	fmt.Fprintf(c.Out, "      %s on %d workers: %.0f seeds per minute, %.2f busy simulated hours per second; %d entries in %d steps\n",
		r.Took.Round(time.Millisecond), r.Workers, r.SeedsPerMinute(), r.BusyHoursPerSecond(), r.Entries, r.Steps)
}

// printFailure prints the failure of a seed and the commands to reproduce it.
func (c *SwarmCommand) printFailure(f *swarm.Failure, kept string) {
	fmt.Fprintf(c.Out, "FAIL  seed %d: %s: %s\n", f.Seed, f.Kind, f.Text)
	fmt.Fprintf(c.Out, "      replay: %s\n", replaySeed(f.Size, f.Seed))
	fmt.Fprintf(c.Out, "      shrink: nodedrain sim shrink -size %s -seed %d\n", f.Size, f.Seed)
	if kept != "" {
		fmt.Fprintf(c.Out, "      kept, frozen: nodedrain sim run %s\n", quoted(kept))
	}
}

// openKeep creates the folder of failing scenarios and checks that it is writable.
func (f *SwarmFlags) openKeep() error {
	if f.keep == "" {
		return nil
	}
	if err := os.MkdirAll(f.keep, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(f.keep, ".try-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// keep writes failing scenarios to files, frozen, and returns the files by seed.
func (c *SwarmCommand) keep(f *SwarmFlags, r *swarm.Report) (kept map[uint64]string, err error) {
	kept = map[uint64]string{}
	if f.keep == "" {
		return kept, nil
	}
	for _, failure := range r.Failures {
		s := c.frozen(swarm.Generate(failure.Seed, failure.Size))
		file := filepath.Join(f.keep, s.Name+scenario.Extension)
		if err := writeFile(file, func(w io.Writer) error { return scenario.Print(w, s) }); err != nil {
			return kept, fmt.Errorf("keeping seed %d: %w", failure.Seed, err)
		}
		kept[failure.Seed] = file
	}
	return kept, nil
}

// freezePlays bounds how often freezing plays a failing seed.
const freezePlays = 100

// frozen returns the scenario frozen, if it fails again. Otherwise, as after
// nondeterminism, it returns the scenario unchanged.
func (c *SwarmCommand) frozen(s *scenario.Scenario) *scenario.Scenario {
	frozen, _, err := shrink.Freeze(c.Ctx, s, shrink.Judging(c.until(c.Ctx)), shrink.Options{MaxPlays: freezePlays})
	if err != nil {
		return s
	}
	return frozen
}
