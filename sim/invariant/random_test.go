package invariant_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// randomFixture is a fixture with random entries.
type randomFixture struct {
	*fixture
	rng    *rand.Rand
	policy rules.Policy
	placed int
	drains int
}

func newRandomFixture(t *testing.T, seed uint64) *randomFixture {
	rng := rand.New(rand.NewPCG(seed, 1))
	c := &randomFixture{rng: rng, policy: rules.Policy{
		HealthGrace: time.Second, StopMargin: 2 * time.Second,
		BelowBudget: rules.BelowBudget(rng.IntN(2)), PluginsAfterDeadline: rules.PluginOrder(rng.IntN(2)), Completion: rules.CompletionPolicy(rng.IntN(4)),
	}}
	c.fixture = newFixture(t, invariant.Options{Policy: c.policy, Every: 10})
	for i := range 4 {
		c.node(c.nodeID(i))
	}
	for i := range 6 {
		c.job(c.randomJob(i))
	}
	for range 30 {
		c.randomEntry()
	}
	return c
}

func (c *randomFixture) nodeID(i int) cluster.NodeID { return cluster.NodeID(fmt.Sprintf("n%d", i)) }

func (c *randomFixture) someNode() cluster.NodeID { return c.nodeID(c.rng.IntN(4)) }

func (c *randomFixture) randomJob(i int) *cluster.Job {
	kinds := [...]cluster.JobType{cluster.JobService, cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobService, cluster.JobSysBatch}
	j := newJob(kinds[i], cluster.JobID(fmt.Sprintf("j%d", i)), c.rng.IntN(6))
	g := j.TaskGroups[0]
	if g.Migrate != nil {
		g.Migrate.MaxParallel = c.rng.IntN(3)
		g.Migrate.MinHealthyTime, g.Migrate.HealthyDeadline = 0, time.Duration(c.rng.IntN(20))*time.Second
	}
	g.EphemeralDisk.Migrate = c.rng.IntN(3) == 0
	if i >= 4 && c.rng.IntN(2) == 0 || c.rng.IntN(10) == 0 {
		plugin(j)
	}
	if c.rng.IntN(10) == 0 {
		g.Name = "renamed"
	}
	return j
}

// someAlloc returns a random allocation, or nil.
func (c *randomFixture) someAlloc() *cluster.Allocation {
	all := slices.Collect(c.state().Allocs())
	if len(all) == 0 {
		return nil
	}
	return all[c.rng.IntN(len(all))]
}

// randomEntry applies a random valid entry.
func (c *randomFixture) randomEntry() {
	c.wait(time.Duration(c.rng.IntN(4)) * time.Second)
	a, n := c.someAlloc(), c.someNode()
	switch choice := c.rng.IntN(20); {
	case choice < 5 || a == nil:
		c.placeSome(n, a)
	case choice < 9:
		c.report(pick(c.rng, cluster.ClientRunning, cluster.ClientRunning, cluster.ClientComplete, cluster.ClientFailed),
			pick(c.rng, nil, pointer(true), pointer(true), pointer(false)), a.ID)
	case choice == 9:
		c.stop(a.ID, false)
	case choice < 12:
		m := c.request(n, &cluster.DrainSpec{Deadline: pick(c.rng, -1, 0, 0, 5*time.Second, time.Minute), IgnoreSystemJobs: c.rng.IntN(4) == 0})
		c.drains++
		m.Drain = cluster.DrainID(fmt.Sprintf("d%d", c.drains))
		c.apply(m)
	case choice == 12:
		c.apply(c.request(n, nil))
	case choice == 13:
		c.status(n, pick(c.rng, cluster.NodeReady, cluster.NodeReady, cluster.NodeDown, cluster.NodeDisconnected))
	case choice == 14:
		c.job(c.randomJob(c.rng.IntN(6)))
	case choice == 15:
		c.apply(&shims.JobDeregister{Job: a.JobKey(), Purge: c.rng.IntN(4) == 0})
	case choice == 16:
		c.closeEvals(a.JobID)
	case choice == 17:
		c.blockEvals(a.JobID)
	case choice == 18:
		c.unknown(a)
	default:
		c.apply(&shims.NodeDeregister{At: c.now, Nodes: []cluster.NodeID{n}})
		c.node(n)
	}
}

// placeSome places an allocation, perhaps as the replacement of another one.
func (c *randomFixture) placeSome(on cluster.NodeID, instead *cluster.Allocation) {
	of := cluster.JobID(fmt.Sprintf("j%d", c.rng.IntN(6)))
	if j := c.state().Job(jobKey(of)); j == nil || j.Stop {
		c.job(c.randomJob(int(of[1] - '0')))
	}
	c.placed++
	c.place(cluster.AllocID(fmt.Sprintf("a%03d", c.placed)), of, on, func(a *cluster.Allocation) {
		a.TaskGroup = c.state().Job(jobKey(of)).TaskGroups[0].Name
		if c.rng.IntN(6) == 0 {
			canary(a)
		}
		if instead != nil && instead.NextAllocation == "" && instead.JobID == of && c.rng.IntN(2) == 0 {
			a.PreviousAllocation = instead.ID
		}
		a.DesiredTransition.Migrate = c.rng.IntN(20) == 0
	})
}

// unknown sets the client status of an allocation to unknown.
func (c *randomFixture) unknown(a *cluster.Allocation) {
	e := c.eval(a.JobID)
	e.Status = cluster.EvalComplete
	m := &shims.ApplyPlan{Plan: cluster.Plan{At: c.now, Eval: e, Stops: []cluster.PlanStop{{Alloc: a.ID, Unknown: true}}}}
	c.fake(m, shims.PlanApplied{Accepted: &m.Plan}, func(txn *statestore.Txn) { _, _ = txn.ApplyPlan(&m.Plan) })
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// someMarks returns an entry that marks random allocations, mostly with a likely class.
func (c *randomFixture) someMarks(count int) *shims.AllocUpdateDesiredTransition {
	m := &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: c.now, Policy: c.policy}}
	for range count {
		a := c.someAlloc()
		if a == nil {
			break
		}
		m.Marks.Marks = append(m.Marks.Marks, c.marks(c.someClass(a), a.ID).Marks.Marks...)
		if !slices.ContainsFunc(m.Evals, func(e *cluster.Evaluation) bool { return e.JobKey() == a.JobKey() }) {
			m.Evals = append(m.Evals, c.eval(a.JobID))
		}
	}
	for i := range m.Marks.Marks {
		if mark := &m.Marks.Marks[i]; c.rng.IntN(8) == 0 {
			mark.Revision--
		}
	}
	return m
}

// someClass returns a likely class for an allocation, or sometimes a random one.
func (c *randomFixture) someClass(a *cluster.Allocation) cluster.MarkClass {
	switch n := c.state().Node(a.NodeID); {
	case c.rng.IntN(4) == 0 || !n.Draining():
		return cluster.MarkClass(1 + c.rng.IntN(int(cluster.MarkClassCount)-1))
	case c.state().Job(a.JobKey()).Group(a.TaskGroup) == nil && a.Stage() == cluster.StageConsumers:
		return cluster.MarkGone
	case a.Stage() != cluster.StageConsumers:
		return cluster.MarkStage
	case n.Drain.Strategy.Forced():
		return cluster.MarkForced
	case n.Drain.Strategy.Passed(c.now):
		return cluster.MarkDeadline
	case a.Canary():
		return cluster.MarkCanary
	case a.Healthy(n):
		return cluster.MarkPaced
	}
	return cluster.MarkFree
}

// The test applies every proposed mark without a re-check. The judge finds exactly the marks that
// the re-check refuses, and each mark that the witness finds.
func TestJudge_agreesWithTheRecheck(t *testing.T) {
	t.Parallel()
	good, bad, witnessed := 0, 0, 0
	for seed := range uint64(150) {
		c := newRandomFixture(t, seed)
		for range 20 {
			c.randomEntry()
			m := c.someMarks(1)
			if len(m.Marks.Marks) == 0 || m.Marks.Marks[0].Drain == "" || c.state().Alloc(m.Marks.Marks[0].Alloc).Leaving() {
				continue // the store would refuse it
			}
			accepted, _, _ := rules.Recheck(c.state().DrainView(), &m.Marks)
			before, was := c.j.Found(), c.state()
			w := witness.Resume(witness.Options{StopMargin: c.policy.StopMargin, PluginsAfterStop: c.policy.PluginsAfterDeadline == rules.PluginsAfterStop}, was)
			c.applyUnchecked(m)
			if marked := c.state().Alloc(m.Marks.Marks[0].Alloc).Marked(); !marked {
				continue
			}
			found := c.j.Found() - before
			must.Eq(t, len(accepted) == 1, found == 0, must.Sprintf("seed %d: %+v %v", seed, m.Marks.Marks[0], c.j.Violations()))
			w.Observe(applied.Entry(shims.Applied{Index: c.index, Type: m.Type(), Message: m, Before: was, After: c.state()}))
			if report := w.Report(); len(report.Findings) > 0 {
				witnessed++
				must.Greater(t, 0, found, must.Sprint(report.Findings))
			}
			if found == 0 {
				good++
			} else {
				bad++
			}
			c.reset()
		}
	}
	t.Logf("%d good marks, %d bad, of which the witness found %d", good, bad, witnessed)
	must.Greater(t, 50, good)
	must.Greater(t, 200, bad)
	must.Greater(t, 50, witnessed)
}

// reset continues with a new judge, because a judge keeps only a limited number of violations.
func (c *randomFixture) reset() {
	c.j = invariant.New(invariant.Options{Policy: c.policy, Every: 10})
}
