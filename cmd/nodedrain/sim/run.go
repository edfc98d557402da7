package sim

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// runCommand is one run of "nodedrain sim run".
type runCommand struct {
	simulation
	clusterFlags
	size                         swarm.Size
	rewrite, print, story, quiet bool
	svg                          string
	ascii                        bool
	width                        int
}

// run is "nodedrain sim run".
func run(play player) *cli.Command {
	c := &runCommand{simulation: simulation{play: play}, clusterFlags: clusterFlags{deadline: defaultDeadline, seed: 1}}
	return &cli.Command{
		Short: "Play scenario files, or drains of a real cluster",
		Forms: []string{"[options] FILE...", "[options] -size SIZE -seed S", "[options] -cluster DIR"},
		Description: `
  Plays scenarios and draws a timeline: the leader, faults, and a lane for each draining
  node and for each group with its limit. A scenario fails if it breaks a guarantee of
  the drainer, or if its result differs from the result in its file. The command then
  shows the difference and exits with code 1. An operation without effect gives a
  warning, not a failure.

  With several scenarios the command draws only those that fail. The last line of a
  scenario names the services that lack healthy allocations at the end of the run, which
  is not a failure of the drainer. Then it reports if the guarantees held. It counts the
  entries applied during the run, as the picture does, and all entries of the log,
  including the initial ones and barriers.
`,
		Options: append(cli.Options{
			cli.Flag(&c.story, "story", "Print the story: the operators' requests, the drainer's writes and the reasons why allocations wait; then the final state."),
			cli.Flag(&c.story, "v", "The same as -story."),
			cli.Flag(&c.quiet, "q", "Draw nothing."),
			cli.Flag(&c.ascii, "ascii", "Draw with ASCII only. This is the default if the locale (LC_ALL, LC_CTYPE, LANG) is not UTF-8."),
			cli.Flag(&c.width, "width N", fmt.Sprintf("Width of the picture in columns, at least %d. Default: that of the terminal, or %d.", drawing.MinColumns, drawing.DefaultColumns)),
			cli.Flag(&c.svg, "svg FILE", `Draw an SVG too. Requires a single scenario. "-" is standard output; the report then goes to standard error.`),
			cli.Flag(&c.rewrite, "rewrite", "Write the result of a scenario into its file as the expected result."),
			cli.Flag(&c.print, "print", "Print the scenario and do not play it."),
			cli.Heading(""),
			sizeOption(&c.size, `Play the scenario of a seed, as "nodedrain sim swarm" generates it, instead of files: small, medium or large.`),
		}, c.clusterFlags.options()...),
		Args: "FILE...", CountsArgs: true, Run: c.reporting(c.run),
	}
}

// errInterrupted reports that the user interrupted the run.
var errInterrupted = errors.New("interrupted before all scenarios were played")

func (c *runCommand) run() error {
	if err := c.check(); err != nil {
		return err
	}
	plays, err := c.plays()
	if err != nil {
		return err
	}
	svg, err := c.call.OpenPicture(c.svg)
	if err != nil {
		return err
	}
	defer svg.Abandon()
	failed := 0
	var errs []error
	for _, p := range plays {
		ok, err := c.one(p, svg, len(plays) == 1)
		if c.call.Ctx.Err() != nil {
			return errInterrupted
		}
		if !ok {
			failed++
		}
		errs = append(errs, err)
	}
	switch {
	case failed > 0 && len(plays) == 1:
		errs = append(errs, errors.New("the scenario failed"))
	case failed > 0:
		errs = append(errs, fmt.Errorf("%d of %d scenarios failed", failed, len(plays)))
	}
	return errors.Join(errs...)
}

// check refuses invalid combinations of flags.
func (c *runCommand) check() error {
	files, generated := c.call.Args, c.call.Set("cluster") || c.call.Set("size")
	switch {
	case !generated && len(files) == 0:
		return errors.New("no scenario file is named; see \"nodedrain sim run -h\"")
	case generated && len(files) > 0:
		return fmt.Errorf("%s: a scenario file excludes -cluster and -size", files[0])
	case !generated && c.call.Set("seed"):
		return errors.New("-seed needs -size or -cluster: a scenario file has its own seed")
	case c.call.Set("seed") && c.seed == 0:
		return errSeedZero
	case len(files) > 1 && c.svg != "":
		return errors.New("-svg needs a single scenario")
	case c.width < 0:
		return fmt.Errorf("-width is %d and must be above 0", c.width)
	}
	if err := c.call.Exclusive([2]string{"rewrite", "cluster"}, [2]string{"rewrite", "size"}, [2]string{"rewrite", "print"},
		[2]string{"nodes", "drains"}, [2]string{"cluster", "size"}); err != nil {
		return err
	}
	return c.clusterFlags.check(c.call.Set)
}

// plays returns the scenarios that the command line names.
func (c *runCommand) plays() (plays []playing, err error) {
	switch {
	case c.dir != "":
		p, err := c.playing()
		return []playing{p}, err
	case len(c.call.Args) == 0:
		s := swarm.Generate(c.seed, c.size)
		return []playing{{label: s.Name, replay: replaySeed(c.size, c.seed), scenario: s}}, nil
	}
	for _, file := range c.call.Args {
		plays = append(plays, c.read(file))
	}
	return plays, nil
}

// one plays a scenario and prints its result. It returns false if the scenario failed. The
// error is that of a file that could not be written; it does not fail the scenario.
func (c *runCommand) one(p playing, svg *cli.File, alone bool) (ok bool, err error) {
	if p.err != nil {
		fmt.Fprintf(c.call.Out, "FAIL  %s\n%s", p.label, indented(p.err.Error()))
		return false, nil
	}
	if c.print {
		return true, scenario.Print(c.call.Out, p.scenario)
	}
	result, recorder, err := c.played(p, svg)
	switch {
	case result == nil && c.call.Ctx.Err() != nil:
		return false, nil // run reports the interrupt
	case result == nil:
		fmt.Fprintf(c.call.Out, "FAIL  %s\n%s", p.label, indented(err.Error()))
		c.replay(p)
		return false, nil
	}
	c.warn(p, result)
	if c.rewrite {
		err = errors.Join(err, c.rewritten(p, result))
	}
	return c.report(p, result, recorder, alone), err
}

// report prints the result of a scenario, and returns false if it failed.
func (c *runCommand) report(p playing, result *sim.Result, recorder *timeline.Recorder, alone bool) bool {
	wrong := c.wrong(p, result)
	if !c.quiet && (alone || len(wrong) > 0) {
		ascii := c.ascii || cli.NotUnicode(c.call.Getenv)
		_ = recorder.Text(c.call.Out, timeline.TextOptions{Columns: c.columns(), ASCII: ascii}) // c.call.Out keeps the error
		fmt.Fprintln(c.call.Out)
	}
	if c.story {
		fmt.Fprintf(c.call.Out, "%s\n\n%s\n\n", result.Story, result.End)
	}
	verdict := "ok  "
	if len(wrong) > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(c.call.Out, "%s  %s  %s; %d entries, log of %d, in %s, hash %016x\n", verdict, p.label, atTheEnd(result), recorder.Entries(), result.Entries, result.Lasted.Round(time.Millisecond), result.Hash)
	for _, w := range wrong {
		fmt.Fprint(c.call.Out, indented(w))
	}
	if len(wrong) > 0 {
		c.replay(p)
	}
	return len(wrong) == 0
}

// maxUnhealthy is how many unhealthy groups a verdict names.
const maxUnhealthy = 3

// atTheEnd describes the services at the end of a run, and then if the guarantees held.
func atTheEnd(r *sim.Result) string {
	services := "all services are healthy at the end"
	if n := len(r.Unhealthy); n > 0 {
		services = "at the end " + strings.Join(r.Unhealthy[:min(n, maxUnhealthy)], "; ")
		if n > maxUnhealthy {
			services += fmt.Sprintf("; %d more services lack healthy allocations", n-maxUnhealthy)
		}
	}
	if n := len(r.Violations); n > 0 {
		return services + fmt.Sprintf("; violations of guarantees: %d", n)
	}
	return services + "; all guarantees held"
}

func (c *runCommand) replay(p playing) {
	fmt.Fprintf(c.call.Out, "      replay: %s\n", p.replay)
}

// indented indents text below a verdict.
func indented(text string) string {
	text = strings.TrimRight(text, "\n")
	return "      " + strings.ReplaceAll(text, "\n", "\n      ") + "\n"
}

// columns returns the width of the picture.
func (c *runCommand) columns() int {
	if c.width > 0 {
		return c.width
	}
	return cli.TerminalWidth(c.call.Out)
}

// played plays a scenario and writes the picture. The result is nil if the scenario could not be
// played. Otherwise the error is that of the picture.
func (c *runCommand) played(p playing, svg *cli.File) (result *sim.Result, recorder *timeline.Recorder, err error) {
	recorder = timeline.New(timeline.Options{
		Name: p.scenario.Name, Seed: p.scenario.Seed, Epoch: world.Epoch, Replay: p.replay, Servers: max(1, p.scenario.Cluster.Servers),
	})
	recorder.Operations(p.scenario.Events)
	var now atomic.Int64 // the virtual time of the play
	waiting := c.call.StartWaiting(func() string {
		return fmt.Sprintf("the end of %s, now at %s of virtual time", p.label, cli.Rough(time.Duration(now.Load())))
	})
	defer waiting.End()
	result, err = c.play.until(c.call.Ctx)(p.scenario, sim.Options{
		Story: true, Watch: recorder.Watch, Quiet: func(w *world.World) { now.Store(int64(w.Now().Sub(world.Epoch))) },
	})
	if err != nil {
		return nil, recorder, err
	}
	recorder.Result(result)
	if svg != nil {
		err = svg.Write(recorder.SVG)
	}
	return result, recorder, err
}
