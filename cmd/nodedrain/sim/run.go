package sim

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// RunCommand is "nodedrain sim run".
type RunCommand struct{ Base }

// RunFlags are the flags of "nodedrain sim run".
type RunFlags struct {
	clusterFlags
	size                         swarm.Size
	rewrite, print, story, quiet bool
	svg, trace                   string
	ascii                        bool
	width                        int
}

// Set returns the set of the flags.
func (f *RunFlags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("run", flag.ContinueOnError)
	f.clusterFlags.add(set)
	set.TextVar(&f.size, "size", swarm.Small, "")
	set.BoolVar(&f.rewrite, "rewrite", false, "")
	set.BoolVar(&f.print, "print", false, "")
	set.BoolVar(&f.story, "story", false, "")
	set.BoolVar(&f.story, "v", false, "")
	set.BoolVar(&f.quiet, "q", false, "")
	set.StringVar(&f.svg, "svg", "", "")
	set.StringVar(&f.trace, "trace", "", "")
	set.BoolVar(&f.ascii, "ascii", false, "")
	set.IntVar(&f.width, "width", 0, "")
	return set
}

// Synopsis returns the command in one line.
func (c *RunCommand) Synopsis() string { return "Play scenario files, or drains of a real cluster" }

// Help returns the help.
func (c *RunCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain sim run [options] FILE...
       nodedrain sim run [options] -size SIZE -seed S
       nodedrain sim run [options] -cluster DIR

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

Options:

  -story, -v        Print the story: the operators' requests, the drainer's writes and
                    the reasons why allocations wait; then the final state.
  -q                Draw nothing.
  -ascii            Draw with ASCII only. This is the default if the locale (LC_ALL,
                    LC_CTYPE, LANG) is not UTF-8.
  -width N          Width of the picture in columns, at least %d. Default: that of the
                    terminal, or %d.
  -svg FILE         Draw an SVG too. Requires a single scenario. "-" is standard
                    output; the report then goes to standard error.
  -trace FILE       Write events as JSON objects, one per line. Requires a single
                    scenario. "-" as with -svg.
  -rewrite          Write the result of a scenario into its file as the expected
                    result.
  -print            Print the scenario and do not play it.

  -size SIZE        Play the scenario of a seed, as "nodedrain sim swarm" generates
                    it, instead of files: small, medium or large.
  -seed S           The seed. With -cluster it determines the choice of nodes and all
                    durations. Default: 1.

  -cluster DIR      Play the cluster of DIR/nodes.csv and DIR/pods.csv, in the
                    format of Alibaba's cluster-trace-gpu-v2023, instead of files:
                    running pods of equal request and QoS make one job.
  -nodes A,B,C      With -cluster: the nodes to drain.
  -drains N         With -cluster: the number of nodes to drain, chosen by the seed.
                    Default: 5%% of the nodes.
  -deadline D       With -cluster: the deadline of the drains; 0 is none. Default: %s.
`, timeline.MinColumns, timeline.DefaultColumns, defaultDeadline))
}

// Run runs the command and returns its exit code.
func (c *RunCommand) Run(args []string) int {
	return c.reporting(func(sim Base) error { return (&RunCommand{sim}).run(args) })
}

// errScenarios reports failed scenarios. Their failures have been printed.
type errScenarios struct{ failed, of int }

func (e errScenarios) Error() string {
	if e.of == 1 {
		return "the scenario failed"
	}
	return fmt.Sprintf("%d of %d scenarios failed", e.failed, e.of)
}

// errInterrupted reports that the user interrupted the run.
var errInterrupted = errors.New("interrupted before all scenarios were played")

func (c *RunCommand) run(args []string) error {
	var f RunFlags
	set := f.Set()
	files, err := cli.ParseArguments(set, "sim run", args)
	if err != nil {
		return err
	}
	if err := f.check(cli.SetFlags(set), files); err != nil {
		return err
	}
	plays, err := c.plays(&f, files)
	if err != nil {
		return err
	}
	written, err := f.open(c)
	if err != nil {
		return err
	}
	defer written.abandon()
	failed := 0
	var errs []error
	for _, p := range plays {
		ok, err := c.one(&f, p, written, len(plays) == 1)
		if c.Ctx.Err() != nil {
			return errInterrupted
		}
		if !ok {
			failed++
		}
		errs = append(errs, err)
	}
	if failed > 0 {
		errs = append(errs, errScenarios{failed, len(plays)})
	}
	return errors.Join(errs...)
}

// check refuses invalid combinations of flags.
func (f *RunFlags) check(present map[string]bool, files []string) error {
	generated := present["cluster"] || present["size"]
	switch {
	case !generated && len(files) == 0:
		return errors.New("no scenario file is named; see \"nodedrain sim run -h\"")
	case generated && len(files) > 0:
		return fmt.Errorf("%s: a scenario file excludes -cluster and -size", files[0])
	case !generated && present["seed"]:
		return errors.New("-seed needs -size or -cluster: a scenario file has its own seed")
	case present["seed"] && f.seed == 0:
		return errors.New("-seed is 0 and must be above 0: seed 0 makes no random choices")
	case len(files) > 1 && (f.svg != "" || f.trace != ""):
		return errors.New("-svg and -trace need a single scenario")
	case f.svg == "-" && f.trace == "-":
		return errors.New("-svg and -trace cannot both go to standard output")
	case f.width < 0:
		return fmt.Errorf("-width is %d and must be above 0", f.width)
	}
	if err := cli.Exclusive(present, [][2]string{{"rewrite", "cluster"}, {"rewrite", "size"}, {"rewrite", "print"}, {"nodes", "drains"}, {"cluster", "size"}}); err != nil {
		return err
	}
	return f.clusterFlags.check(present)
}

// plays returns the scenarios that the command line names.
func (c *RunCommand) plays(f *RunFlags, files []string) (plays []playing, err error) {
	switch {
	case f.dir != "":
		p, err := f.playing()
		return []playing{p}, err
	case len(files) == 0:
		s := swarm.Generate(f.seed, f.size)
		return []playing{{label: s.Name, replay: replaySeed(f.size, f.seed), scenario: s}}, nil
	}
	for _, file := range files {
		plays = append(plays, c.playing(file))
	}
	return plays, nil
}

// one plays a scenario and prints its result. It returns false if the scenario failed. The
// error is that of a file that could not be written; it does not fail the scenario.
func (c *RunCommand) one(f *RunFlags, p playing, o outputs, alone bool) (ok bool, err error) {
	if p.err != nil {
		fmt.Fprintf(c.Out, "FAIL  %s\n%s", p.label, indented(p.err.Error()))
		return false, nil
	}
	if f.print {
		return true, scenario.Print(c.Out, p.scenario)
	}
	result, recorder, err := c.played(p, o)
	switch {
	case result == nil && c.Ctx.Err() != nil:
		return false, nil // run reports the interrupt
	case result == nil:
		fmt.Fprintf(c.Out, "FAIL  %s\n%s", p.label, indented(err.Error()))
		c.replay(p)
		return false, nil
	}
	c.warn(p, result)
	if f.rewrite {
		err = errors.Join(err, c.rewritten(p, result))
	}
	return c.report(f, p, result, recorder, alone), err
}

// report prints the result of a scenario, and returns false if it failed.
func (c *RunCommand) report(f *RunFlags, p playing, result *sim.Result, recorder *timeline.Recorder, alone bool) bool {
	wrong := wrong(f, p, result)
	if !f.quiet && (alone || len(wrong) > 0) {
		ascii := f.ascii || notUnicode(c.Getenv)
		_ = recorder.Text(c.Out, timeline.TextOptions{Columns: c.columns(f), ASCII: ascii}) // c.out keeps the error
		fmt.Fprintln(c.Out)
	}
	if f.story {
		fmt.Fprintf(c.Out, "%s\n\n%s\n\n", result.Story, result.End)
	}
	verdict := "ok  "
	if len(wrong) > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(c.Out, "%s  %s  %s; %d entries, log of %d, in %s, hash %016x\n", verdict, p.label, atTheEnd(result), recorder.Entries(), result.Entries, result.Lasted.Round(time.Millisecond), result.Hash)
	for _, w := range wrong {
		fmt.Fprint(c.Out, indented(w))
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

func (c *RunCommand) replay(p playing) {
	fmt.Fprintf(c.Out, "      replay: %s\n", p.replay)
}

// indented indents text below a verdict.
func indented(text string) string {
	text = strings.TrimRight(text, "\n")
	return "      " + strings.ReplaceAll(text, "\n", "\n      ") + "\n"
}

// columns returns the width of the picture.
func (c *RunCommand) columns(f *RunFlags) int {
	if f.width > 0 {
		return f.width
	}
	return cli.TerminalWidth(c.Out)
}

// outputs are the files written besides the report. Each may be nil.
type outputs struct{ svg, trace *output }

// open opens the files that the flags name. If one is "-", which is standard output, the
// report goes to standard error.
func (f *RunFlags) open(c *RunCommand) (o outputs, err error) {
	stdout := cli.Underlying(c.Out)
	open := func(path string) *output {
		if path == "-" {
			c.Out = c.Errs
			return &output{path: "standard output", to: stdout}
		}
		opened, failed := openOutput(path)
		err = errors.Join(err, failed)
		return opened
	}
	o = outputs{svg: open(f.svg), trace: open(f.trace)}
	if err != nil {
		o.abandon()
	}
	return o, err
}

// abandon leaves unwritten files as they were.
func (o outputs) abandon() {
	o.svg.abandon()
	o.trace.abandon()
}

// played plays a scenario and writes the outputs. The result is nil if the scenario could
// not be played. Otherwise the error is that of an output.
func (c *RunCommand) played(p playing, o outputs) (result *sim.Result, recorder *timeline.Recorder, err error) {
	recorder = timeline.New(timeline.Options{
		Name: p.scenario.Name, Seed: p.scenario.Seed, Epoch: world.Epoch, Replay: p.replay, Servers: max(1, p.scenario.Cluster.Servers),
	})
	recorder.Operations(p.scenario.Events)
	play := func(watch func(*world.World)) (err error) {
		result, err = c.until(c.Ctx)(p.scenario, sim.Options{Story: true, Watch: func(w *world.World) {
			recorder.Watch(w)
			watch(w)
		}})
		if err == nil {
			recorder.Result(result)
		}
		return err
	}
	if o.trace != nil {
		err = o.trace.write(func(to io.Writer) error {
			trace := timeline.NewTrace(to)
			if err := play(trace.Watch); err != nil {
				return err
			}
			return trace.End(result)
		})
	} else {
		err = play(func(*world.World) {})
	}
	if result != nil && o.svg != nil {
		err = errors.Join(err, o.svg.write(recorder.SVG))
	}
	return result, recorder, err
}
