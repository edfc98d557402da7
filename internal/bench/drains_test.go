package main

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

type drainCase struct {
	drained, nodes, perNode int
}

func (c drainCase) String() string {
	return fmt.Sprintf("%d-of-%d-nodes-with-%d", c.drained, c.nodes, c.perNode)
}

func drainCases(s measure.Size) []drainCase {
	if s == measure.Full {
		return []drainCase{{1, 10, 1000}, {100, 1000, 50}, {1000, 10_000, 50}}
	}
	return []drainCase{{1, 10, 200}, {20, 200, 50}}
}

func (c drainCase) plan(maxParallel int) clusterPlan {
	return clusterPlan{nodes: c.nodes, perNode: c.perNode, jobSize: 100, job: cluster.JobService, maxParallel: maxParallel}
}

// figureDrains: whole drains cost little more than applying their entries, and need few entries
// more than necessary.
func figureDrains(b *testing.B) {
	for _, c := range drainCases(measure.SizeOf(b)) {
		for _, maxParallel := range []int{1, 10, 100} {
			r := &drainRuns{c: c, plan: c.plan(maxParallel)}
			// The first figure that needs the state builds it.
			r.state = sync.OnceValue(func() []byte {
				var state bytes.Buffer
				must.NoError(b, statestore.Persist(&state, newCluster(b, r.plan).fsm.Store().Snapshot()))
				return state.Bytes()
			})
			for _, f := range []struct {
				name   string
				figure func(*drainRuns, *testing.B)
			}{{"cpu", (*drainRuns).compare}, {"free", (*drainRuns).countFree}, {"crowded", (*drainRuns).countCrowded}, {"lockstep", (*drainRuns).countEntries}} {
				b.Run(fmt.Sprintf("%s/max_parallel=%d/%s", f.name, maxParallel, c), func(b *testing.B) { f.figure(r, b) })
			}
		}
	}
}

// drainRuns are runs of the drains of one case at one pace.
type drainRuns struct {
	c     drainCase
	plan  clusterPlan
	state func() []byte // the persisted state before the drains
	// free are the counts of the runs that are not in lockstep, or nil before the first. These runs
	// have equal counts.
	free *drainCounts
}

// begin prepares a run.
func (r *drainRuns) begin(b *testing.B, config drainer.NodeDrainerConfig) *drains {
	return newDrains(b, r.c, r.plan, r.state(), config)
}

// recording is the result of a run of drains.
type recording struct {
	entries []recordedEntry
	sum     uint64 // of the state
	counts  drainCounts
}

// compare compares whole drains with applying the entries of the first run. All runs have equal
// results.
func (r *drainRuns) compare(b *testing.B) {
	var first *recording
	ratio := measure.FigureSliced(b,
		func() func(*measure.Meter) {
			again := newReplay(b, r.c, r.plan, r.state())
			return func(meter *measure.Meter) {
				again.run(meter, first.entries)
				meter.Pause()
				must.True(b, again.drained())
				must.Eq(b, first.sum, again.sum())
				meter.Resume()
			}
		},
		func() func(*measure.Meter) {
			d := r.begin(b, drainer.NodeDrainerConfig{})
			d.record = first == nil
			return func(meter *measure.Meter) {
				d.run(meter)
				meter.Pause()
				if d.record {
					first = &recording{entries: d.entries, sum: d.sum(), counts: d.counts()}
				}
				must.Eq(b, first.counts, d.counts())
				meter.Resume()
			}
		},
	)
	ratio.Report(b)
	measure.Count(b, len(first.entries), "entries")
	measure.Count(b, first.counts.steps, "steps")
	measure.Count(b, first.counts.views, "views")
	r.free = &first.counts
}

// drained reports whether all drains have ended.
func (t *testCluster) drained() bool {
	for range t.fsm.Store().Snapshot().DrainView().DrainingNodes() {
		return false
	}
	return true
}

// countFree counts the entries in flight of a run that is not in lockstep. The runs of compare are not
// in lockstep either. A run of the largest case takes half a minute, so countFree uses the counts of
// compare if they exist.
func (r *drainRuns) countFree(b *testing.B) {
	if r.free == nil {
		counts := r.begin(b, drainer.NodeDrainerConfig{}).runCounted()
		r.free = &counts
	}
	r.free.report(b)
}

// crowdedIDs is the number of ids of an entry. It is so small that the entries in flight reach
// their limit.
const crowdedIDs = 50

// countCrowded counts the entries in flight with small entries. They reach the limit, except with one
// drain at max_parallel 1, which has too few writes.
func (r *drainRuns) countCrowded(b *testing.B) {
	counts := r.begin(b, drainer.NodeDrainerConfig{MaxIDsPerEntry: crowdedIDs}).runCounted()
	counts.report(b)
	if r.c.drained > 1 || r.plan.maxParallel > 1 {
		must.GreaterEq(b, drainer.DefaultMaxInFlight, counts.inFlight)
	}
}

type drainCounts struct {
	applied, marks, markEntries, endEntries, steps, views int
	inFlight                                              int // at most
}

func (d *drains) counts() drainCounts {
	return drainCounts{
		applied: d.applied, marks: d.marks, markEntries: d.markEntries, endEntries: d.endEntries,
		steps: d.steps, views: d.views.count, inFlight: d.leader.maxInFlight,
	}
}

// runCounted runs drains without a measurement.
func (d *drains) runCounted() drainCounts {
	d.run(new(measure.Meter))
	return d.counts()
}

func (c drainCounts) report(b *testing.B) {
	measure.Count(b, c.inFlight, "in-flight")
	measure.Count(b, float64(c.marks)/float64(max(1, c.markEntries)), "marks/entry")
	measure.Count(b, c.markEntries, "mark-entries")
	measure.Count(b, c.endEntries, "end-entries")
	measure.Count(b, c.steps, "steps")
	measure.Count(b, c.views, "views")
}

// entryTime is the time of an entry in a durable log with many concurrent writers: three servers on
// one disk apply about 4,000 entries a second. The drainer queries the state at most
// [drainer.DefaultStateQueriesPerSecond] times a second, so one view contains several entries.
const entryTime = 250 * time.Microsecond

// drains is a run of whole drains, with a scheduler and clients that take no time.
type drains struct {
	*leader
	views   *viewCounter
	meter   *measure.Meter
	now     time.Time
	targets []cluster.NodeID // the nodes that get the replacements
	next    int              // the index of the last target that got one
	moved   int              // the number of replacements, for their ids
	all     int              // the number of allocations that have to move

	// record means that the entries are kept. lockstep means that the drains run in rounds.
	record, lockstep bool
	entries          []recordedEntry
	stops            []stopped // the allocations that were marked in this round
	answering        bool      // the scheduler and the clients apply their entries of a round
	applied          int       // the number of applied entries

	// endFloor is the smallest number of entries for the ends of drains in lockstep. The others are
	// counts.
	marks, markEntries, endEntries, rounds, endFloor int
}

type recordedEntry struct {
	data      []byte
	ofDrainer bool
	response  shims.Response // nil unless the entry is of the drainer
}

// stopped are the marked allocations of one job with the evaluation that will stop them.
type stopped struct {
	eval   cluster.EvalID
	allocs []cluster.AllocID
}

// newDrains restores the state and starts the drains. The leader overrides the fields of the
// configuration that it needs.
func newDrains(tb testing.TB, c drainCase, plan clusterPlan, persisted []byte, config drainer.NodeDrainerConfig) *drains {
	t := restoreCluster(tb, plan, persisted)
	state := &viewCounter{StateReader: t.fsm.Store().Reader()}
	d := &drains{leader: leadWith(t, state, config), views: state, targets: t.nodes[c.drained:], now: epoch, all: c.drained * c.perNode}
	for _, n := range t.nodes[:c.drained] {
		d.propose(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{
			Node: n, Spec: &cluster.DrainSpec{}, Drain: cluster.DrainID("drain-" + string(n)), At: epoch,
		}}, func(drainer.Answer) {})
	}
	return d
}

// run runs the drains until all have ended. It measures the drainer and the application of all
// entries, but not the scheduler and the clients.
func (d *drains) run(meter *measure.Meter) {
	d.meter = meter
	defer d.term.Close()
	for d.applyAndStep() || d.step(d.now) || d.advance() || d.endRound() {
	}
	meter.Pause()
	for n := range d.fsm.Store().Snapshot().DrainView().DrainingNodes() {
		d.tb.Fatalf("node %s still drains: %+v", n.ID, d.term.Status(d.now)[0])
	}
	must.Eq(d.tb, d.all, d.marks) // each allocation moved once
	meter.Resume()
}

// applyAndStep applies the next entry. It then steps the drainer, except in a round while the scheduler
// and the clients still have entries. It reports whether there was an entry.
func (d *drains) applyAndStep() bool {
	if !d.applyNext() {
		return false
	}
	if d.answering && len(d.log) == 0 {
		d.answering = false
		d.beginRound()
	}
	if !d.answering {
		d.step(d.now)
	}
	return true
}

// advance advances the time to the drainer's next step and makes the step. It reports whether there
// was one.
func (d *drains) advance() bool {
	if d.wakeAt.IsZero() || d.wakeAt.Sub(epoch) > time.Hour {
		return false
	}
	d.now = d.wakeAt
	return d.step(d.now)
}

// applyNext applies the first entry in the log. The scheduler and the clients then answer it.
func (d *drains) applyNext() bool {
	if len(d.log) == 0 {
		return false
	}
	p := d.log[0]
	d.log = d.log[1:]
	d.now = d.now.Add(entryTime)
	answer := drainer.Answer{Outcome: raftwrite.Applied, Index: d.index}
	if p.message != nil {
		data := d.encode(p.message)
		d.index++
		answer.Index = d.index
		response, err := d.fsm.ApplyEntry(d.index, data)
		must.NoError(d.tb, err)
		d.meter.Pause()
		answer.Response = refusals(response)
		d.observe(p.message, data, response)
		d.meter.Resume()
	}
	p.reply(answer)
	return true
}

// encode encodes an entry. It measures only the entries of the drainer.
func (d *drains) encode(m shims.Message) []byte {
	if !ofDrainer(m) {
		d.meter.Pause()
		defer d.meter.Resume()
	}
	data, err := shims.Encode(m)
	must.NoError(d.tb, err)
	return data
}

func ofDrainer(m shims.Message) bool {
	return m != nil && (m.Type() == shims.AllocUpdateDesiredTransitionType || m.Type() == shims.NodesDrainCompleteType)
}

// observe counts an applied entry and triggers the scheduler and the clients.
func (d *drains) observe(m shims.Message, data []byte, response shims.Response) {
	d.applied++
	switch r := response.(type) {
	case shims.MarksApplied:
		d.markEntries++
		d.marks += len(r.Accepted)
		d.schedule(r)
	case shims.CompletionsApplied:
		d.endEntries++
	case shims.PlanApplied:
		d.report(r.Accepted)
	}
	if d.record {
		e := recordedEntry{data: data, ofDrainer: ofDrainer(m)}
		if e.ofDrainer {
			e.response = response
		}
		d.entries = append(d.entries, e)
	}
}

// schedule plans each job with a new mark: immediately, or in lockstep at the end of the round.
func (d *drains) schedule(r shims.MarksApplied) {
	state := d.fsm.Store().Snapshot()
	byJob := map[cluster.JobKey]int{}
	from := len(d.stops)
	for _, id := range r.Evals {
		byJob[state.Eval(id).JobKey()] = len(d.stops)
		d.stops = append(d.stops, stopped{eval: id})
	}
	for _, m := range r.Accepted {
		s := &d.stops[byJob[m.Group.Job]]
		s.allocs = append(s.allocs, m.Alloc)
	}
	if d.lockstep {
		return
	}
	for _, s := range d.stops[from:] {
		d.plan(s)
	}
	d.stops = d.stops[:from]
}

// plan proposes the plan of an evaluation.
func (d *drains) plan(s stopped) {
	state := d.fsm.Store().Snapshot()
	eval := state.Eval(s.eval).Copy()
	eval.Status, eval.ModifyTime = cluster.EvalComplete, d.now
	plan := cluster.Plan{At: d.now, SnapshotIndex: state.Index(), Eval: eval}
	for _, id := range s.allocs {
		plan.Stops = append(plan.Stops, cluster.PlanStop{Alloc: id, Description: cluster.DescMigrating, Migrate: true})
		plan.Places = append(plan.Places, d.replacement(state.Alloc(id)))
	}
	d.propose(&shims.ApplyPlan{Plan: plan}, func(drainer.Answer) {})
}

func (d *drains) replacement(old *cluster.Allocation) *cluster.Allocation {
	d.moved++
	d.next = (d.next + 1) % len(d.targets)
	a := old.Copy()
	a.ID = cluster.AllocID(fmt.Sprintf("%08x-0000-b24c-f8a5-ca0ec0ff5747", d.moved))
	a.NodeID, a.PreviousAllocation = d.targets[d.next], old.ID
	a.DesiredTransition, a.DeploymentStatus = cluster.DesiredTransition{}, nil
	a.ClientStatus, a.CreateTime = cluster.ClientPending, d.now
	return a
}

// report proposes the clients' reports after a plan: stopped allocations are complete, placed
// allocations run and are healthy.
func (d *drains) report(plan *cluster.Plan) {
	state, healthy := d.fsm.Store().Snapshot(), true
	m := new(shims.AllocClientUpdate)
	for _, s := range plan.Stops {
		m.Reports = append(m.Reports, cluster.AllocReport{Alloc: s.Alloc, Node: state.Alloc(s.Alloc).NodeID, ClientStatus: cluster.ClientComplete, At: d.now})
	}
	for _, a := range plan.Places {
		m.Reports = append(m.Reports, cluster.AllocReport{
			Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientRunning, Healthy: &healthy, HealthyAt: d.now, At: d.now,
		})
	}
	if len(m.Reports) > 0 {
		d.propose(m, func(drainer.Answer) {})
	}
}
