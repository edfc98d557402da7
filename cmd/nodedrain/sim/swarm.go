package sim

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/shrink"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// swarmCommand is one run of "nodedrain sim swarm".
type swarmCommand struct {
	simulation
	seeds, workers int
	first          uint64
	fresh          bool // the clock gives the first seed
	size           swarm.Size
	json           bool
	keep           string
}

// generate is "nodedrain sim swarm".
func generate(play player) *cli.Command {
	c := &swarmCommand{simulation: simulation{play: play}, seeds: swarm.DefaultSeeds, first: swarm.DefaultFirst}
	return &cli.Command{
		Short: "Generate scenarios from seeds and play them",
		Description: `
  Generates a scenario from each seed and plays it: a cluster, jobs, drains and faults.
  Each seed has a subset of the kinds of faults. A seed fails if it breaks a guarantee
  of the drainer, or if a second play gives a different result. The swarm also fails if
  rare events happened less often than required: its coverage is then too low. The exit
  code is 0 only if all seeds were played and nothing failed.

  The same seed gives the same result on every machine.
`,
		Options: cli.Options{
			cli.Flag(&c.seeds, "seeds N", "Number of seeds to play."),
			sizeOption(&c.size, "small: about five nodes; medium: about thirty-five; large: a thousand nodes with twenty thousand allocations. Default: small."),
			cli.Flag(&c.first, "seed S", "The first seed."),
			cli.Flag(&c.fresh, "fresh", "Take the first seed from the clock, to play seeds that were never played before. Prints the command that plays the same seeds again. Excludes -seed."),
			cli.Flag(&c.workers, "workers W", "Number of seeds played in parallel. Default: the number of processors."),
			cli.Flag(&c.keep, "keep DIR", fmt.Sprintf("Write the first %d failing seeds into DIR as scenario files, with random choices fixed where possible. Creates DIR.", swarm.DefaultKeep)),
			cli.Flag(&c.json, "json", "Print only one JSON object: the hash of each seed, the failures, the counts and the speed."),
		},
		CountsArgs: true, Run: c.reporting(c.run),
	}
}

// errSwarm reports a failed swarm. The failures have been printed.
var errSwarm = errors.New("the swarm failed")

func (c *swarmCommand) run() error {
	if err := c.check(); err != nil {
		return err
	}
	if err := c.openKeep(); err != nil {
		return fmt.Errorf("-keep: %w", err)
	}
	if c.fresh && !c.json {
		fmt.Fprintf(c.call.Out, "fresh seeds; to replay them: %s\n", c.again())
	}
	hashes := []seedHash{}
	played, end := c.progress()
	report, unplayed := swarm.Play(c.call.Ctx, swarm.Options{
		First: c.first, Seeds: c.seeds, Size: c.size, Workers: c.workers, Play: c.play,
		Each: func(r swarm.Run) {
			hashes = append(hashes, seedHash{r.Seed, hexHash(r.Hash)})
			played(r)
		},
	})
	end()
	kept, unkept := c.keepFailures(report)
	if c.json {
		if err := printSwarm(c.call.Out, report, c.seeds, hashes, kept); err != nil {
			return unkept // c.call.Out keeps the other error
		}
	} else {
		c.print(report, kept)
	}
	var err error
	switch {
	case unplayed != nil:
		err = fmt.Errorf("interrupted after %d of %d seeds: %w", report.Seeds, c.seeds, unplayed)
	case !report.OK():
		err = errSwarm
	}
	return errors.Join(unkept, err)
}

func (c *swarmCommand) check() error {
	if len(c.call.Args) > 0 {
		return fmt.Errorf("unexpected argument %q; \"nodedrain sim swarm -h\" lists the options", c.call.Args[0])
	}
	if c.fresh {
		if err := c.call.Exclusive([2]string{"fresh", "seed"}); err != nil {
			return err
		}
		c.first = freshSeed(time.Now())
	}
	switch {
	case c.seeds <= 0:
		return fmt.Errorf("-seeds is %d and must be above 0", c.seeds)
	case c.first == 0:
		return errSeedZero
	case uint64(c.seeds-1) > math.MaxUint64-c.first:
		return fmt.Errorf("-seeds is %d and must not be above %d: there are no seeds after %d", c.seeds, math.MaxUint64-c.first+1, uint64(math.MaxUint64))
	case c.call.Set("workers") && c.workers <= 0:
		return fmt.Errorf("-workers is %d and must be above 0", c.workers)
	}
	return nil
}

// freshSeed returns the first seed of a swarm that begins now: the microseconds since 1970. A
// swarm plays fewer than a million seeds per second, so the next fresh swarm repeats none of them.
func freshSeed(now time.Time) uint64 { return uint64(now.UnixMicro()) }

// again returns the command that plays the same seeds again.
func (c *swarmCommand) again() string {
	return fmt.Sprintf("nodedrain sim swarm -size %s -seed %d -seeds %d", c.size, c.first, c.seeds)
}

// print prints the result of a swarm.
func (c *swarmCommand) print(r *swarm.Report, kept map[uint64]string) {
	for _, failure := range r.Failures {
		c.printFailure(failure, kept[failure.Seed])
	}
	if more := r.Failed - len(r.Failures); more > 0 {
		fmt.Fprintf(c.call.Out, "FAIL  and %d more seeds, neither shown nor kept\n", more)
	}
	for _, short := range r.Short {
		fmt.Fprintf(c.call.Out, "RARE  %s\n", short)
	}
	verdict, of := "ok  ", ""
	if r.Seeds < c.seeds {
		verdict, of = "STOP", fmt.Sprintf(" interrupted after %d of", r.Seeds)
	}
	if !r.OK() {
		verdict = "FAIL"
	}
	fmt.Fprintf(c.call.Out, "%s %s %d %s seeds from %d on, %d failed, %d played twice, hash %s\n",
		verdict, of, c.seeds, r.Size, r.First, r.Failed, r.Twice, hexHash(r.Hash))
	fmt.Fprintf(c.call.Out, "      %s on %d workers: %.0f seeds per minute, %.2f busy simulated hours per second; %d entries in %d steps\n",
		r.Took.Round(time.Millisecond), r.Workers, r.SeedsPerMinute(), r.BusyHoursPerSecond(), r.Entries, r.Steps)
}

// printFailure prints the failure of a seed and the commands to reproduce it.
func (c *swarmCommand) printFailure(f *swarm.Failure, kept string) {
	fmt.Fprintf(c.call.Out, "FAIL  seed %d: %s: %s\n", f.Seed, f.Kind, f.Text)
	fmt.Fprintf(c.call.Out, "      replay: %s\n", replaySeed(f.Size, f.Seed))
	fmt.Fprintf(c.call.Out, "      shrink: nodedrain sim shrink -size %s -seed %d\n", f.Size, f.Seed)
	if kept != "" {
		fmt.Fprintf(c.call.Out, "      kept, frozen: nodedrain sim run %s\n", quoted(kept))
	}
}

// openKeep creates the folder of failing scenarios and checks that it is writable.
func (c *swarmCommand) openKeep() error {
	if c.keep == "" {
		return nil
	}
	if err := os.MkdirAll(c.keep, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(c.keep, ".try-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// keepFailures writes failing scenarios to files, frozen, and returns the files by seed.
func (c *swarmCommand) keepFailures(r *swarm.Report) (kept map[uint64]string, err error) {
	kept = map[uint64]string{}
	if c.keep == "" {
		return kept, nil
	}
	waiting := c.call.StartWaiting(func() string { return "the files of the failures" })
	defer waiting.End()
	for _, failure := range r.Failures {
		s := c.frozen(swarm.Generate(failure.Seed, failure.Size))
		file := filepath.Join(c.keep, s.Name+scenario.Extension)
		if err := cli.WriteFile(file, func(w io.Writer) error { return scenario.Print(w, s) }); err != nil {
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
func (c *swarmCommand) frozen(s *scenario.Scenario) *scenario.Scenario {
	frozen, _, err := shrink.Freeze(c.call.Ctx, s, shrink.Judging(c.play.until(c.call.Ctx)), shrink.Options{MaxPlays: freezePlays})
	if err != nil {
		return s
	}
	return frozen
}
