package drainertest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
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
	s := &Stage{World: w, witness: witness.New(sim.WitnessOptions(options.Drainer.Policy))}
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
		story: s.transcript.String(), end: sim.Ending(w, c.Large),
		steps: w.Steps(), writes: w.Writes(world.FromDrainer), err: err,
	}
	result.lowest, err = sim.Judged(s.witness, w.State())
	result.err = errors.Join(result.err, err)
	if w.Servers() > 1 {
		result.err = errors.Join(result.err, w.SameStates())
	}
	return result
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
