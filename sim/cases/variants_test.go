package cases_test

import (
	"fmt"
	"iter"
	"os"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// everyPoint is the environment variable that plays the variants of large cases at more points.
const everyPoint = "NODEDRAIN_EVERY_POINT"

// share is the number of points of each kind at which a case has variants, evenly spread. Zero
// means all.
type share struct{ steps, writes int }

// Shares of cases that do not have variants at all points.
var (
	// ofBrief is the share of a case with a brief story, with everyPoint.
	ofBrief = share{steps: 32, writes: 32}
	// ofLarge is its share without everyPoint. Each fate comes twice.
	ofLarge = share{steps: 12, writes: 12}
	// ofHuge is the share of a case with thousands of allocations, which takes seconds to play.
	// An election comes once, and so does a fate. A small case with the same story has variants
	// at all points.
	ofHuge = share{steps: 1, writes: 1}
)

// shareOf returns the share of a case.
func shareOf(c *scenario.Scenario) share {
	switch {
	case c.Run.Brief && os.Getenv(everyPoint) != "":
		return ofBrief
	case isHuge(c):
		return ofHuge
	case c.Run.Brief:
		return ofLarge
	}
	return share{}
}

// variants returns the variants of a case: with unneeded steps, with a store that has no feed, with
// a new leader at each step, and with each fate at each write of the drainer. The first two must
// not change the story. A large case has one variant for each point: kinds of elections and fates
// take turns.
func variants(c *scenario.Scenario, base result) iter.Seq[variant] {
	of, large := shareOf(c), c.Run.Brief
	return func(yield func(variant) bool) {
		if !yield(spurious()) || !yield(withoutFeed()) {
			return
		}
		for i, step := range points(base.steps, of.steps) {
			for turn, survive := range []bool{true, false} {
				if (!large || i%2 == turn) && !yield(elected(step, survive)) {
					return
				}
			}
		}
		for i, n := range points(base.writes, of.writes) {
			for turn, fate := range fates {
				if (!large || i%len(fates) == turn) && !yield(failing(n, fate)) {
					return
				}
			}
		}
	}
}

// fates are the outcomes of a write other than success.
var fates = []world.Fate{
	world.Slow, world.Reject, world.UnknownApplied, world.UnknownLate, world.UnknownLost, world.NoRoom,
}

// points returns numbers below n, evenly spread: all if most is zero, otherwise at most so many.
func points(n, most int) []int {
	count := n
	if most > 0 {
		count = min(n, most)
	}
	points := make([]int, count)
	for i := range points {
		points[i] = i * n / count
	}
	return points
}

// variant is a fault or another change in a play of a case. The zero value changes nothing.
type variant struct {
	name string
	// servers is the number of servers, each with a state of its own. Zero means the number of
	// the case.
	servers int
	// reader returns the reader that drainers use, or is nil for the store's own.
	reader func(*statestore.Store) drainer.StateReader
	// begin is called before the first step, or is nil.
	begin func(*world.World)
	// quiet is called at each quiet point, or is nil.
	quiet func(*world.World)
	// faults means that the story may differ. The end must not.
	faults bool
	// everything records every event in the story.
	everything bool
}

// spurious makes an unneeded step of the drainer at each quiet point.
func spurious() variant {
	woken := world.Epoch.AddDate(-1, 0, 0)
	return variant{name: "with unneeded steps", quiet: func(w *world.World) {
		if !w.Now().Equal(woken) {
			woken = w.Now()
			w.Servers.WakeDrainer()
		}
	}}
}

// withoutFeed has a store that does not report which rows changed.
func withoutFeed() variant {
	return variant{
		name:   "with a store that has no feed",
		reader: func(s *statestore.Store) drainer.StateReader { return feedless{s.Reader()} },
	}
}

// elected has an election before a step. If the old leader's writes in flight survive, a server that
// is behind leads next. If they are lost, the same server leads again.
func elected(step int, survive bool) variant {
	fate := map[bool]string{true: "survive", false: "are lost"}[survive]
	v := variant{
		name:   fmt.Sprintf("with an election before step %d, writes in flight %s", step, fate),
		faults: true,
		begin: func(w *world.World) {
			w.OnStep(func(n int) error {
				if n != step {
					return nil
				}
				return w.Servers.Elect(survive)
			})
		},
	}
	if survive {
		v.servers = 2
	}
	return v
}

// failing gives a fate to the nth write of the drainer.
func failing(n int, fate world.Fate) variant {
	return variant{
		name:   fmt.Sprintf("with the drainer's write %d %s", n, fate),
		faults: true,
		begin: func(w *world.World) {
			w.Log.OnWrite(func(write world.Write) world.Fate {
				if write.Source == world.FromDrainer && write.N == n {
					return fate
				}
				return world.Apply
			})
		},
	}
}

// feedless is a reader whose feed reports every change as [drainer.Changes].All.
type feedless struct{ drainer.StateReader }

func (f feedless) Subscribe(wake chan<- struct{}) drainer.Feed {
	return allFeed{f.StateReader.Subscribe(wake)}
}

type allFeed struct{ drainer.Feed }

func (f allFeed) Take() drainer.Changes {
	c := f.Feed.Take()
	if c.Empty() {
		return c
	}
	return drainer.Changes{All: true, Abandoned: c.Abandoned}
}
