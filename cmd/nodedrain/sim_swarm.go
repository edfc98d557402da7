package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
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
	fresh          bool // the clock says which is the first
	sizeName       string
	json           bool
	keep           string
	// metamorphic is the share of seeds whose story is told otherwise too.
	metamorphic float64

	size swarm.Size
}

func (f *simSwarmFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("swarm", flag.ContinueOnError)
	set.IntVar(&f.seeds, "seeds", swarm.DefaultSeeds, "")
	set.StringVar(&f.sizeName, "size", swarm.Small.String(), "")
	set.Uint64Var(&f.first, "seed", swarm.DefaultFirst, "")
	set.BoolVar(&f.fresh, "fresh", false, "")
	set.IntVar(&f.workers, "workers", 0, "")
	set.BoolVar(&f.json, "json", false, "")
	set.StringVar(&f.keep, "keep", "", "")
	set.Float64Var(&f.metamorphic, "metamorphic", swarm.DefaultMetamorphic, "")
	return set
}

func (c *simSwarmCommand) Synopsis() string { return "Make scenarios from seeds and play them" }

func (c *simSwarmCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain sim swarm [options]

  Makes a scenario from each of many seeds and plays it: a cluster, jobs, drains,
  and whatever may go wrong, of which each seed has some kinds and not others. A
  seed fails if it breaks a guarantee of the drainer, or if, played again, it comes
  to something else. Of some seeds the story is also told otherwise, with what must
  not change its end, and they fail if it does. The swarm fails too if what is rare
  was rarer than it should be, since then it says little. The exit code is 0 only if
  all seeds were played and nothing failed.

  Equal seeds are played equally on every machine.

Options:

  -seeds N          How many to play. Default: %d.
  -size SIZE        small, some five nodes; medium, some thirty-five; large, a thousand nodes
                    with twenty thousand allocations. Default: small.
  -seed S           The first seed. Default: %d.
  -fresh            Take the first seed from the clock, so that seeds are played which
                    were never played before. Prints the command that plays the same
                    seeds again. Does not go together with -seed.
  -workers W        How many to play at once. Default: as many as there are
                    processors.
  -keep DIR         Write the first %d seeds that fail into DIR, which is made, as
                    scenarios that leave as little to chance as they can.
  -metamorphic P    The share of seeds whose story is told otherwise too, from 0 to
                    1. Default: %g.
  -json             Print nothing but one object in JSON: the hash of each seed,
                    what failed, what was counted, and how fast it went.
`, swarm.DefaultSeeds, swarm.DefaultFirst, swarm.DefaultKeep, swarm.DefaultMetamorphic))
}

func (c *simSwarmCommand) Run(args []string) int {
	return c.reporting(func(sim simCommand) error { return (&simSwarmCommand{sim}).run(args) })
}

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
	if err := f.openKeep(); err != nil {
		return fmt.Errorf("-keep: %w", err)
	}
	if f.fresh && !f.json {
		fmt.Fprintf(c.out, "fresh seeds, to be played again by: %s\n", f.again())
	}
	var hashes []seedHash
	progress := c.progress(&f)
	report, unplayed := swarm.Play(c.ctx, swarm.Options{
		First: f.first, Seeds: f.seeds, Size: f.size, Workers: f.workers, Play: c.play,
		Metamorphic: cmp.Or(f.metamorphic, -1), // of the options, zero is the default
		Each: func(r swarm.Run) {
			hashes = append(hashes, seedHash{r.Seed, hexHash(r.Hash)})
			progress.played(r)
		},
	})
	progress.close()
	kept, unkept := c.keep(&f, report)
	if f.json {
		if err := printSwarm(c.out, report, f.seeds, hashes, kept); err != nil {
			return unkept // c.out remembers the other
		}
	} else {
		c.tell(report, f.seeds, kept)
	}
	switch {
	case unplayed != nil:
		err = fmt.Errorf("interrupted after %d of %d seeds: %w", report.Seeds, f.seeds, unplayed)
	case !report.OK():
		err = errSwarm{}
	}
	return errors.Join(unkept, err)
}

func (f *simSwarmFlags) check(set *flag.FlagSet, about []string) (err error) {
	if len(about) > 0 {
		return fmt.Errorf("unexpected argument %q; \"nodedrain sim swarm -h\" lists the options", about[0])
	}
	given := given(set)
	if f.fresh {
		if err := notTogether(given, [][2]string{{"fresh", "seed"}}); err != nil {
			return err
		}
		f.first = freshSeed(time.Now())
	}
	switch {
	case f.seeds <= 0:
		return fmt.Errorf("-seeds is %d and must be above 0", f.seeds)
	case f.first == 0:
		return errors.New("-seed is 0 and must be above 0: none draws nothing")
	case uint64(f.seeds-1) > math.MaxUint64-f.first:
		return fmt.Errorf("-seeds is %d and must not be above %d: there are no seeds after %d", f.seeds, math.MaxUint64-f.first+1, uint64(math.MaxUint64))
	case given["workers"] && f.workers <= 0:
		return fmt.Errorf("-workers is %d and must be above 0", f.workers)
	case !(f.metamorphic >= 0 && f.metamorphic <= 1):
		return fmt.Errorf("-metamorphic is %g and must be from 0 to 1", f.metamorphic)
	}
	if f.size, err = swarm.ParseSize(f.sizeName); err != nil {
		return fmt.Errorf("-size: %w", err)
	}
	return nil
}

// freshSeed is the first seed of a swarm that begins now: the microseconds since 1970. A swarm
// plays fewer than a million seeds a second, so the next fresh one begins behind it.
func freshSeed(now time.Time) uint64 { return uint64(now.UnixMicro()) }

// again is the command that plays the same seeds again.
func (f *simSwarmFlags) again() string {
	command := fmt.Sprintf("nodedrain sim swarm -size %s -seed %d -seeds %d", f.size, f.first, f.seeds)
	if f.metamorphic != swarm.DefaultMetamorphic {
		command += fmt.Sprintf(" -metamorphic %g", f.metamorphic)
	}
	return command
}

// tell tells what came of a swarm of so many seeds.
func (c *simSwarmCommand) tell(r *swarm.Report, seeds int, kept map[uint64][]string) {
	for _, failure := range r.Failures {
		c.tellFailure(failure, kept[failure.Seed])
	}
	if more := r.Failed - len(r.Failures); more > 0 {
		fmt.Fprintf(c.out, "FAIL  and %d seeds more, which are neither told of nor kept\n", more)
	}
	for _, short := range r.Short {
		fmt.Fprintf(c.out, "RARE  %s\n", short)
	}
	verdict, of := "ok  ", ""
	if r.Seeds < seeds {
		verdict, of = "STOP", fmt.Sprintf(" interrupted after %d of", r.Seeds)
	}
	if !r.OK() {
		verdict = "FAIL"
	}
	fmt.Fprintf(c.out, "%s %s %d %s seeds from %d on, %d failed, %d played twice, %d told otherwise, hash %s\n",
		verdict, of, seeds, r.Size, r.First, r.Failed, r.Twice, r.Retold, hexHash(r.Hash))
	fmt.Fprintf(c.out, "      %s on %d workers: %.0f seeds per minute, %.2f busy simulated hours per second; %d entries in %d steps\n",
		r.Took.Round(time.Millisecond), r.Workers, r.SeedsPerMinute(), r.BusyHoursPerSecond(), r.Entries, r.Steps)
}

// tellFailure tells what was wrong with a seed, and what to do about it.
func (c *simSwarmCommand) tellFailure(f *swarm.Failure, kept []string) {
	fmt.Fprintf(c.out, "FAIL  seed %d: %s: %s\n", f.Seed, f.Kind, f.Text)
	fmt.Fprintf(c.out, "      to play it again: %s\n", replay(f))
	if f.Relation == "" {
		fmt.Fprintf(c.out, "      to make it small: nodedrain sim shrink -size %s -seed %d\n", f.Size, f.Seed)
	}
	switch {
	case len(kept) == 0:
	case f.Relation == "":
		fmt.Fprintf(c.out, "      kept, frozen: nodedrain sim run %s\n", quoted(kept[0]))
	default:
		fmt.Fprintf(c.out, "      kept, to be compared: nodedrain sim run %s %s\n", quoted(kept[0]), quoted(kept[1]))
	}
}

// openKeep makes the folder for what fails, and tries whether files can be written there.
func (f *simSwarmFlags) openKeep() error {
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

// keep writes what failed into files, by seed: its scenario frozen, or both ways in which
// its story was told. The error says what could not be written.
func (c *simSwarmCommand) keep(f *simSwarmFlags, r *swarm.Report) (kept map[uint64][]string, err error) {
	kept = map[uint64][]string{}
	if f.keep == "" {
		return kept, nil
	}
	for _, failure := range r.Failures {
		for _, s := range failure.Scenarios() {
			if failure.Relation == "" {
				s = c.frozen(s)
			}
			file := filepath.Join(f.keep, s.Name+scenario.Ending)
			if err := created(file, func(w io.Writer) error { return scenario.Print(w, s) }); err != nil {
				return kept, fmt.Errorf("keeping seed %d: %w", failure.Seed, err)
			}
			kept[failure.Seed] = append(kept[failure.Seed], file)
		}
	}
	return kept, nil
}

// freezePlays bounds how often a failing seed is played to be frozen.
const freezePlays = 100

// frozen is the scenario frozen, if it fails when it is played again. What fails only
// in other ways, as what differs from one time to the next, is kept as it is.
func (c *simSwarmCommand) frozen(s *scenario.Scenario) *scenario.Scenario {
	frozen, _, err := shrink.Freeze(c.ctx, s, shrink.Judging(c.until(c.ctx)), shrink.Options{MaxPlays: freezePlays})
	if err != nil {
		return s
	}
	return frozen
}
