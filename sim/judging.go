package sim

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/claimed"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/collected"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/ended"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/journaled"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/listed"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/moved"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/placement"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/rolled"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/timed"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// freshEvery is the interval, in quiet points, at which a new drainer makes its
// plans. Starting it is expensive, because it reads everything.
const freshEvery = 2

// judging connects a judge to a world.
type judging struct {
	player *player
	world  *world.World
	judge  *invariant.Judge
	// plans judges the scheduler.
	plans placement.Judge
	// rollouts judges the scheduler's rollouts of new versions.
	rollouts rolled.Judge
	// collection judges the deletion of ended work.
	collection collected.Judge
	// claims judges the claims of volumes, if the scenario uses volumes. read is the index of the
	// state that it has judged, and the number of calls to the storage of the nodes; attached are the
	// attachments of that time.
	claims   *claimed.Judge
	volumes  bool
	read     [2]uint64
	attached []world.Attachment
	// ends compares the ends of drains with the processes of the nodes.
	ends *ended.Judge
	// journals compares the journals of drains with the rows.
	journals *journaled.Judge
	// times compares the learned times of groups with the entries.
	times *timed.Judge
	// catalogue judges the catalogue of services, or is nil without services.
	catalogue *listed.Judge
	// moves judges the moves of data, if the nodes run real clients.
	moves *moved.Judge
	// appliedAt is the time of the newest entry.
	appliedAt time.Time
	// quietPoints counts the judged quiet points.
	quietPoints int
	// nextIndex is the index of the state at which the next quiet point is judged.
	nextIndex uint64
}

// reportsPerEntry is how many reports on allocations are judged for each entry. Reading all
// reports at every entry would cost more than the rest of the run.
const reportsPerEntry = 4

// newJudging starts to judge a world.
func newJudging(p *player) *judging {
	w := p.world
	judge := invariant.New(p.judgeOptions())
	j := &judging{player: p, world: w, judge: judge, claims: claimed.New(), journals: journaled.New(), times: timed.New(), volumes: p.scenario.UsesVolumes()}
	j.ends = ended.New(ended.Options{Marked: p.config.Policy.Completion == rules.CompletionMarked, Real: p.scenario.Cluster.Clients == scenario.RealClients, Lives: j.lives})
	j.moves = moved.New(moved.Options{
		Retention: cmp.Or(p.scenario.Cluster.Retention, client.DefaultDataRetention), Marked: p.config.Policy.Completion == rules.CompletionMarked, Machines: w.Machines,
	})
	if p.scenario.HasServices() {
		j.catalogue = listed.New()
	}
	judge.Began(w.Now(), w.Leader(), w.Term())
	o := world.Observer{
		ClockSet: func(term int, ahead time.Duration) {
			judge.ClockSet(w.Now(), term, ahead)
			j.ends.ClockSet(ahead)
		},
		Applied: func(a world.Applied) {
			j.appliedAt = w.Now()
			judge.Applied(w.Now(), a)
			j.plans.Applied(w.Now(), a)
			j.rollouts.Applied(w.Now(), a)
			j.collection.Applied(w.Now(), a)
			j.claims.Applied(w.Now(), a)
			j.claims.Detached(w.Now(), a, w.Attachments())
			if m, is := a.Message.(*shims.AllocClientUpdate); is && !(w.Log.Entry(a.Index).Proposed && w.Log.Entry(a.Index).Source == world.FromClients) {
				j.claims.Untrue(a.Before, m.Reports)
				j.ends.Untrue(m.Reports)
				j.moves.Untrue(m.Reports)
			}
			j.ends.Applied(w.Now(), a)
			j.journals.Applied(w.Now(), a)
			j.times.Applied(w.Now(), a)
			j.moves.Applied(w.Now(), a)
			if j.catalogue != nil {
				j.catalogue.Applied(w.Now(), a)
			}
		},
		Elected:   func(server int) { judge.Began(w.Now(), server, w.Term()) },
		TermEnded: func(term int) { judge.Ended(w.Now(), term) },
		Proposed:  j.proposed,
		Answered:  func(term, n int, a shims.Answer) { judge.Answered(w.Now(), term, n, a) },
		Stepped: func(s world.DrainerStep) {
			judge.Stepped(w.Now(), invariant.Step{
				Term: s.Term, Clock: s.At, Woken: s.Woken, View: s.View, Queries: s.Reads, WakeAt: s.WakeAt, Held: s.Held,
			})
		},
		Called: j.called,
		Struck: func(s world.Strike) {
			if hindersMoves(s.Name) {
				j.moves.Troubled(cluster.NodeID(s.Target), w.Now().Add(s.For), false)
			}
		},
		NodeChanged: func(id cluster.NodeID, change world.NodeChange) {
			j.moves.Troubled(id, w.Now(), change == world.RecordIsLost || change == world.DiskIsWiped)
			if change == world.ClientStarts {
				j.moves.ClientStarts(w.Now(), id)
			}
		},
		Restored: func(taken, restored *statestore.Snapshot) {
			judge.Restored(w.Now(), taken, restored)
			j.moves.Restored()
			j.journals.Restored()
		},
	}
	if p.scenario.Cluster.Replicas {
		o.ReplicaApplied = func(server int, a world.Applied) {
			if a.Message != nil {
				judge.Replica(w.Now(), server, a)
			}
		}
	}
	w.Observe(o)
	return j
}

// hindersMoves reports whether a fault of a node may be the reason that data is given up.
func hindersMoves(f scenario.FaultName) bool {
	return slices.Contains([]scenario.FaultName{
		scenario.NodeCrash, scenario.NodeDisconnect, scenario.NodeReboot, scenario.NodeFreeze, scenario.ClientCrash,
		scenario.DiskFull, scenario.DiskWipe, scenario.RecordLose, scenario.DataCut, scenario.DataSlow, scenario.DataTwice,
	}, f)
}

// judgeOptions are the limits that the scenario sets for its drainers, and the delays of
// its cluster.
func (p *player) judgeOptions() invariant.Options {
	c, d := p.scenario.Cluster, p.config
	return invariant.Options{
		Policy: d.Policy, MaxIDs: d.MaxIDsPerEntry, MaxBytes: d.MaxBytesPerEntry, MaxInFlight: d.MaxInFlight,
		QueriesPerSecond: d.StateQueriesPerSecond, MinInterval: d.MinWriteInterval, Coalesce: d.DeadlineCoalesce,
		RetryBase: d.Retry.Base, RetryMax: d.Retry.Max, Digests: c.Replicas,
		Bounds: invariant.Bounds{
			Settle: settle(p.scenario), Write: c.Commit.Max, Wake: c.Wake.Max + c.Schedule.Max,
		},
	}
}

// settle is how long the effects of faults last after their end: the longest effect, a new
// leader's first step, and a check of a clock.
func settle(s *scenario.Scenario) time.Duration {
	longest := max(s.Cluster.Late.Max, scenario.DefaultLate)
	for _, e := range s.Events {
		switch op := e.Op.(type) {
		case *scenario.Fault:
			longest = max(longest, op.Delay.Max)
		case *scenario.Elect:
			longest = max(longest, op.Unaware)
		case *scenario.Pause:
			longest = max(longest, op.For)
		}
	}
	return longest + s.Cluster.Establish.Max + time.Minute
}

func (j *judging) proposed(p world.Proposal) {
	write := invariant.Write{Term: p.Term, N: p.N, Message: p.Message, Bytes: p.Bytes}
	if p.Taken {
		j.judge.Proposed(j.world.Now(), write)
	} else {
		j.judge.NotTaken(j.world.Now(), write)
	}
}

// called judges a call of a controller.
func (j *judging) called(c world.ControllerCall, open []world.ControllerCall) {
	var mounts []double.Mount
	for _, m := range j.world.Machines() {
		if m.ID() == c.Node {
			mounts = m.Storage().Mounts()
		}
	}
	j.claims.Called(j.world.Now(), c, open, mounts)
}

// quietClaims judges the volumes of all nodes at a quiet point, if anything has changed.
func (j *judging) quietClaims() {
	w := j.world
	if !j.volumes {
		return
	}
	state := w.Truth()
	at := [2]uint64{state.Index()}
	for _, m := range w.Machines() {
		at[1] += uint64(len(m.Storage().Calls(0)))
	}
	attached := w.Attachments()
	if at == j.read && slices.Equal(attached, j.attached) {
		return
	}
	j.read, j.attached = at, attached
	j.claims.Compare(w.Now(), state, j.mounted(), attached)
}

// mounted are the machines with their mounts.
func (j *judging) mounted() (machines []claimed.Machine) {
	for _, m := range j.world.Machines() {
		machines = append(machines, claimed.Machine{Node: m.ID(), Mounts: m.Storage().Mounts(), Runs: j.running(m)})
	}
	return machines
}

// running are the allocations with a task that has processes, except processes that cannot die. A watchdog does not
// reach a container, so a container may run without a client.
func (j *judging) running(n *machine.Node) map[cluster.AllocID]bool {
	all, judge := map[cluster.AllocID]bool{}, j.player.nodes.by[n.ID()]
	for p := range n.Machine().EachLiving() {
		excused := p.Stuck || p.Contained && judge.Excused(n, p)
		if alloc, _ := machine.SplitCgroup(p.Cgroup); p.Kind == scripted.TaskProcess && !excused {
			all[alloc] = true
		}
	}
	return all
}

// lives yields the allocations with tasks on a node, by the process tables of the nodes. It leaves
// out processes that run because of trouble of the node.
func (j *judging) lives(id cluster.NodeID) iter.Seq[cluster.AllocID] {
	machines := j.world.Machines()
	at := slices.IndexFunc(machines, func(m *machine.Node) bool { return m.ID() == id })
	if at < 0 {
		return j.world.Hidden().Lives(id)
	}
	m, judge, all := machines[at], j.player.nodes.by[id], map[cluster.AllocID]bool{}
	for p := range m.Machine().EachLiving() {
		if alloc, _ := machine.SplitCgroup(p.Cgroup); p.Kind == scripted.TaskProcess && !judge.Excused(m, p) {
			all[alloc] = true
		}
	}
	return slices.Values(slices.Sorted(maps.Keys(all)))
}

// quiet judges the drainer's reports at a quiet point, if the state has changed enough.
func (j *judging) quiet() {
	j.quietClaims()
	j.quietRows()
	w := j.world
	if j.catalogue != nil {
		j.catalogue.Quiet(w.Now(), w.Machines(), j.player.nodes.stopped)
	}
	j.moves.Quiet(w.Now(), w.Truth())
	state := w.State()
	if state.Index() < j.nextIndex && !j.player.options.Thorough {
		return
	}
	j.quietPoints++
	q := invariant.Quiet{Term: w.Term(), Clock: w.Clock(), State: state, Reports: w.Servers.Reports(), Followed: w.Servers.Followed(), Truth: w.Hidden()}
	if j.player.options.Reports != nil {
		j.player.options.Reports(q.Reports)
	}
	reports := 0
	for _, r := range q.Reports {
		reports += len(r.Allocs)
	}
	j.nextIndex = state.Index() + 1 + uint64(reports/reportsPerEntry)
	if j.quietPoints%freshEvery == 0 {
		q.Fresh = j.fresh()
	}
	j.judge.Quiet(w.Now(), q)
}

// quietRows compares the health in the rows with the processes of the nodes, when the effects of all
// faults have ended.
func (j *judging) quietRows() {
	w, p := j.world, j.player
	if p.faultsEnded && w.Now().Sub(p.faultsEndedAt) > settle(p.scenario) {
		c := p.scenario.Cluster
		p.nodes.rows(w, reportTravel+c.Gather+c.Commit.Max+c.Wake.Max)
	}
}

// reportTravel is longer than a client and the simulated network take for a report. A report waits for the
// answer to the one before.
const reportTravel = time.Second

// silence judges a pause in which nothing has happened on the servers.
func (j *judging) silence() {
	w := j.world
	q := invariant.Quiet{Term: w.Term(), Clock: w.Clock(), State: w.State(), Followed: w.Servers.Followed(), Truth: w.Hidden()}
	for range q.State.DrainView().DrainingNodes() {
		q.Fresh = j.fresh()
		break
	}
	j.judge.Still(w.Now(), q)
	if p := j.player; p.faultsEnded && w.Now().Sub(p.faultsEndedAt) > settle(p.scenario) && w.Now().Sub(j.appliedAt) > settle(p.scenario)+p.scenario.Cluster.Schedule.Max {
		j.plans.Still(w.Now(), w.Truth())
		j.rollouts.Still(w.Now(), w.Truth())
	}
	j.collected()
}

// still judges a pause in which nothing has happened on the nodes.
func (j *judging) still() {
	w, p := j.world, j.player
	p.nodes.still(w)
	if p.faultsEnded && w.Now().Sub(p.faultsEndedAt) > settle(p.scenario)+untroubled {
		p.nodes.settled(w)
		if j.catalogue != nil {
			j.catalogue.Settled(w.Now(), w.Truth(), w.Machines())
		}
		j.moves.Settled(w.Now(), w.Truth(), world.Turns(w))
		if j.volumes {
			j.claims.Still(w.Now(), w.Truth(), j.mounted())
		}
	}
}

// collected judges what the collection has left. Before that, all faults have ended for so long
// that their effects have ended too.
func (j *judging) collected() {
	w, p := j.world, j.player
	age := p.scenario.Cluster.Collect
	if age > 0 && p.faultsEnded && w.Now().Sub(p.faultsEndedAt) > settle(p.scenario)+age {
		j.collection.Still(w.Now(), w.Clock(), age, w.Truth())
	}
}

// fresh returns the writes of a new drainer, without memory.
func (j *judging) fresh() *invariant.Plan {
	raft := &listener{index: j.world.State().Index()}
	config := j.player.config
	config.Raft = raft
	config.NewEvalID = func() cluster.EvalID { return "fresh" }
	term, err := drainer.NewTerm(config, j.world.Servers.Reader(), make(chan struct{}, 1))
	if err != nil {
		return nil
	}
	defer term.Close()
	now := j.world.Clock()
	for range 3 { // the barrier, the first writes, and a second step
		term.Step(now)
	}
	return &raft.writes
}

// listener is a raft applier that accepts every write, answers only the barrier, and
// applies nothing.
type listener struct {
	index  uint64
	writes invariant.Plan
}

var _ drainer.RaftApplier = (*listener)(nil)

func (l *listener) AllocUpdateDesiredTransition(m *rules.Marks, _ drainer.Reply) bool {
	l.writes.Marks = append(l.writes.Marks, m.Marks...)
	l.writes.Reevaluate = append(l.writes.Reevaluate, m.Reevaluate...)
	return true
}

func (l *listener) NodesDrainComplete(c *rules.Completions, _ drainer.Reply) bool {
	l.writes.Completions = append(l.writes.Completions, c.Completions...)
	return true
}

func (l *listener) Barrier(reply drainer.Reply) bool {
	reply(drainer.Answer{Outcome: raftwrite.Applied, Index: l.index})
	return true
}

// end judges the end of the run. If the world is idle, nothing changes until the limit, so
// the limit counts as the end.
func (j *judging) end(idle bool, limit time.Time) ([]invariant.Violation, error) {
	states, err := j.world.Servers.States()
	if err != nil {
		return nil, err
	}
	at := j.world.Now()
	if idle && limit.After(at) {
		at = limit
	}
	if idle {
		j.silence()
		j.still()
	}
	j.judge.End(at, states...)
	j.times.End(at, j.world.Truth())
	violations := slices.Concat(j.judge.Violations(), j.plans.Violations(), j.rollouts.Violations(), j.collection.Violations(), j.claims.Violations(), j.ends.Violations(), j.journals.Violations(), j.times.Violations(), j.moves.Violations(), j.player.nodes.violations())
	if j.catalogue != nil {
		violations = append(violations, j.catalogue.Violations()...)
	}
	return violations, nil
}
