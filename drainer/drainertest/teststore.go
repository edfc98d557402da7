package drainertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Store is a state store for [TestStore]: the drainer's StateReader, and a method that writes rows.
//
// A store that a restored snapshot can replace also has a method Abandon(), after which every feed,
// also one that is opened later, has woken its subscriber and sets Changes.Abandoned at each Take.
//
// A store that can pause all drains also has a method CommitPause(index uint64, all *cluster.DrainPause) error. It makes
// one commit, after which all is the pause of all drains, or there is none. It may write rows of draining nodes.
type Store interface {
	drainer.StateReader
	// Commit makes one commit, which is the entry of a raft index: all of the rows or none. After
	// the call the rows belong to the store.
	Commit(index uint64, rows Rows) error
}

// Rows are the changes of one commit. A written row replaces the row with its id. A deleted row
// exists before the commit.
type Rows struct {
	Nodes  []*cluster.Node
	Jobs   []*cluster.Job
	Allocs []*cluster.Allocation
	Evals  []*cluster.Evaluation

	DeletedNodes  []cluster.NodeID
	DeletedJobs   []cluster.JobKey
	DeletedAllocs []cluster.AllocID
	DeletedEvals  []cluster.EvalID
}

// The number of worlds of TestStore, and of commits in each.
const (
	testWorlds  = 20
	testCommits = 60
)

// TestStore tests the contract of [drainer.StateReader]. Views answer as [rules.View] describes, in that
// order, and never change. Feeds name at least the changes that [drainer.Feed] requires, and wake
// their subscribers. The next snapshot of a subscriber shows the change that woke it. TestStore
// compares the store with a model that reads everything for every answer. The random commits are
// the same each time.
//
// The test sets and compares only the fields in [DecisionFields]. Times have microseconds, and are
// compared as instants. An error names the answer, the row and the field.
//
// newStore makes an empty store. A call that takes longer than [CallLimit] is an error, such
// as a commit whose send to wake blocks. Run the test under the race detector too.
//
//	if err := drainertest.TestStore(func() drainertest.Store { return newMine() }); err != nil {
//		t.Fatal(err)
//	}
func TestStore(newStore func() Store) error { return testStore(newStore, CallLimit) }

func testStore(newStore func() Store, callLimit time.Duration) error {
	w := &watch{callLimit: callLimit}
	watched := func() Store { return watchedStore{newStore(), w} }
	return w.run(func() error {
		for seed := range uint64(testWorlds) {
			if err := testWorld(watched(), seed); err != nil {
				return fmt.Errorf("world %d: %w", seed, err)
			}
		}
		if err := testClosing(watched()); err != nil {
			return err
		}
		if err := testAbandoning(newStore(), w); err != nil {
			return err
		}
		if err := testPause(newStore(), w); err != nil {
			return err
		}
		if err := testVisible(watched()); err != nil {
			return err
		}
		return testSharing(watched())
	})
}

// testWorld writes one random history to a store and compares all answers.
func testWorld(s Store, seed uint64) error {
	g := newGenerator(seed)
	feeds := []*testedFeed{newTestedFeed(s), newTestedFeed(s)}
	type old struct {
		view  rules.View
		model *model
	}
	var olds []old
	for i := range testCommits {
		before := g.model
		rows := g.rows()
		for _, f := range feeds {
			f.change(g.random)
		}
		if err := s.Commit(g.model.index, rows); err != nil {
			return fmt.Errorf("commit %d: %w", i, err)
		}
		view := s.Snapshot()
		if err := g.model.compare(view); err != nil {
			return fmt.Errorf("after commit %d: %w", i, err)
		}
		for _, f := range feeds {
			if err := f.check(before, g.model, rows); err != nil {
				return fmt.Errorf("after commit %d: %w", i, err)
			}
		}
		olds = append(olds, old{view, g.model})
	}
	for i, o := range olds {
		if err := o.model.compare(o.view); err != nil {
			return fmt.Errorf("the view taken after commit %d, at the end: %w", i, err)
		}
	}
	return nil
}

// testedFeed is a feed, and the changes that it must name.
type testedFeed struct {
	wake    chan struct{}
	feed    drainer.Feed
	follows map[cluster.JobKey]int
	// due are the changes that the feed must name in a later Take.
	due drainer.Changes
}

func newTestedFeed(s Store) *testedFeed {
	f := &testedFeed{wake: make(chan struct{}, 1), follows: map[cluster.JobKey]int{}}
	f.feed = s.Subscribe(f.wake)
	return f
}

// change follows or unfollows a job, or does nothing.
func (f *testedFeed) change(random *rand.Rand) {
	key := pick(random, jobKeys)
	switch random.IntN(4) {
	case 0, 1:
		f.feed.Follow(key)
		f.follows[key]++
	case 2:
		if f.follows[key] > 0 {
			f.feed.Unfollow(key)
			f.follows[key]--
		}
	}
}

// check takes from the feed, but not after every commit, and returns an error with the first change
// that the feed did not name.
func (f *testedFeed) check(before, after *model, rows Rows) error {
	due := mustName(before, after, rows, f.follows)
	f.due.Nodes = append(f.due.Nodes, due.Nodes...)
	f.due.Hosts = append(f.due.Hosts, due.Hosts...)
	f.due.Groups = append(f.due.Groups, due.Groups...)
	f.due.Jobs = append(f.due.Jobs, due.Jobs...)
	if !due.Empty() && len(f.wake) == 0 {
		return errors.New("a feed with changes has not woken its subscriber")
	}
	if after.index%3 == 0 {
		return nil // the feed gathers more
	}
	select {
	case <-f.wake:
	default:
	}
	reported := f.feed.Take()
	due, f.due = f.due, drainer.Changes{}
	if reported.Abandoned {
		return errors.New("a feed reports that its store was abandoned, but it was not")
	}
	if reported.All {
		return nil
	}
	if missing := unreported("node", due.Nodes, reported.Nodes); missing != nil {
		return missing
	}
	if missing := unreported("host", due.Hosts, slices.Concat(reported.Hosts, reported.Nodes)); missing != nil {
		return missing
	}
	if missing := unreported("group", due.Groups, reported.Groups); missing != nil {
		return missing
	}
	return unreported("job", due.Jobs, reported.Jobs)
}

func unreported[T comparable](kind string, due, reported []T) error {
	for _, item := range due {
		if !slices.Contains(reported, item) {
			return fmt.Errorf("a feed has not reported %s %v, which changed", kind, item)
		}
	}
	return nil
}

// testClosing tests that a closed feed is silent and does not disturb another.
func testClosing(s Store) error {
	g := newGenerator(0)
	closed, open := newTestedFeed(s), newTestedFeed(s)
	closed.feed.Close()
	select { // an earlier wake-up does not count
	case <-closed.wake:
	default:
	}
	n := &cluster.Node{ID: "n1", Status: cluster.NodeReady, Drain: &cluster.Drain{ID: "d1", NodeID: "n1"}}
	if err := s.Commit(g.model.index+1, Rows{Nodes: []*cluster.Node{n}}); err != nil {
		return fmt.Errorf("closing a feed: %w", err)
	}
	switch {
	case len(closed.wake) > 0:
		return errors.New("a closed feed has woken its subscriber")
	case len(open.wake) == 0:
		return errors.New("after a feed was closed, another no longer wakes its subscriber")
	}
	return nil
}

// testAbandoning tests that the feed of every subscriber reports that the store was replaced.
func testAbandoning(abandonable Store, w *watch) error {
	replaced, can := abandonable.(interface{ Abandon() })
	if !can {
		return nil
	}
	s := watchedStore{abandonable, w}
	early := newTestedFeed(s)
	replaced.Abandon()
	late := newTestedFeed(s)
	switch {
	case len(early.wake) == 0:
		return errors.New("a store was abandoned, but its feed has not woken its subscriber")
	case len(late.wake) == 0:
		return errors.New("a store was abandoned, but Subscribe has not woken a later subscriber")
	}
	for _, f := range []*testedFeed{early, late} {
		for range 2 {
			if !f.feed.Take().Abandoned {
				return errors.New("a store was abandoned, but its feed does not report this at each Take")
			}
		}
	}
	return nil
}

// testSharing uses a store from several goroutines at once, for the race detector.
func testSharing(s Store) error {
	g := newGenerator(0)
	f := newTestedFeed(s)
	done := make(chan struct{})
	var users sync.WaitGroup
	for range 3 {
		users.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-f.wake:
				default:
				}
				for n := range s.Snapshot().DrainingNodes() {
					_ = n.ID
				}
				f.feed.Follow(jobKeys[0])
				f.feed.Take()
				f.feed.Unfollow(jobKeys[0])
			}
		})
	}
	var err error
	for range testCommits {
		rows := g.rows()
		if err = s.Commit(g.model.index, rows); err != nil {
			break
		}
	}
	close(done)
	users.Wait()
	f.feed.Close()
	return err
}
