package drainertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// SurgeCluster is a scheduler with its state machine as [TestSurge] uses it. The methods of [FSM] are as they are there,
// but Commit also writes the reports of clients: in an existing allocation it changes ClientStatus, EndedAt,
// DeploymentStatus and ModifyTime. The index of an entry is the one after the index of the newest view.
type SurgeCluster interface {
	Commit(index uint64, rows Rows) error
	UpdateDrain(index uint64, u cluster.DrainUpdate) error
	Marks(index uint64, m *rules.Marks) ([]rules.Refusal, error)
	View() rules.View
	// Schedule answers all pending evaluations at the time, and applies the plans. Each plan is an entry.
	Schedule(at time.Time) error
}

// TestSurge tests the duties of a scheduler and a state machine that replace before they stop: see
// [rules.SurgeView]. It plays stories of a job of two allocations on a draining node, with two other nodes that have room:
// a request and its mark, a cancel, a replacement that fails, and an original that fails. An error names the story,
// the allocation and the duty. newCluster makes an empty cluster.
func TestSurge(newCluster func() SurgeCluster) error { return testSurge(newCluster, CallLimit) }

func testSurge(newCluster func() SurgeCluster, callLimit time.Duration) error {
	w := &watch{callLimit: callLimit}
	return w.run(func() error {
		for _, story := range []struct {
			title string
			play  func(*surgePlay)
		}{
			{"a drain replaces before it stops", (*surgePlay).replaces},
			{"the drain is cancelled", (*surgePlay).isCancelled},
			{"the replacement fails", (*surgePlay).replacementFails},
			{"the original fails", (*surgePlay).originalFails},
		} {
			p := &surgePlay{cluster: newCluster(), watch: w, seen: map[cluster.AllocID]bool{}}
			p.begin("d1")
			story.play(p)
			if p.err != nil {
				return fmt.Errorf("%s: %w", story.title, p.err)
			}
		}
		return nil
	})
}

// The allocation that a story moves, the node that drains, and the count of the group.
const (
	surgeOriginal cluster.AllocID = "w1"
	surgeNode     cluster.NodeID  = "n1"
	surgeCount                    = 2
)

func surgeGroup() cluster.GroupKey {
	return cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: "web"}, Name: "g"}
}

// surgePlay plays one story. After the first error its methods do nothing.
type surgePlay struct {
	cluster SurgeCluster
	watch   *watch
	err     error
	// now is the time of the story.
	now time.Duration
	// evals counts the evaluations that the story has written.
	evals int
	// seen are the allocations that the story has written or found.
	seen map[cluster.AllocID]bool
}

// replaces: the replacement stands by, is healthy, and has the slot when the original is marked.
func (p *surgePlay) replaces() {
	p.request()
	standby := p.placedBeside(surgeOriginal)
	p.report(standby, cluster.ClientRunning)
	p.healthy("a standby allocation does not count as healthy")
	p.evaluate()
	p.noneNew("its request is answered")
	p.runs(surgeOriginal, "the original stays until it is marked")
	p.runs(standby, "a standby allocation stays while it is requested")
	p.moveOn(standby)
}

// isCancelled: a cancel stops the standby, and another drain can request a replacement.
func (p *surgePlay) isCancelled() {
	p.request()
	standby := p.placedBeside(surgeOriginal)
	p.report(standby, cluster.ClientRunning)
	p.apply("the cancel", func(index uint64) error {
		return p.cluster.UpdateDrain(index, cluster.DrainUpdate{Node: surgeNode, At: storyTime(p.now)})
	})
	if a := p.row(surgeOriginal); a != nil && a.DesiredTransition.Surge != "" {
		p.fail("allocation %s has the request of a drain that was cancelled: write the rows that CancelDrain withdrew", a.ID)
	}
	if p.err == nil && len(slices.Collect(p.cluster.View().OpenEvals(surgeGroup().Job))) == 0 {
		p.fail("the cancel has no evaluation of job %s: nothing stops the standby %s", surgeGroup().Job, standby)
	}
	p.schedule()
	p.runs(surgeOriginal, "after a cancel the original stays, and its standby stops")
	if a := p.row(standby); a != nil && !a.Terminal() {
		p.fail("allocation %s runs on: the standby stops after a cancel", a.ID)
	}
	p.noneNew("nothing is missing after a cancel")
	if a := p.row(surgeOriginal); a != nil && a.NextAllocation != "" {
		p.fail("NextAllocation of allocation %s is %q after its standby was stopped, want none: another drain can request no replacement", a.ID, a.NextAllocation)
	}
	p.startDrain("d2")
	p.request()
	p.placedBeside(surgeOriginal)
}

// replacementFails: a standby that fails is replaced by a standby, and the last one has the slot.
func (p *surgePlay) replacementFails() {
	p.request()
	failed := p.placedBeside(surgeOriginal)
	p.report(failed, cluster.ClientFailed)
	p.evaluate()
	standby := p.placedBeside(failed)
	p.report(standby, cluster.ClientRunning)
	p.moveOn(failed, standby)
}

// originalFails: its standby has the slot from then on.
func (p *surgePlay) originalFails() {
	p.request()
	standby := p.placedBeside(surgeOriginal)
	p.report(standby, cluster.ClientRunning)
	p.report(surgeOriginal, cluster.ClientFailed)
	p.active("has ended", standby)
	p.evaluate()
	p.noneNew("its standby has the slot of an original that has ended")
	p.runs(standby, "it has the slot of its original")
}

// begin writes the rows of a story, and starts a drain.
func (p *surgePlay) begin(id cluster.DrainID) {
	job := storyJob("web", cluster.JobService, surgeCount, 1)
	g := job.TaskGroups[0]
	g.Migrate.MaxSurge = 1
	g.Reschedule = &cluster.ReschedulePolicy{Unlimited: true, Delay: 5 * time.Second, DelayFunction: cluster.DelayConstant}
	g.Tasks[0].Resources = cluster.Resources{CPU: 100, MemoryMB: 100}
	job.Canonicalize()
	rows := Rows{Jobs: []*cluster.Job{job}}
	for i, id := range []cluster.NodeID{surgeNode, "n2", "n3"} {
		n := &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible}
		n.Resources = cluster.Resources{CPU: 4000, MemoryMB: 4000, DiskMB: 4000}
		n.Canonicalize()
		rows.Nodes = append(rows.Nodes, n)
		if i < surgeCount {
			a := storyAlloc(fmt.Sprintf("w%d", i+1), job, surgeNode)
			a.Name, a.Resources = fmt.Sprintf("web.g[%d]", i), g.Resources()
			rows.Allocs = append(rows.Allocs, a)
			p.seen[a.ID] = true
		}
	}
	p.commit("the rows of the story", rows)
	p.startDrain(id)
	if p.err != nil {
		return
	}
	if beside, can := p.cluster.View().(rules.SurgeView); !can || !beside.PlacesBeside() {
		p.fail("the views do not state that the scheduler places a replacement beside the original: implement rules.SurgeView")
	}
	p.healthy("the count of a group without a standby")
}

func (p *surgePlay) startDrain(id cluster.DrainID) {
	p.apply("the start of a drain", func(index uint64) error {
		u := cluster.DrainUpdate{Node: surgeNode, Drain: id, At: storyTime(p.now), Spec: &cluster.DrainSpec{Deadline: 1000 * time.Hour}}
		return p.cluster.UpdateDrain(index, u)
	})
}

// request requests a replacement of the original, and has the scheduler answer.
func (p *surgePlay) request() {
	p.mark(true)
	if a := p.row(surgeOriginal); a != nil && a.DesiredTransition.Surge == "" {
		p.fail("the request is not in the row of allocation %s: write it with lifecycle.ApplyMark", a.ID)
	}
	p.schedule()
}

// placedBeside returns the only new allocation: a standby allocation that replaces the previous one, which is the original
// or its last standby.
func (p *surgePlay) placedBeside(previous cluster.AllocID) (standby cluster.AllocID) {
	p.runs(surgeOriginal, "the original stays until it is marked")
	original, replaced, placed := p.row(surgeOriginal), p.row(previous), p.placed()
	switch {
	case p.err != nil:
		return ""
	case len(placed) == 0:
		p.fail("no replacement of allocation %s is placed: a drain requests one, and two nodes have room", previous)
		return ""
	case len(placed) > 1:
		p.fail("%d replacements of allocation %s are placed, want one: %s", len(placed), previous, namesOf(placed))
		return ""
	}
	a := placed[0]
	switch {
	case a.PreviousAllocation != previous:
		p.fail("PreviousAllocation of the replacement %s is %q, want %q", a.ID, a.PreviousAllocation, previous)
	case replaced.NextAllocation != a.ID:
		p.fail("NextAllocation of allocation %s is %q, want its replacement %q", previous, replaced.NextAllocation, a.ID)
	case !a.Standby:
		p.fail("the replacement %s has no Standby: it would have a slot of the group beside its original", a.ID)
	case a.NodeID == surgeNode:
		p.fail("the replacement %s is on the draining node", a.ID)
	case original.Name != "" && a.Name != original.Name:
		p.fail("the name of the replacement %s is %q, want that of its original, %q", a.ID, a.Name, original.Name)
	}
	p.seen[a.ID] = true
	return a.ID
}

// moveOn marks the original. Its standbys are active in the entry of the mark, and the scheduler stops the
// original and places nothing.
func (p *surgePlay) moveOn(standbys ...cluster.AllocID) {
	p.mark(false)
	p.active("is marked", standbys...)
	p.schedule()
	if a := p.row(surgeOriginal); a != nil && !a.ServerTerminal() {
		p.fail("allocation %s is marked and not stopped", a.ID)
	}
	p.noneNew("its replacement is there when the original is marked")
	p.runs(standbys[len(standbys)-1], "it has the slot of its original")
}

// active requires that standbys are none any more, since the original has left or ended, and that the last one counts.
func (p *surgePlay) active(why string, standbys ...cluster.AllocID) {
	for _, id := range standbys {
		if a := p.row(id); a != nil && a.Standby {
			p.fail("allocation %s has Standby, but its original %s: write the rows of lifecycle.EndStandby in the same entry", id, why)
		}
	}
	p.healthy("the replacement counts in place of its original")
}

func (p *surgePlay) healthy(why string) {
	if p.err != nil {
		return
	}
	if got := p.cluster.View().Healthy(surgeGroup()); got != surgeCount {
		p.fail("Healthy is %d, want %d: %s", got, surgeCount, why)
	}
}

func (p *surgePlay) runs(id cluster.AllocID, why string) {
	if a := p.row(id); a != nil && a.Terminal() {
		p.fail("allocation %s was stopped: %s", id, why)
	}
}

func (p *surgePlay) noneNew(why string) {
	if placed := p.placed(); len(placed) > 0 {
		p.fail("%s was placed: %s", namesOf(placed), why)
	}
}

// placed are the allocations that run or start, and that the story has not seen.
func (p *surgePlay) placed() []*cluster.Allocation {
	if p.err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Collect(p.cluster.View().GroupAllocs(surgeGroup())), func(a *cluster.Allocation) bool {
		return p.seen[a.ID] || a.Terminal()
	})
}

// row returns an allocation, or nil after an error.
func (p *surgePlay) row(id cluster.AllocID) *cluster.Allocation {
	if p.err != nil {
		return nil
	}
	a := p.cluster.View().Alloc(id)
	if a == nil {
		p.fail("allocation %s is gone", id)
	}
	return a
}

// mark writes an entry with the mark of the original, or with a request for its replacement.
func (p *surgePlay) mark(surge bool) {
	a := p.row(surgeOriginal)
	if a == nil {
		return
	}
	n := p.cluster.View().Node(surgeNode)
	if !n.Draining() {
		p.fail("node %s does not drain", surgeNode)
		return
	}
	m := mark(a, n.Drain.ID, n.Drain.Revision, cluster.MarkPaced)
	m.Surge = surge
	entry := "the mark"
	if surge {
		entry = "the request"
	}
	p.apply(entry, func(index uint64) error {
		refused, err := p.cluster.Marks(index, storyMarks(p.now, p.eval(a.Job), m))
		if err == nil && len(refused) > 0 {
			err = fmt.Errorf("it was refused: %s", refused[0].Why)
		}
		return err
	})
}

// report writes the report of a client. A running allocation is healthy.
func (p *surgePlay) report(id cluster.AllocID, s cluster.ClientStatus) {
	a := p.row(id)
	if a == nil {
		return
	}
	a = a.Copy()
	a.ClientStatus, a.ModifyTime = s, storyTime(p.now)
	if s == cluster.ClientRunning {
		healthy := true
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: &healthy}
	} else {
		a.EndedAt = a.ModifyTime
	}
	p.commit("the report of a client", Rows{Allocs: []*cluster.Allocation{a}})
}

// evaluate writes an evaluation of the job, and has the scheduler answer it.
func (p *surgePlay) evaluate() {
	if a := p.row(surgeOriginal); a != nil {
		p.commit("an evaluation", Rows{Evals: []*cluster.Evaluation{p.eval(a.Job)}})
	}
	p.schedule()
}

func (p *surgePlay) eval(j *cluster.Job) *cluster.Evaluation {
	p.evals++
	return storyEval(fmt.Sprintf("e%d", p.evals), j)
}

// schedule has the scheduler answer an hour later: every delay of a replacement is over.
func (p *surgePlay) schedule() {
	if p.err != nil {
		return
	}
	p.now += time.Hour
	returned := p.watch.began("Schedule")
	err := p.cluster.Schedule(storyTime(p.now))
	returned()
	if err != nil {
		p.fail("scheduling: %w", err)
	}
}

func (p *surgePlay) commit(entry string, rows Rows) {
	p.apply(entry, func(index uint64) error {
		for _, e := range rows.Evals {
			e.CreateIndex = index
		}
		return p.cluster.Commit(index, rows.copy())
	})
}

// apply applies one entry, a minute after the last one.
func (p *surgePlay) apply(entry string, apply func(index uint64) error) {
	if p.err != nil {
		return
	}
	p.now += time.Minute
	returned := p.watch.began("%s", entry)
	err := apply(p.cluster.View().Index() + 1)
	returned()
	if err != nil {
		p.fail("%s: %w", entry, err)
	}
}

func (p *surgePlay) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}
