package drainertest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// Case is one story. It is told once as it stands, and must go as Story says, to
// the letter. Then it is told again with everything that may go wrong, at every
// point at which it may: see [variants]. However that changes the story, it must
// come to the same end.
type Case struct {
	// Options are the world's; Setup what it begins with.
	Options world.Options
	Setup   func(*Stage)
	// Script is what happens, and when.
	Script []Scene
	// For is how long the story lasts. Zero is until nothing is left to be done.
	For time.Duration
	// Jumps says that clocks are set: then writes may be pending for as long as
	// nobody looks at the clock, and a step for nothing makes it sooner.
	Jumps bool
	// Faulty says that writes fail as the story stands: then they may be pending
	// at quiet points.
	Faulty bool
	// Large says that the story has too many steps to tell it once for each, and
	// too many nodes to name them.
	Large bool

	// Story is what is written down: what operators asked for, what the drainer
	// wrote, and the reasons at each quiet point at which they changed.
	Story string
	// End is how every telling ends: the drains' outcomes, what is left on their
	// nodes, and the healthy allocations of each group that drains concerned; in
	// the story's own telling also the lowest healthy count.
	End string
}

// Scene is something that happens at a time, counted from the beginning.
type Scene struct {
	At time.Duration
	Do func(*Stage)
}

// Stage is a world with a case on it.
type Stage struct {
	*world.World
	witness    *witness.Witness
	transcript *world.Transcript
	promises   promises
	// fates are what becomes of the drainer's next entries, whatever else goes
	// wrong.
	fates []world.Fate
	// err is the first thing that a scene could not do.
	err error
}

// OnWrite has f decide the fate of every write that the case does not.
func (s *Stage) OnWrite(f func(world.Write) world.Fate) {
	s.World.OnWrite(func(w world.Write) world.Fate {
		if w.Source != world.FromDrainer || w.Message == nil || len(s.fates) == 0 {
			return f(w)
		}
		fate := s.fates[0]
		s.fates = s.fates[1:]
		return fate
	})
}

// check notes what a scene could not do.
func (s *Stage) check(err error) {
	if s.err == nil {
		s.err = err
	}
}

// telling is how a case is told: what goes wrong.
type telling struct {
	name string
	// options changes the world's options; nil changes none.
	options func(*world.Options)
	// begin is called when the story begins; nil does nothing.
	begin func(*Stage)
	// quiet is called at each quiet point; nil does nothing.
	quiet func(*Stage) error
	// faults says that writes may be pending at quiet points.
	faults bool
	// everything is written down.
	everything bool
}

// told is what came of it.
type told struct {
	story, end, lowest string
	steps, writes      int
	err                error
}

// defaultFor bounds a story that should come to rest by itself.
const defaultFor = 4 * time.Hour

// tell tells a case once.
func (c Case) tell(how telling) (result told) {
	options := c.Options
	if how.options != nil {
		how.options(&options)
	}
	w, err := world.New(options)
	if err != nil {
		return told{err: err}
	}
	s := &Stage{World: w, witness: witness.New(witnessOptions(options.Drainer.Policy))}
	w.OnApply(func(a world.Applied) { s.witness.Observe(applied.Entry(a)) })
	c.Setup(s)
	if s.err != nil {
		return told{err: fmt.Errorf("setting up: %w", s.err)}
	}
	s.transcript = w.Record()
	s.transcript.Brief, s.transcript.Everything = c.Large, how.everything
	for _, scene := range c.Script {
		w.At(w.Now().Add(scene.At), func() error {
			scene.Do(s)
			return s.err
		})
	}
	s.OnWrite(func(world.Write) world.Fate { return world.Apply })
	w.OnQuiet(func() error {
		s.transcript.Reasons()
		if how.quiet != nil {
			if err := how.quiet(s); err != nil {
				return err
			}
		}
		if err := s.promises.check(w); err != nil && !c.Jumps {
			return err
		}
		return checkReasons(w, how.faults || c.Jumps || c.Faulty)
	})
	if how.begin != nil {
		how.begin(s)
	}
	limit := c.For
	if limit == 0 {
		limit = defaultFor
	}
	idle, err := w.Run(w.Now().Add(limit))
	if err == nil && !idle && c.For == 0 {
		err = fmt.Errorf("something is still to come after %s", limit)
	}
	result = told{
		story: s.transcript.String(), end: ending(w, c.Large),
		steps: w.Steps(), writes: w.Writes(world.FromDrainer), err: err,
	}
	result.lowest, err = judged(s.witness, w.State())
	result.err = errors.Join(result.err, err)
	if w.Servers() > 1 {
		result.err = errors.Join(result.err, w.SameStates())
	}
	return result
}

func witnessOptions(p drainer.Policy) witness.Options {
	margin := p.StopMargin
	if margin == 0 {
		margin = drainer.DefaultStopMargin
	}
	return witness.Options{
		StopMargin:       margin,
		PluginsAfterStop: p.PluginsAfterDeadline == drainer.AfterStop,
		AskedIsComplete:  p.Completion == drainer.Asked,
	}
}

// judged returns the lowest healthy counts the witness saw, and what it found.
func judged(w *witness.Witness, state witness.World) (lowest string, err error) {
	w.Audit(state)
	report := w.Report()
	var errs []error
	for _, f := range report.Findings {
		errs = append(errs, errors.New(f.String()))
	}
	var lines []string
	for _, g := range report.Groups {
		job := state.Job(g.Group.Job)
		if g.Lowest.Index == 0 || job == nil || job.Type != cluster.JobService {
			continue // it has no limit
		}
		line := fmt.Sprintf("%s lowest %d of %d, limit %d", label(g.Group), g.Lowest.Healthy, g.Lowest.Count, g.Lowest.Limit)
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), errors.Join(errs...)
}

// ending is the final facts: how each drain ended, what is left on the nodes that
// were drained, and how the jobs stand. Facts of many are counted.
func ending(w *world.World, brief bool) string {
	state := w.State()
	var lines []string
	drains := slices.Collect(state.Drains())
	for n := range state.DrainingNodes() {
		drains = append(drains, n.Drain)
	}
	slices.SortFunc(drains, func(a, b *cluster.Drain) int { return strings.Compare(string(a.ID), string(b.ID)) })
	for _, d := range drains {
		line := fmt.Sprintf("%s %s", d.NodeID, outcome(d))
		if left := leftOn(state, d); left != "" {
			line += ", left: " + left
		}
		if brief {
			line = strings.TrimPrefix(line, string(d.NodeID)+" ")
		}
		lines = append(lines, line)
	}
	for j := range state.Jobs() {
		for _, g := range j.TaskGroups {
			line := standing(state, cluster.GroupKey{Job: j.Key(), Name: g.Name}, g.Count)
			if brief {
				line = string(j.Type) + strings.TrimPrefix(line, label(cluster.GroupKey{Job: j.Key(), Name: g.Name}))
			}
			lines = append(lines, line)
		}
	}
	if brief {
		lines = tallied(lines)
	}
	return strings.Join(lines, "\n")
}

// tallied counts equal lines, in the order in which they first come.
func tallied(lines []string) []string {
	counts := map[string]int{}
	var first []string
	for _, l := range lines {
		if counts[l] == 0 {
			first = append(first, l)
		}
		counts[l]++
	}
	for i, l := range first {
		first[i] = fmt.Sprintf("%d × %s", counts[l], l)
	}
	return first
}

func outcome(d *cluster.Drain) string {
	text := string(d.Outcome)
	if d.Outcome == cluster.OutcomeNone {
		text = "drains"
	}
	if d.StillStopping > 0 {
		text += fmt.Sprintf(", %d still stopping", d.StillStopping)
	}
	if d.PurgedRunning > 0 {
		text += fmt.Sprintf(", %d purged while running", d.PurgedRunning)
	}
	return text
}

// leftOn names what was on the node while it drained and has not ended.
func leftOn(state *statestore.Snapshot, d *cluster.Drain) string {
	var left []string
	for a := range state.LiveAllocsByNode(d.NodeID) {
		if d.EndIndex == 0 || a.CreateIndex < d.EndIndex {
			left = append(left, a.Name)
		}
	}
	slices.Sort(left)
	return strings.Join(left, " ")
}

// standing is how many of a group are as its owner wants them.
func standing(state *statestore.Snapshot, key cluster.GroupKey, count int) string {
	running, healthy := 0, 0
	for a := range state.AllocsByJob(key.Job) {
		if a.TaskGroup != key.Name || a.DesiredStatus != "run" || a.ClientStatus != "running" {
			continue
		}
		running++
		if d := a.DeploymentStatus; d != nil && d.Healthy != nil && *d.Healthy {
			healthy++
		}
	}
	return fmt.Sprintf("%s runs %d of %d, %d healthy", label(key), running, count, healthy)
}

func label(key cluster.GroupKey) string {
	return strings.TrimPrefix(strings.TrimSuffix(key.String(), string("."+key.Job.ID)), "default/")
}

// text is a story as it is written in a test: without the indentation.
func text(story string) string {
	lines := strings.Split(strings.TrimSpace(story), "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "\t")
	}
	return strings.Join(lines, "\n")
}

// run tells the case as it stands, and then every variant of it.
func run(t *testing.T, c Case) {
	t.Helper()
	t.Parallel()
	base := c.tell(telling{})
	must.NoError(t, base.err, must.Sprint(base.story))
	must.Eq(t, text(c.Story), base.story, must.Sprint("\n"+base.story+"\n"))
	end := strings.TrimSpace(base.end + "\n" + base.lowest)
	must.Eq(t, text(c.End), end, must.Sprint("\n"+end))
	if !c.Large {
		must.LessEq(t, maxSmallSteps, base.steps, must.Sprint("a small story must be told with few steps"))
	}
	all := slices.Collect(variants(base, c.Large))
	if !c.Large {
		c.retellAll(t, all, base)
		return
	}
	for i, half := range [...][]telling{all[:len(all)/2], all[len(all)/2:]} {
		t.Run(fmt.Sprintf("told again, half %d", i+1), func(t *testing.T) {
			t.Parallel()
			c.retellAll(t, half, base)
		})
	}
}

// retellAll tells the case otherwise in many ways.
func (c Case) retellAll(t *testing.T, ways []telling, base told) {
	failures := 0
	for _, how := range ways {
		err := c.retell(how, base)
		if err == nil {
			continue
		}
		how.everything = true
		t.Errorf("%s: %v\n%s", how.name, err, c.tell(how).story)
		if failures++; failures == 2 {
			t.Fatal("and so on")
		}
	}
}

// retell tells the case otherwise and says what is wrong with how it went.
func (c Case) retell(how telling, base told) error {
	got := c.tell(how)
	switch {
	case got.err != nil:
		return got.err
	case got.end != base.end:
		return fmt.Errorf("it ended otherwise:\n%s", got.end)
	case !how.faults && !c.Jumps && got.story != base.story:
		return errors.New("it went otherwise")
	}
	return nil
}
