package drainertest

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// maxReports bounds what a client says at once; the rest follows its answer.
const maxReports = 500

// Never is longer than any world lasts.
const Never = time.Duration(1<<63 - 1)

// Behaviour is how one allocation behaves on its node.
type Behaviour struct {
	// Start is from its placement to its running.
	Start time.Duration
	// Verdict is from its running to the verdict on its health, which is good
	// unless Unhealthy. [Never] is none.
	Verdict   time.Duration
	Unhealthy bool
	// Stop is from its being told to stop to its end.
	Stop time.Duration
	// Run is from its running to its end by itself, if it is batch or sysbatch.
	Run time.Duration
}

// DefaultBehaviour starts within a second, is healthy after the group's
// MinHealthyTime, runs for an hour if it is to end by itself, and stops within
// two seconds.
func DefaultBehaviour(a *cluster.Allocation) Behaviour {
	b := Behaviour{Start: time.Second, Verdict: Never, Stop: 2 * time.Second, Run: Never}
	switch {
	case a.JobType() == cluster.JobService:
		b.Verdict = cluster.DefaultMinHealthyTime
		if g := a.Job.Group(a.TaskGroup); g != nil && g.Migrate != nil {
			b.Verdict = g.Migrate.MinHealthyTime
		}
	case a.JobType().ToCompletion():
		b.Run = time.Hour
	}
	return b
}

// client is the client of one node.
type client struct {
	world *World
	node  cluster.NodeID
	tasks map[cluster.AllocID]*task
	// order are the tasks' ids, sorted: a node may have thousands.
	order []cluster.AllocID

	// at is when the client is to be stepped, position where it is in the queue.
	at       time.Time
	position int
}

// task is what a client knows of one allocation. Times are zero until they are
// known, and far away if they never come.
type task struct {
	alloc                *cluster.Allocation
	behaviour            Behaviour
	runs, judged, ends   time.Time
	told, said           report
	stopping, inProgress bool
}

// report is what a client says of an allocation.
type report struct {
	status  cluster.ClientStatus
	judged  bool
	healthy bool
}

func newClient(w *World, id cluster.NodeID) *client {
	return &client{world: w, node: id, tasks: map[cluster.AllocID]*task{}, position: -1}
}

// step does what is due and reports it. A client that is out of touch goes on,
// and says so when it is back.
func (c *client) step() time.Time {
	state := c.world.State()
	node := state.Node(c.node)
	if !node.Reachable() {
		return time.Time{}
	}
	now := c.world.now
	listed := map[cluster.AllocID]bool{}
	for a := range state.LiveAllocsByNode(c.node) {
		listed[a.ID] = true
		c.hear(a, now)
	}
	var next time.Time
	var reports []cluster.AllocReport
	kept := c.order[:0]
	for _, id := range c.order {
		t := c.tasks[id]
		if !listed[id] && !t.inProgress {
			delete(c.tasks, id)
			continue
		}
		kept = append(kept, id)
		t.advance(now)
		if t.told != t.said && !t.inProgress && len(reports) < maxReports {
			reports = append(reports, t.report(now))
		}
		for _, at := range []time.Time{t.runs, t.judged, t.ends} {
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	c.order = kept
	if len(reports) > 0 && !c.send(reports) {
		next = now.Add(time.Second)
	}
	return next
}

// hear takes in what the servers want of an allocation.
func (c *client) hear(a *cluster.Allocation, now time.Time) {
	t := c.tasks[a.ID]
	if t == nil {
		t = newTask(a, c.world.options.Client(a), now)
		c.tasks[a.ID] = t
		i, _ := slices.BinarySearch(c.order, a.ID)
		c.order = slices.Insert(c.order, i, a.ID)
	}
	if a.ServerTerminal() && !t.stopping {
		t.stopping = true
		t.ends = later(now, t.behaviour.Stop)
		if t.runs.After(now) {
			t.ends = now
		}
	}
}

// newTask is a task that begins, or goes on if the servers know that it runs.
func newTask(a *cluster.Allocation, b Behaviour, now time.Time) *task {
	t := &task{alloc: a, behaviour: b, said: report{status: a.ClientStatus, judged: a.HasVerdict(), healthy: a.JudgedHealthy()}}
	t.told = t.said
	t.runs = later(now, b.Start)
	if a.ClientStatus == cluster.ClientRunning {
		t.runs = now
	}
	if !a.HasVerdict() {
		t.judged = later(t.runs, b.Verdict)
	}
	t.ends = later(t.runs, b.Run)
	return t
}

// later is a time after another, or far away.
func later(t time.Time, d time.Duration) time.Time {
	if d == Never {
		return time.Time{}
	}
	return t.Add(d)
}

// advance brings what the task has to tell up to date.
func (t *task) advance(now time.Time) {
	passed := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	switch {
	case passed(t.ends):
		t.told.status = cluster.ClientComplete
	case passed(t.runs):
		t.told.status = cluster.ClientRunning
		if passed(t.judged) && !t.stopping {
			t.told.judged, t.told.healthy = true, !t.behaviour.Unhealthy
		}
	}
}

func (t *task) report(now time.Time) cluster.AllocReport {
	r := cluster.AllocReport{Alloc: t.alloc.ID, Node: t.alloc.NodeID, ClientStatus: t.told.status, At: now}
	if t.told.judged {
		healthy := t.told.healthy
		r.Healthy, r.HealthyAt = &healthy, now
	}
	return r
}

// send reports to the servers, and again until they have it.
func (c *client) send(reports []cluster.AllocReport) bool {
	m := &shims.AllocClientUpdate{Reports: reports}
	m.Evals = scheduler.ReportEvals(c.world.State(), reports, c.world.Clock(), c.world.ids.eval)
	sent := make(map[cluster.AllocID]report, len(reports))
	for _, r := range reports {
		t := c.tasks[r.Alloc]
		sent[r.Alloc], t.inProgress = t.told, true
	}
	queued := c.world.log.propose(FromClients, m, func(answer shims.Answer) {
		for _, r := range reports {
			t := c.tasks[r.Alloc]
			t.inProgress = false
			if answer.Outcome == drainer.Applied {
				t.said = sent[r.Alloc]
			}
		}
		at := c.world.now
		if answer.Outcome != drainer.Applied {
			at = at.Add(time.Second)
		}
		c.world.clients.set(c, at)
	})
	if !queued {
		for _, r := range reports {
			c.tasks[r.Alloc].inProgress = false
		}
	}
	return queued
}
