package statestore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// subscriber is a feed and its wake channel.
type subscriber struct {
	t    must.T
	wake chan struct{}
	feed drainer.Feed
}

func subscribe(t must.T, s *statestore.Store) *subscriber {
	sub := &subscriber{t: t, wake: make(chan struct{}, 1)}
	sub.feed = s.Reader().Subscribe(sub.wake)
	return sub
}

// changes returns the feed's changes, and checks that it woke its subscriber if and only if there
// are any.
func (s *subscriber) changes() string {
	s.t.Helper()
	woken := false
	select {
	case <-s.wake:
		woken = true
	default:
	}
	c := s.feed.Take()
	must.Eq(s.t, woken, !c.Empty(), must.Sprint("woken if and only if there are changes"))
	slices.Sort(c.Nodes)
	slices.Sort(c.Hosts)
	text := fmt.Sprint(c.Nodes, sortedKeys(c.Groups), sortedKeys(c.Jobs))
	if len(c.Hosts) > 0 {
		text += fmt.Sprint(" on ", c.Hosts)
	}
	if c.All {
		text += " all"
	}
	if c.Abandoned {
		text += " abandoned"
	}
	return text
}

// sortedKeys returns the keys in order.
func sortedKeys[K interface{ Compare(K) int }](keys []K) []K {
	slices.SortFunc(keys, K.Compare)
	return keys
}

const nothing = "[] [] []"

// A cluster in which n1 drains and has w1 and d1, and n2 does not drain and has w2 and d2. The
// subscriber follows web.
func feedWorld(t must.T) (*world, *subscriber) {
	w := newWorld(t)
	w.nodes("n1", "n2", "n3")
	web, db := w.job(serviceJob("web", 9)), w.job(serviceJob("db", 9))
	w.place(web, "n1", nil, "w1")
	w.place(db, "n1", nil, "d1")
	w.place(web, "n2", nil, "w2")
	w.place(db, "n2", nil, "d2")
	w.drain("n1", "drain", cluster.DrainSpec{})
	s := subscribe(t, w.store)
	s.feed.Follow(web.Key())
	return w, s
}

func TestFeed(t *testing.T) {
	t.Parallel()
	web, db := serviceJob("web", 9), serviceJob("db", 9)
	eval := func(w *world, j cluster.JobID) {
		w.write(func(x *statestore.Txn) {
			must.NoError(t, x.UpsertEvals([]*cluster.Evaluation{{ID: "e", Namespace: "default", JobID: j}}))
		})
	}
	for _, c := range []struct {
		name string
		do   func(*world)
		want string
	}{
		{"an entry that changes nothing", func(w *world) { w.write(func(*statestore.Txn) {}) }, nothing},
		{"a heartbeat", func(w *world) { w.status("n2", cluster.NodeReady) }, nothing},
		{"a heartbeat of a draining node", func(w *world) { w.status("n1", cluster.NodeReady) }, "[n1] [] []"},
		{"a drain begins", func(w *world) { w.drain("n3", "d3", cluster.DrainSpec{}) }, "[n3] [] []"},
		{"a drain is updated", func(w *world) { w.drain("n1", "", cluster.DrainSpec{Deadline: 1}) }, "[n1] [] []"},
		{"a drain is cancelled", func(w *world) { w.request(cluster.DrainUpdate{Node: "n1"}) }, "[n1] [] []"},
		{"a drain completes", func(w *world) { w.complete("n1", cluster.OutcomeComplete, 0) }, "[n1] [] []"},
		{"a draining node is deleted", func(w *world) {
			w.write(func(x *statestore.Txn) { x.DeleteNodes([]cluster.NodeID{"n1"}, w.now) })
		}, "[n1] [default/web.g] []"},
		{"a node is deleted", func(w *world) {
			w.write(func(x *statestore.Txn) { x.DeleteNodes([]cluster.NodeID{"n2"}, w.now) })
		}, "[] [default/web.g] []"},
		{"a node without allocations of a followed job is deleted", func(w *world) {
			w.write(func(x *statestore.Txn) { x.DeleteNodes([]cluster.NodeID{"n3"}, w.now) })
		}, nothing},
		{"a node registers under allocations", func(w *world) {
			w.place(w.snap().Job(web.Key()), "n4", nil, "w4")
			w.place(w.snap().Job(db.Key()), "n4", nil, "d4")
			w.nodes("n4")
		}, "[] [default/web.g] []"},
		{"a node goes down", func(w *world) { w.status("n2", cluster.NodeDown) }, "[] [default/web.g] []"},
		{"a node stays reachable with another status", func(w *world) { w.status("n2", cluster.NodeInitializing) }, nothing},
		{"a node goes down with many groups", func(w *world) {
			for i := range 20 {
				w.place(w.job(serviceJob(fmt.Sprint("other", i), 1)), "n2", nil, fmt.Sprint("o", i))
			}
			w.status("n2", cluster.NodeDown)
		}, "[] [default/web.g] []"},
		{"a node goes down, and then one without followed allocations", func(w *world) {
			w.place(w.snap().Job(db.Key()), "n3", nil, "d3")
			w.status("n2", cluster.NodeDown)
			w.status("n3", cluster.NodeDown)
		}, "[] [default/web.g] []"},
		{"a node that was down is deleted", func(w *world) {
			w.write(func(x *statestore.Txn) {
				must.NoError(t, x.UpsertNode(&cluster.Node{ID: "n4", Status: cluster.NodeDown}, w.now))
			})
			w.place(w.snap().Job(web.Key()), "n4", nil, "w4")
			w.write(func(x *statestore.Txn) { x.DeleteNodes([]cluster.NodeID{"n4"}, w.now) })
		}, "[] [default/web.g] []"},
		{"a node is made ineligible", func(w *world) {
			w.write(func(x *statestore.Txn) { must.NoError(t, x.UpdateNodeEligibility("n2", cluster.NodeIneligible, w.now)) })
		}, nothing},
		{"a report from a draining node", func(w *world) { w.report(cluster.ClientFailed, "d1") }, "[] [default/db.g] [] on [n1]"},
		{"a report on a followed job", func(w *world) { w.report(cluster.ClientFailed, "w2") }, "[] [default/web.g] []"},
		{"a report on another job", func(w *world) { w.report(cluster.ClientFailed, "d2") }, nothing},
		{"a report that changes nothing", func(w *world) { w.report(cluster.ClientRunning, "w1") }, nothing},
		{"a mark", func(w *world) { w.mark(cluster.MarkPaced, "d1") }, "[n1] [default/db.g] [] on [n1]"},
		{"a placement of a followed job", func(w *world) {
			w.place(w.snap().Job(web.Key()), "n3", nil, "w3")
		}, "[] [default/web.g] []"},
		{"a placement on a draining node", func(w *world) {
			w.place(w.snap().Job(db.Key()), "n1", nil, "d3")
		}, "[] [default/db.g] [] on [n1]"},
		{"an evaluation of a followed job", func(w *world) { eval(w, "web") }, "[] [] [default/web]"},
		{"an evaluation of another job", func(w *world) { eval(w, "db") }, nothing},
		{"a followed job's new version", func(w *world) { w.job(web) }, "[] [] [default/web]"},
		{"another job's new version", func(w *world) { w.job(db) }, nothing},
		{"a purge", func(w *world) {
			w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(web.Key(), true)) })
		}, "[n1] [default/web.g] [default/web] on [n1]"},
		{"a purge of another job", func(w *world) {
			w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(db.Key(), true)) })
		}, "[n1] [default/db.g] [] on [n1]"},
		{"two entries", func(w *world) { w.report(cluster.ClientPending, "w2"); w.drain("n3", "d3", cluster.DrainSpec{}) }, "[n3] [default/web.g] []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, s := feedWorld(t)
			c.do(w)
			must.Eq(t, c.want, s.changes())
			must.Eq(t, nothing, s.changes(), must.Sprint("a change is reported once"))
		})
	}
}

func TestFeed_endedAllocationsDoNotConcernTheirNode(t *testing.T) {
	t.Parallel()
	w, s := feedWorld(t)
	w.report(cluster.ClientFailed, "w2")
	s.changes()
	w.status("n2", cluster.NodeDown)
	must.Eq(t, nothing, s.changes())
}

func TestFeed_ignoresAbortedTransactions(t *testing.T) {
	t.Parallel()
	w, s := feedWorld(t)
	x := w.store.Begin(99)
	must.NoError(t, x.UpdateNodeStatus("n1", cluster.NodeDown, w.now))
	x.Abort()
	must.Eq(t, nothing, s.changes())
}

func TestFollowsAreCounted(t *testing.T) {
	t.Parallel()
	w, s := feedWorld(t)
	web := serviceJob("web", 9).Key()
	s.feed.Follow(web)
	s.feed.Unfollow(web)
	w.report(cluster.ClientPending, "w2")
	must.Eq(t, "[] [default/web.g] []", s.changes())
	s.feed.Unfollow(web)
	s.feed.Unfollow(web) // an extra Unfollow does nothing
	w.report(cluster.ClientRunning, "w2")
	must.Eq(t, nothing, s.changes())
	s.feed.Follow(web)
	w.report(cluster.ClientPending, "w2")
	must.Eq(t, "[] [default/web.g] []", s.changes())
}

func TestFeeds_areIndependent(t *testing.T) {
	t.Parallel()
	w, s := feedWorld(t)
	other := subscribe(t, w.store)
	w.report(cluster.ClientPending, "w2")
	must.Eq(t, nothing, other.changes())
	w.report(cluster.ClientPending, "w1")
	must.Eq(t, "[] [default/web.g] [] on [n1]", other.changes())
	must.Eq(t, "[] [default/web.g] [] on [n1]", s.changes())
}

func TestAClosedFeedReportsNothing(t *testing.T) {
	t.Parallel()
	w, s := feedWorld(t)
	s.feed.Close()
	s.feed.Close()
	w.status("n1", cluster.NodeDown)
	must.Eq(t, nothing, s.changes())
	w.store.Abandon()
	statestore.AddNodes(s.feed, "n1") // a commit that runs at the same time
	must.Eq(t, 0, len(s.wake))
}

func TestFeed_reportsAllAfterTooManyKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := subscribe(t, w.store)
	w.write(func(x *statestore.Txn) {
		for i := range statestore.MaxFeedKeys + 1 {
			id := cluster.NodeID(fmt.Sprint("n", i))
			must.NoError(t, x.UpsertNode(&cluster.Node{ID: id}, w.now))
			_, err := x.UpdateNodeDrain(cluster.DrainUpdate{Node: id, Drain: cluster.DrainID(id), Spec: &cluster.DrainSpec{}})
			must.NoError(t, err)
		}
	})
	must.Eq(t, "[] [] [] all", s.changes())
	w.status("n1", cluster.NodeDown)
	must.Eq(t, "[n1] [] []", s.changes())
}

func TestAnAbandonedStoreIsReported(t *testing.T) {
	t.Parallel()
	w, s := feedWorld(t)
	w.status("n1", cluster.NodeDown)
	w.store.Abandon()
	w.store.Abandon()
	<-s.wake
	c := s.feed.Take()
	must.True(t, c.Abandoned)
	must.Eq(t, []cluster.NodeID{"n1"}, c.Nodes)
	must.True(t, s.feed.Take().Abandoned, must.Sprint("at every Take"))

	late := subscribe(t, w.store)
	must.Eq(t, nothing+" abandoned", late.changes())
	must.NotNil(t, w.snap().Node("n1"), must.Sprint("snapshots stay readable"))
	<-w.store.Abandoned()
}

// Goroutines change the followed jobs while another writes to the store. The subscriber reads only
// its feed, and at the end it has received every change.
func TestFollowThenSnapshotMissesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	const jobs, rounds = 8, 60
	for i := range jobs {
		j := w.job(serviceJob(fmt.Sprint("job", i), 1))
		w.place(j, "n1", nil, fmt.Sprint("a", i))
	}
	var wg sync.WaitGroup
	for i := range jobs {
		wg.Go(func() {
			key := cluster.JobKey{Namespace: "default", ID: cluster.JobID(fmt.Sprint("job", i))}
			id := cluster.AllocID(fmt.Sprint("a", i))
			s := subscribe(t, w.store)
			defer s.feed.Close()
			s.feed.Follow(key)
			last := w.snap().Alloc(id).ClientDescription
			for last != fmt.Sprint(rounds) {
				<-s.wake
				if c := s.feed.Take(); !c.Empty() {
					must.Eq(t, []cluster.GroupKey{{Job: key, Name: "g"}}, c.Groups)
					last = w.snap().Alloc(id).ClientDescription
				}
			}
		})
	}
	for round := range rounds {
		var reports []cluster.AllocReport
		for i := range jobs {
			reports = append(reports, cluster.AllocReport{
				Alloc: cluster.AllocID(fmt.Sprint("a", i)), Node: "n1", ClientStatus: cluster.ClientRunning, ClientDescription: fmt.Sprint(round + 1),
			})
		}
		w.write(func(x *statestore.Txn) { x.UpdateAllocsFromClient(reports, w.now) })
	}
	wg.Wait()
}
