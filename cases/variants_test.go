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

// everyPoint is the variable that has every story told again as often as can be, and
// not only as often as there is time for whenever something has changed.
const everyPoint = "NODEDRAIN_EVERY_POINT"

// share is at how many points of each kind a story is told again, evenly spread. Zero
// is at all.
type share struct{ steps, writes int }

// Shares of stories that are not told again at all their points.
var (
	// ofLarge is of a story that is told briefly.
	ofLarge = share{steps: 32, writes: 32}
	// ofHuge is of one with thousands of allocations, each telling of which takes
	// seconds: both kinds of election come once, and so do two fates. The same story in
	// small is told at all points.
	ofHuge = share{steps: 2, writes: 2}
)

// shareOf is at how many points a case is told again.
func shareOf(c *scenario.Scenario) share {
	switch {
	case isHuge(c) && os.Getenv(everyPoint) == "":
		return ofHuge
	case c.Run.Brief:
		return ofLarge
	}
	return share{}
}

// variants are the ways in which a case is told again, once it has been told as
// it stands: with steps for nothing, with a store that has no feed, with another
// leader at each step, and with each fate at each write of the drainer. The first
// two must change nothing at all. Of a large story each point is told once, with
// what goes wrong there by turns.
func variants(c *scenario.Scenario, base told) iter.Seq[telling] {
	of, large := shareOf(c), c.Run.Brief
	return func(yield func(telling) bool) {
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

// fates are what may become of a write, other than what should.
var fates = []world.Fate{
	world.Slow, world.Reject, world.UnknownApplied, world.UnknownLate, world.UnknownLost, world.NoRoom,
}

// points are numbers below n: all of them if most is zero, or so many at most, evenly
// spread.
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

// telling is how a case is told: what goes wrong. The zero value is as it stands.
type telling struct {
	name string
	// servers is how many servers there are, each with a state of its own; zero is as
	// many as the case has.
	servers int
	// reader is how drainers read a store; nil is the store's own.
	reader func(*statestore.Store) drainer.StateReader
	// begin is called before anything happens; nil does nothing.
	begin func(*world.World)
	// quiet is called at each quiet point; nil does nothing.
	quiet func(*world.World)
	// faults says that it may go otherwise, as long as it comes to the same end.
	faults bool
	// everything is written down.
	everything bool
}

// spurious steps the drainer for nothing at each quiet point.
func spurious() telling {
	woken := world.Epoch.AddDate(-1, 0, 0)
	return telling{name: "with steps for nothing", quiet: func(w *world.World) {
		if !w.Now().Equal(woken) {
			woken = w.Now()
			w.Servers.WakeDrainer()
		}
	}}
}

// withoutFeed has a store that cannot say what changed.
func withoutFeed() telling {
	return telling{
		name:   "with a store that has no feed",
		reader: func(s *statestore.Store) drainer.StateReader { return feedless{s.Reader()} },
	}
}

// elected has an election before a step. What the old leader had in flight
// survives, and the next one is a server that lags behind; or it is lost, and the
// same server leads again.
func elected(step int, survive bool) telling {
	what := map[bool]string{true: "survives", false: "is lost"}[survive]
	how := telling{
		name:   fmt.Sprintf("with an election before step %d, where what was in flight %s", step, what),
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
		how.servers = 2
	}
	return how
}

// failing gives a fate to the nth write of the drainer.
func failing(n int, fate world.Fate) telling {
	return telling{
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

// feedless is a store whose feed says at every change that anything may have
// changed.
type feedless struct{ drainer.StateReader }

func (f feedless) Subscribe(wake chan<- struct{}) drainer.Feed {
	return allFeed{f.StateReader.Subscribe(wake)}
}

type allFeed struct{ drainer.Feed }

func (f allFeed) Take() drainer.Changes {
	told := f.Feed.Take()
	if told.Empty() {
		return told
	}
	return drainer.Changes{All: true, Abandoned: told.Abandoned}
}
