package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
)

// simRunCommand is "nodedrain sim run".
type simRunCommand struct{ simCommand }

// simRunFlags are the flags of "nodedrain sim run".
type simRunFlags struct {
	clusterFlags
	sizeName                     string
	rewrite, print, story, quiet bool
	svg, trace                   string
	ascii                        bool
	width                        int
}

func (f *simRunFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("run", flag.ContinueOnError)
	f.clusterFlags.add(set)
	set.StringVar(&f.sizeName, "size", "", "")
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

func (c *simRunCommand) Synopsis() string { return "Play scenario files, or drains of a real cluster" }

func (c *simRunCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain sim run [options] FILE...
       nodedrain sim run [options] -size SIZE -seed S
       nodedrain sim run [options] -cluster DIR

  Plays scenarios and draws what happened: who leads, what struck, a lane for each
  node that drains and for each group with its limit. A scenario fails if it breaks
  a guarantee of the drainer, or if its file says what is to come of it and
  something else does; then the exit code is 1, and the difference is shown. What is
  said in a file and comes to nothing is warned of, and is no failure.

  Of several scenarios only those that fail are drawn. The last line counts the
  entries that were applied while it was played, as the picture does, and those of
  the log: with what the cluster began with, and with barriers.

Options:

  -story, -v        Print the story: what operators asked for, what the drainer
                    wrote, and why allocations wait; then the final facts.
  -q                Draw nothing.
  -ascii            Draw with letters and signs alone, as is done where the locale is
                    not of UTF-8 (LC_ALL, LC_CTYPE, LANG).
  -width N          Columns to draw in, at least %d. Default: those of the terminal,
                    or %d.
  -svg FILE         Draw an SVG too. Only of one scenario. "-" is standard output;
                    the report then goes to standard error.
  -trace FILE       Write what happens as JSON objects, one a line. Only of one
                    scenario. "-" as with -svg.
  -rewrite          Write what comes of a scenario into its file, as what is
                    expected from now on.
  -print            Print the scenario and do not play it.

  -size SIZE        Play the scenario of a seed, as "nodedrain sim swarm" makes it,
                    rather than files: small, medium or large.
  -seed S           That seed; of a cluster, what the choice of nodes and how long
                    things take are drawn from. Default: 1.

  -cluster DIR      Play the cluster of DIR/nodes.csv and DIR/pods.csv, in the
                    format of Alibaba's cluster-trace-gpu-v2023, rather than files:
                    running pods of equal request and QoS make one job.
  -nodes A,B,C      Of the cluster, the nodes to drain.
  -drains N         Or how many to drain, drawn from the seed. Default: 5%% of
                    them.
  -deadline D       Deadline of the drains; 0 is none. Default: %s.
`, timeline.MinColumns, timeline.DefaultColumns, defaultDeadline))
}

func (c *simRunCommand) Run(args []string) int {
	return c.reporting(func(sim simCommand) error { return (&simRunCommand{sim}).run(args) })
}

// errScenarios says that some scenarios failed, and that what was wrong was told.
type errScenarios struct{ failed, of int }

func (e errScenarios) Error() string {
	if e.of == 1 {
		return "the scenario failed"
	}
	return fmt.Sprintf("%d of %d scenarios failed", e.failed, e.of)
}

// errInterrupted says that the user did not wait for the end.
var errInterrupted = errors.New("interrupted before all scenarios were played")

func (c *simRunCommand) run(args []string) error {
	var f simRunFlags
	set := f.set()
	files, err := arguments(set, "sim run", args)
	if err != nil {
		return err
	}
	if err := f.check(given(set), files); err != nil {
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
		if c.ctx.Err() != nil {
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

// check refuses options that do not go together.
func (f *simRunFlags) check(given map[string]bool, files []string) error {
	made := given["cluster"] || given["size"]
	switch {
	case !made && len(files) == 0:
		return errors.New("no scenario file is named; \"nodedrain sim run -h\" says how")
	case made && len(files) > 0:
		return fmt.Errorf("%s stands beside -cluster or -size: either files or one of these", files[0])
	case !made && given["seed"]:
		return errors.New("-seed is of -size or -cluster: files have their own")
	case given["seed"] && f.seed == 0:
		return errors.New("-seed is 0 and must be above 0: none draws nothing")
	case len(files) > 1 && (f.svg != "" || f.trace != ""):
		return errors.New("-svg and -trace are of one scenario")
	case f.svg == "-" && f.trace == "-":
		return errors.New("-svg and -trace cannot both go to standard output")
	case f.width < 0:
		return fmt.Errorf("-width is %d and must be above 0", f.width)
	}
	if err := notTogether(given, [][2]string{{"rewrite", "cluster"}, {"rewrite", "size"}, {"rewrite", "print"}, {"nodes", "drains"}, {"cluster", "size"}}); err != nil {
		return err
	}
	return f.clusterFlags.check(given)
}

// plays are the scenarios that the command line names.
func (c *simRunCommand) plays(f *simRunFlags, files []string) (plays []playing, err error) {
	switch {
	case f.dir != "":
		p, err := f.playing()
		return []playing{p}, err
	case f.sizeName != "":
		size, err := swarm.ParseSize(f.sizeName)
		if err != nil {
			return nil, fmt.Errorf("-size: %w", err)
		}
		s := swarm.Generate(f.seed, size)
		return []playing{{label: s.Name, replay: replaySeed(size, f.seed), scenario: s}}, nil
	}
	for _, file := range files {
		plays = append(plays, c.playing(file))
	}
	return plays, nil
}

// one plays a scenario and tells what came of it. It returns false if it failed, and why
// something could not be written, which is no fault of the scenario.
func (c *simRunCommand) one(f *simRunFlags, p playing, o outputs, alone bool) (ok bool, err error) {
	if p.err != nil {
		fmt.Fprintf(c.out, "FAIL  %s\n%s", p.label, indented(p.err.Error()))
		return false, nil
	}
	if f.print {
		return true, scenario.Print(c.out, p.scenario)
	}
	result, drawn, err := c.played(p, o)
	switch {
	case result == nil && c.ctx.Err() != nil:
		return false, nil // whoever interrupted it asks for nothing more
	case result == nil:
		fmt.Fprintf(c.out, "FAIL  %s\n%s", p.label, indented(err.Error()))
		c.replay(p)
		return false, nil
	}
	c.warn(p, result)
	if f.rewrite {
		err = errors.Join(err, c.rewritten(p, result))
	}
	return c.tell(f, p, result, drawn, alone), err
}

// tell tells what came of a scenario, and returns false if it failed.
func (c *simRunCommand) tell(f *simRunFlags, p playing, result *sim.Result, drawn *picture, alone bool) bool {
	wrong := wrong(f, p, result)
	if !f.quiet && (alone || len(wrong) > 0) {
		ascii := f.ascii || notUnicode(c.getenv)
		_ = drawn.recorder.Text(c.out, timeline.TextOptions{Columns: c.columns(f), ASCII: ascii}) // c.out remembers
		fmt.Fprintln(c.out)
	}
	if f.story {
		fmt.Fprintf(c.out, "%s\n\n%s\n\n", result.Story, result.End)
	}
	verdict := "ok  "
	if len(wrong) > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(c.out, "%s  %s  %d entries, log of %d, in %s, hash %016x\n", verdict, p.label, drawn.applied, result.Entries, result.Lasted.Round(time.Millisecond), result.Hash)
	for _, w := range wrong {
		fmt.Fprint(c.out, indented(w))
	}
	if len(wrong) > 0 {
		c.replay(p)
	}
	return len(wrong) == 0
}

func (c *simRunCommand) replay(p playing) {
	fmt.Fprintf(c.out, "      to play it again: %s\n", p.replay)
}

// indented sets lines under a verdict.
func indented(text string) string {
	text = strings.TrimRight(text, "\n")
	return "      " + strings.ReplaceAll(text, "\n", "\n      ") + "\n"
}

// columns is how wide the picture is.
func (c *simRunCommand) columns(f *simRunFlags) int {
	if f.width > 0 {
		return f.width
	}
	return terminal(c.out)
}

// outputs are the files that are written beside the report; each may be nil.
type outputs struct{ svg, trace *output }

// open opens the files that were asked for. With one of them being "-", which is standard
// output, the report goes to where errors go.
func (f *simRunFlags) open(c *simRunCommand) (o outputs, err error) {
	stdout := beneath(c.out)
	open := func(path string) *output {
		if path == "-" {
			c.out = c.errs
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

// abandon leaves the files that were not written as they were.
func (o outputs) abandon() {
	o.svg.abandon()
	o.trace.abandon()
}

// played plays a scenario and writes the files that were asked for. The result is nil if
// it could not be played; otherwise the error says what could not be written.
func (c *simRunCommand) played(p playing, o outputs) (result *sim.Result, drawn *picture, err error) {
	play := func(trace io.Writer) error {
		drawn = newPicture(p.scenario, p.replay, trace)
		if result, err = c.until(c.ctx)(p.scenario, sim.Options{Tell: true, Watch: drawn.watch}); err != nil {
			return err
		}
		return drawn.end(result)
	}
	if o.trace != nil {
		err = o.trace.write(play)
	} else {
		err = play(nil)
	}
	if result != nil && o.svg != nil {
		err = errors.Join(err, o.svg.write(drawn.recorder.SVG))
	}
	return result, drawn, err
}
