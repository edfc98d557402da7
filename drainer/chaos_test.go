package drainer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// chaos is a small cluster in which everything fails for a while. Writes are rejected and lost,
// terms end at any step, drains change and are cancelled, nodes disappear and return, evaluations
// fail, clients are slow. n1 never drains.
type chaos struct {
	*harness
	rng *rand.Rand
	// places and evals count the placed allocations and evaluations, for ids.
	places, evals int
	revision      cluster.Revision
}

const chaosNodes = 5

func newChaos(t testingT, seed uint64) *chaos {
	c := &chaos{rng: rand.New(rand.NewPCG(seed, 1)), revision: 7}
	w := fixture.NewCluster(chaosNodes, 0)
	w.Jobs = nil
	for i := range 1 + c.rng.IntN(5) {
		kind := []cluster.JobType{cluster.JobService, cluster.JobService, cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch}[c.rng.IntN(6)]
		job := w.AddJob(cluster.JobID(fmt.Sprintf("job%d", i)), kind)
		group := job.TaskGroups[0]
		group.Count = 1 + c.rng.IntN(5)
		group.Tasks[0].StoragePlugin = c.rng.IntN(5) == 0
		group.Tasks[0].KillTimeout = time.Duration(c.rng.IntN(60)) * time.Second
		group.EphemeralDisk.Migrate = c.rng.IntN(2) == 0
		if kind == cluster.JobService {
			group.Migrate = &cluster.MigrateStrategy{MaxParallel: []int{0, 1, 1, 2, 3}[c.rng.IntN(5)], HealthyDeadline: time.Minute}
		}
		for range group.Count {
			c.place(w, job, w.Nodes[c.rng.IntN(chaosNodes)].ID)
		}
	}
	c.harness = newHarness(t, w, func(config *NodeDrainerConfig) {
		config.Policy.Completion = rules.CompletionPolicy(c.rng.IntN(4))
		config.Policy.BelowBudget = rules.BelowBudget(c.rng.IntN(2))
		config.Policy.PluginsAfterDeadline = rules.PluginOrder(c.rng.IntN(2))
		config.MaxIDsPerEntry, config.MaxInFlight = 2+c.rng.IntN(6), 1+c.rng.IntN(3)
	})
	c.state.vague = c.rng.IntN(5) == 0
	return c
}

func (c *chaos) place(w *fixture.Cluster, j *cluster.Job, n cluster.NodeID) *cluster.Allocation {
	c.places++
	return w.Place(cluster.AllocID(fmt.Sprintf("a%03d", c.places)), j, n)
}

// mishap makes one failure or change.
func (c *chaos) mishap() {
	c.commit(func(w *fixture.Cluster) {
		n := w.Nodes[1+c.rng.IntN(chaosNodes-1)]
		switch c.rng.IntN(10) {
		case 0, 1, 2:
			c.drain(w, n)
		case 3:
			n.Drain = nil
			n.SchedulingEligibility = cluster.NodeEligible
			for _, a := range w.Allocs { // as an FSM cancels
				if a.DesiredTransition.Drain == fixture.DrainID(n.ID) && !a.ServerTerminal() {
					a.DesiredTransition = cluster.DesiredTransition{}
				}
			}
		case 4:
			n.Status = []cluster.NodeStatus{cluster.NodeReady, cluster.NodeDown, cluster.NodeDisconnected}[c.rng.IntN(3)]
		case 5:
			g := w.Jobs[c.rng.IntN(len(w.Jobs))].TaskGroups[0]
			g.Count = max(0, g.Count+c.rng.IntN(3)-1)
			if g.Migrate != nil {
				m := *g.Migrate
				m.MaxParallel = c.rng.IntN(3)
				g.Migrate = &m
			}
		case 6:
			c.place(w, w.Jobs[c.rng.IntN(len(w.Jobs))], n.ID)
		case 7:
			if a := c.anyAlloc(w); a != nil && a.DeploymentStatus != nil {
				a.DeploymentStatus.Healthy = new(c.rng.IntN(2) == 0)
			}
		case 8:
			if a := c.anyAlloc(w); a != nil {
				a.ClientStatus = []cluster.ClientStatus{cluster.ClientFailed, cluster.ClientUnknown, cluster.ClientRunning}[c.rng.IntN(3)]
			}
		case 9:
			if len(w.Jobs) > 1 {
				w.Jobs = w.Jobs[1:] // the job is purged, its allocations are not
			}
		}
	})
}

func (c *chaos) drain(w *fixture.Cluster, n *cluster.Node) {
	deadline := []time.Duration{0, -1, time.Duration(1+c.rng.IntN(300)) * time.Second}[c.rng.IntN(3)]
	marked, before := [cluster.MarkClassCount]int{}, n.Drain
	if before != nil {
		marked = before.Marked
	}
	c.revision++
	d := w.StartDrain(n.ID, deadline)
	d.Revision, d.UpdatedAt, d.Marked = c.revision, c.now, marked
	d.Strategy.StartedAt = c.now
	d.Strategy.IgnoreSystemJobs = c.rng.IntN(3) == 0
	if deadline > 0 {
		d.Strategy.ForceDeadline = c.now.Add(deadline)
	}
}

func (c *chaos) anyAlloc(w *fixture.Cluster) *cluster.Allocation {
	live := slices.DeleteFunc(slices.Clone(w.Allocs), (*cluster.Allocation).ClientTerminal)
	if len(live) == 0 {
		return nil
	}
	return live[c.rng.IntN(len(live))]
}

// work is a turn of the scheduler and the clients. Some of it fails or waits.
func (c *chaos) work(slowly bool) {
	perhaps := func(n int) bool { return slowly && c.rng.IntN(n) == 0 }
	c.commit(func(w *fixture.Cluster) {
		for _, e := range slices.Clone(w.Evals) {
			if !e.Open() || perhaps(3) {
				continue
			}
			if perhaps(4) {
				e.Status = cluster.EvalFailed
				continue
			}
			e.Status = cluster.EvalComplete
			for _, a := range slices.Clone(w.Allocs) {
				if a.JobKey() == e.JobKey() && a.Marked() && !a.Terminal() {
					c.stop(w, a)
				}
			}
		}
		for _, a := range w.Allocs {
			switch {
			case a.ClientTerminal() || perhaps(2) || !w.Node(a.NodeID).Reachable():
			case a.ServerTerminal():
				a.ClientStatus = cluster.ClientComplete
			case a.DeploymentStatus == nil:
				a.ClientStatus, a.DeploymentStatus = cluster.ClientRunning, &cluster.DeploymentStatus{Healthy: new(!perhaps(5))}
			}
		}
	})
}

// stop stops a marked allocation and places another for a service that exists.
func (c *chaos) stop(w *fixture.Cluster, a *cluster.Allocation) {
	a.DesiredStatus, a.StoppedAt = cluster.DesiredStop, c.now
	job := w.Job(a.JobKey())
	if a.JobType() != cluster.JobService || job == nil {
		return
	}
	for _, n := range w.Nodes {
		if n.Ready() {
			next := c.place(w, job, n.ID)
			next.ClientStatus, next.DeploymentStatus, next.CreateTime = cluster.ClientPending, nil, c.now
			next.PreviousAllocation, a.NextAllocation = a.ID, next.ID
			return
		}
	}
	c.evals++
	w.Evals = append(w.Evals, &cluster.Evaluation{ID: cluster.EvalID(fmt.Sprintf("blocked%d", c.evals)), Namespace: job.Namespace, JobID: job.ID,
		Status: cluster.EvalBlocked, CreateIndex: w.LastIndex})
}

// storm makes this number of random moves.
func (c *chaos) storm(moves int) {
	c.raft.always = applied
	for range moves {
		switch c.rng.IntN(12) {
		case 0, 1:
			c.mishap()
		case 2, 3:
			c.work(true)
		case 4:
			c.raft.script = append(c.raft.script, fate(c.rng.IntN(int(hidden)+1)))
			c.raft.barriers = append(c.raft.barriers, fate(c.rng.IntN(int(full)+1)))
		case 5:
			if c.rng.IntN(3) == 0 {
				c.restart()
			}
		case 6:
			c.raft.answer()
		case 7:
			if !c.wakeAt.IsZero() {
				c.wait()
			}
		case 8:
			c.now = c.now.Add(time.Duration(c.rng.IntN(30)) * time.Second)
		default:
			if c.due() {
				c.step()
			}
		}
	}
}

// calm ends all failures, and lets time pass until nothing more happens.
func (c *chaos) calm() {
	c.raft.script, c.raft.barriers = nil, nil
	c.commit(func(w *fixture.Cluster) {
		for _, n := range w.Nodes {
			n.Status = cluster.NodeReady
		}
		for _, a := range w.Allocs {
			if a.ClientStatus == cluster.ClientUnknown {
				a.ClientStatus = cluster.ClientRunning
			}
		}
	})
	for range 500 {
		before := len(c.raft.written())
		c.settle()
		c.work(false)
		c.settle()
		if len(c.raft.written()) > before {
			continue
		}
		if c.wakeAt.IsZero() {
			return
		}
		c.wait()
	}
	c.t.Fatalf("the term never becomes quiet: its next step is at %s, now %s", c.wakeAt, c.now)
}

// After any failures every drain with a deadline ends. In every other drain each allocation that is
// left has a reason that does not end without help. The term follows only the jobs that it needs,
// and becomes quiet.
//
//race:skip one goroutine
func TestTerm_SurvivesChaos(t *testing.T) {
	t.Parallel()
	ended, held := 0, 0
	for seed := range uint64(300) {
		c := newChaos(t, seed)
		c.storm(150)
		c.calm()
		for n := range c.state.now().DrainingNodes() {
			report, _ := c.term.Explain(n.ID, c.now)
			must.True(t, n.Drain.Strategy.Deadline == 0, must.Sprintf("seed %d: %s drains past its deadline: %s", seed, n.ID, report.Reason))
			must.SliceNotEmpty(t, report.Allocs, must.Sprintf("seed %d: %s is empty and drains", seed, n.ID))
			held++
			switch report.Reason {
			case rules.ReasonBatchRunning, rules.ReasonNoPacedMoves, rules.ReasonBelowBudget:
			default:
				t.Fatalf("seed %d: %s is left with reason %s: %+v", seed, n.ID, report.Reason, report.Allocs)
			}
		}
		must.Eq(t, watchedJobs(c), c.state.feed().follows(), must.Sprintf("seed %d", seed))
		ended += len(slices.DeleteFunc(c.raft.written(), func(w fakeWrite) bool { return w.completions == nil }))
	}
	must.Positive(t, ended)
	must.Positive(t, held)
	t.Logf("%d ends were written, %d drains are held", ended, held)
}

// watchedJobs are the jobs with a live allocation on a draining node. While nothing happens the
// term follows only these.
func watchedJobs(c *chaos) map[cluster.JobKey]int {
	jobs := map[cluster.JobKey]int{}
	w := c.state.now()
	for _, a := range w.Allocs {
		if !a.ClientTerminal() && w.Node(a.NodeID).Draining() {
			jobs[a.JobKey()] = 1
		}
	}
	return jobs
}
