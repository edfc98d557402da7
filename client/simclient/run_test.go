package simclient_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var (
	_ simclient.State = (*statestore.Snapshot)(nil)
	_ simclient.State = (*statestore.Txn)(nil)
)

// servers are a state store behind a slow log.
type servers struct {
	t     *testing.T
	store *statestore.Store
	fleet *simclient.Fleet
	// latency is how long an entry takes.
	latency time.Duration
	// lost counts the batches to lose.
	lost int

	mu      sync.Mutex
	index   uint64         // guarded by mu
	replies sync.WaitGroup // of batches in flight
}

// newServers returns servers and the fleet that reports to them.
func newServers(t *testing.T, edit ...func(*simclient.Options)) *servers {
	s := &servers{t: t, store: statestore.New(), latency: 5 * time.Millisecond}
	o := simclient.Options{Snapshot: func() simclient.State { return s.store.Snapshot() }, Applier: s}
	for _, f := range edit {
		f(&o)
	}
	fleet, err := simclient.New(o)
	must.NoError(t, err)
	s.fleet = fleet
	return s
}

func (s *servers) write(entry func(*statestore.Txn) error, nodes ...cluster.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index++
	txn := s.store.Begin(s.index)
	defer txn.Abort()
	must.NoError(s.t, entry(txn))
	txn.Commit()
	s.fleet.Changed(nodes...)
}

func (s *servers) node(id cluster.NodeID, status cluster.NodeStatus) {
	s.write(func(x *statestore.Txn) error {
		return x.UpsertNode(&cluster.Node{ID: id, Name: string(id), Status: status}, time.Now())
	}, id)
}

// plan applies a plan of stops and placements.
func (s *servers) plan(stops []cluster.AllocID, places ...*cluster.Allocation) {
	p := &cluster.Plan{At: time.Now(), Places: places}
	var nodes []cluster.NodeID
	for _, id := range stops {
		p.Stops = append(p.Stops, cluster.PlanStop{Alloc: id, Description: cluster.DescNotNeeded})
		nodes = append(nodes, s.alloc(id).NodeID)
	}
	for _, a := range places {
		nodes = append(nodes, a.NodeID)
	}
	s.write(func(x *statestore.Txn) error {
		dropped, err := x.ApplyPlan(p)
		must.SliceEmpty(s.t, dropped)
		return err
	}, nodes...)
}

func (s *servers) alloc(id cluster.AllocID) *cluster.Allocation {
	a := s.store.Snapshot().Alloc(id)
	must.NotNil(s.t, a)
	return a
}

// Report implements [simclient.Applier].
func (s *servers) Report(reports []cluster.AllocReport, reply func(bool)) bool {
	s.replies.Go(func() {
		<-time.After(s.latency)
		if s.lost > 0 {
			s.lost--
			reply(false)
			return
		}
		s.write(func(x *statestore.Txn) error {
			x.UpdateAllocsFromClient(reports)
			return nil
		})
		reply(true)
	})
	return true
}

// run runs the fleet until the returned function is called, which waits for its end.
func (s *servers) run() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.fleet.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
		s.replies.Wait()
	}
}

// alloc returns a new allocation of the job's group "g".
func alloc(j *cluster.Job, id cluster.AllocID, on cluster.NodeID) *cluster.Allocation {
	return &cluster.Allocation{
		ID: id, Namespace: j.Namespace, JobID: j.ID, Job: j, TaskGroup: "g", NodeID: on,
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, CreateTime: time.Now(),
	}
}

// The fleet runs over the real store, behind a log that loses the first batches. Allocations
// run and become healthy, a replacement inherits data, and a stopped allocation ends.
func TestFleet_Run_statestore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServers(t, func(o *simclient.Options) { o.Seed = 1 })
		s.lost = 3
		stop := s.run()
		defer stop()

		j := withData(service())
		s.write(func(x *statestore.Txn) error { return x.UpsertJob(j) })
		for n := range 10 {
			id := cluster.NodeID(fmt.Sprint("n", n))
			s.node(id, cluster.NodeReady)
			s.plan(nil, alloc(j, cluster.AllocID(id), id))
		}
		time.Sleep(30 * time.Second)
		for n := range 10 {
			a := s.alloc(cluster.AllocID(fmt.Sprint("n", n)))
			must.Eq(t, cluster.ClientRunning, a.ClientStatus)
			must.True(t, a.JudgedHealthy())
			must.Between(t, j.TaskGroups[0].Migrate.MinHealthyTime, a.DeploymentStatus.Timestamp.Sub(a.CreateTime), 15*time.Second)
		}

		replacement := alloc(j, "replacement", "n1")
		replacement.PreviousAllocation = "n0"
		told := time.Now()
		s.plan([]cluster.AllocID{"n0"}, replacement)
		time.Sleep(30 * time.Second)
		must.Eq(t, cluster.ClientComplete, s.alloc("n0").ClientStatus)
		ended := s.alloc("n0").ModifyTime
		must.Between(t, 0, ended.Sub(told), 5*time.Second+100*time.Millisecond)
		must.True(t, s.alloc("replacement").JudgedHealthy())
		judged := s.alloc("replacement").DeploymentStatus.Timestamp.Sub(ended)
		must.Between(t, simclient.DefaultCopyTime+simclient.DefaultMinStart+10*time.Second, judged, 20*time.Second)

		// A node that was unreachable reports what happened meanwhile.
		s.write(func(x *statestore.Txn) error { return x.UpdateNodeStatus("n2", cluster.NodeDisconnected, time.Now()) }, "n2")
		s.plan([]cluster.AllocID{"n2"})
		time.Sleep(time.Minute)
		must.Eq(t, cluster.ClientRunning, s.alloc("n2").ClientStatus)
		s.write(func(x *statestore.Txn) error { return x.UpdateNodeStatus("n2", cluster.NodeReady, time.Now()) }, "n2")
		time.Sleep(6 * time.Second)
		must.Eq(t, cluster.ClientComplete, s.alloc("n2").ClientStatus)
	})
}

// Run ends with its context, even while a batch is in flight, whose answer may come later. With
// an ended context it returns at once.
func TestFleet_Run_ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServers(t)
		s.latency = time.Hour
		s.node("n", cluster.NodeReady)
		s.write(func(x *statestore.Txn) error { return x.UpsertJob(service()) })
		s.plan(nil, alloc(service(), "a", "n"))

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.fleet.Run(ctx)
		}()
		time.Sleep(time.Minute) // a report is in flight
		cancel()
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Fatal("Run goes on after its context has ended")
		}
		must.Eq(t, cluster.ClientPending, s.alloc("a").ClientStatus)
		s.replies.Wait()
		must.Eq(t, cluster.ClientRunning, s.alloc("a").ClientStatus)
		s.fleet.Run(ctx)
	})
}

// A node changes during a step, after the step took its state. The next step reads the change,
// long before the fleet would read the clock.
func TestFleet_Run_changeDuringAStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *servers
		changed := false
		s = newServers(t, func(o *simclient.Options) {
			newest := o.Snapshot
			o.Snapshot = func() simclient.State {
				state := newest()
				if !changed {
					changed = true
					s.node("n", cluster.NodeReady)
					s.plan(nil, alloc(service(), "a", "n"))
				}
				return state
			}
		})
		s.write(func(x *statestore.Txn) error { return x.UpsertJob(service()) })
		stop := s.run()
		defer stop()
		time.Sleep(5 * time.Second)
		must.Eq(t, cluster.ClientRunning, s.alloc("a").ClientStatus)
	})
}

// Other goroutines may report changes to a running fleet at any time.
func TestFleet_Run_concurrent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServers(t)
		stop := s.run()
		defer stop()
		s.write(func(x *statestore.Txn) error { return x.UpsertJob(service()) })
		var tellers sync.WaitGroup
		for k := range 4 {
			tellers.Go(func() {
				for n := range 25 {
					id := cluster.NodeID(fmt.Sprintf("n%d-%d", k, n))
					s.node(id, cluster.NodeReady)
					s.fleet.ChangedAll()
					s.plan(nil, alloc(service(), cluster.AllocID(id), id))
					time.Sleep(time.Duration(k) * time.Millisecond)
				}
			})
		}
		tellers.Wait()
		time.Sleep(30 * time.Second)
		live := 0
		for a := range s.store.Snapshot().Allocs() {
			must.True(t, a.JudgedHealthy())
			live++
		}
		must.Eq(t, 100, live)
	})
}
