package drainertest

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// FSM is a state machine as [TestFSM] uses it. All methods except View and Record apply one entry
// with a raft index. After an error the entry has changed only the index.
type FSM interface {
	// Commit writes rows as they are and replaces existing ones. In an existing allocation the
	// story changes only DesiredStatus with StoppedAt, ClientStatus and ModifyTime, in an existing
	// evaluation only Status.
	Commit(index uint64, rows Rows) error
	// UpdateDrain applies an operator's request. It changes nothing if a drain of the node has the
	// request's key.
	UpdateDrain(index uint64, u cluster.DrainUpdate) error
	// Marks applies an entry of marks and returns what it refused.
	Marks(index uint64, m *rules.Marks) ([]rules.Refusal, error)
	// Completions applies an entry of completions and returns what it refused.
	Completions(index uint64, c *rules.Completions) ([]rules.Refusal, error)
	// View returns the newest state. It may be called while an entry is applied.
	View() rules.View
	// Record returns the record of an ended drain, or nil.
	Record(cluster.DrainID) *cluster.Drain
}

// TestFSM tests that a state machine checks each entry again, applies only the accepted items, and
// writes them as package lifecycle does, in one transaction. TestFSM applies the entries of a story
// to the state machine and to a reference of package rules and package lifecycle, and compares
// rows, records and refusals after each entry. An error names the entry, the row and the field.
// newFSM makes a state machine with an empty state.
//
// It compares the fields of [DecisionFields], SchedulingEligibility of nodes, and the fields
// of records.
func TestFSM(newFSM func() FSM) error { return testFSM(newFSM, CallLimit) }

func testFSM(newFSM func() FSM, callLimit time.Duration) error {
	w := &watch{callLimit: callLimit}
	return w.run(func() error {
		p := &fsmPlay{fsm: newFSM(), watch: w, want: newReferenceFSM()}
		for _, s := range fsmStory() {
			p.index++
			if err := p.play(s); err != nil {
				return fmt.Errorf("entry %d, %s: %w", p.index, s.title, err)
			}
		}
		return testOneTransaction(newFSM(), w)
	})
}

// fsmPlay applies a story to the state machine under test and to the reference.
type fsmPlay struct {
	fsm   FSM
	want  *referenceFSM
	watch *watch
	index uint64
}

// fsmStep is one entry of a story.
type fsmStep struct {
	title string
	apply func(f FSM, index uint64) ([]rules.Refusal, error)
}

func (p *fsmPlay) play(s fsmStep) error {
	wantRefused, wantErr := s.apply(p.want, p.index)
	returned := p.watch.began("the entry %q", s.title)
	refused, err := s.apply(p.fsm, p.index)
	returned()
	switch {
	case err == nil && wantErr != nil:
		return fmt.Errorf("it was applied, want an error such as: %w", wantErr)
	case err != nil && wantErr == nil:
		return fmt.Errorf("it was refused: %w", err)
	}
	if got, want := itemsOf(refused), itemsOf(wantRefused); got != want {
		return fmt.Errorf("the FSM refused [%s], want [%s]", got, want)
	}
	if err := p.want.state.Load().compareAll(p.fsm.View()); err != nil {
		return err
	}
	for _, id := range p.want.drains {
		if err := diffRecord(id, p.fsm.Record(id), p.want.Record(id)); err != nil {
			return err
		}
	}
	return nil
}

// itemsOf names the refused items, in order.
func itemsOf(refused []rules.Refusal) string {
	items := make([]string, len(refused))
	for i, r := range refused {
		items[i] = strings.TrimSpace(fmt.Sprintf("%s %s", r.Node, r.Alloc))
	}
	slices.Sort(items)
	return strings.Join(items, ", ")
}

// diffRecord returns the field in which a record differs.
func diffRecord(id cluster.DrainID, got, want *cluster.Drain) error {
	switch {
	case got == nil && want == nil:
		return nil
	case got == nil:
		return fmt.Errorf("the record of drain %s is missing", id)
	case want == nil:
		return fmt.Errorf("drain %s has a record, but has not ended", id)
	}
	if d := diffRow(got, want, "NodeID", "Outcome", "EndedAt", "StillStopping", "EndIndex"); d != "" {
		return fmt.Errorf("the record of %s", d)
	}
	// An FSM of an older cluster version leaves the field out.
	if u, w := got.Unconfirmed, want.Unconfirmed; u != nil && (w == nil || u.Count != w.Count || !slices.Equal(u.Allocs, w.Allocs)) {
		return fmt.Errorf("the record of drain %s counts %v as unconfirmed, want %v", id, *u, w)
	}
	return nil
}

// compareAll compares all rows of a view with those of the model, and the lists.
func (m *model) compareAll(v rules.View) error {
	if v.Index() != m.index {
		return fmt.Errorf("Index is %d, want %d", v.Index(), m.index)
	}
	for _, id := range sortedKeys(m.nodes, cmp.Compare) {
		if d := diffRow(v.Node(id), m.nodes[id], "SchedulingEligibility"); d != "" {
			return fmt.Errorf("Node(%s): %s", id, d)
		}
	}
	for _, id := range sortedKeys(m.allocs, cmp.Compare) {
		if d := diffRow(v.Alloc(id), m.allocs[id]); d != "" {
			return fmt.Errorf("Alloc(%s): %s", id, d)
		}
	}
	if err := differ("DrainingNodes()", v.DrainingNodes(), m.DrainingNodes()); err != nil {
		return err
	}
	for _, key := range sortedKeys(m.jobs, cluster.JobKey.Compare) {
		if err := differ(fmt.Sprintf("OpenEvals(%s)", key), ofStory(v.OpenEvals(key)), m.OpenEvals(key)); err != nil {
			return err
		}
	}
	return nil
}

// ofStory leaves out the evaluations that the state machine added itself.
func ofStory(evals iter.Seq[*cluster.Evaluation]) iter.Seq[*cluster.Evaluation] {
	return func(yield func(*cluster.Evaluation) bool) {
		for e := range evals {
			if strings.HasPrefix(string(e.ID), storyEvals) && !yield(e) {
				return
			}
		}
	}
}

// transactions is how many entries testOneTransaction applies.
const transactions = 100

// testOneTransaction reads a state machine while entries of marks are applied. In every view, a
// marked allocation has its evaluation and is counted in its drain.
func testOneTransaction(f FSM, w *watch) error {
	rows := Rows{Nodes: []*cluster.Node{{ID: "n1", Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible}}}
	for i := range transactions {
		a := storyAlloc(fmt.Sprintf("a%03d", i), storyJob(cluster.JobID(fmt.Sprintf("j%03d", i)), cluster.JobService, 1, 1), "n1")
		rows.Allocs, rows.Jobs = append(rows.Allocs, a), append(rows.Jobs, a.Job)
	}
	if err := f.Commit(1, rows); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	if err := f.UpdateDrain(2, cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}, At: storyTime(0)}); err != nil {
		return fmt.Errorf("starting a drain: %w", err)
	}
	stop, found := make(chan struct{}), make(chan error, 1)
	go func() { found <- readWhole(f, stop) }()
	for i, a := range rows.Allocs {
		index := uint64(3 + i)
		m := storyMarks(time.Minute, storyEval("e-"+string(a.JobID), a.Job), mark(a, "d1", 2, cluster.MarkPaced))
		returned := w.began("the entry of marks %d", index)
		_, err := f.Marks(index, m)
		returned()
		if err != nil {
			close(stop)
			return fmt.Errorf("marking allocation %s: %w", a.ID, err)
		}
	}
	close(stop)
	return <-found
}

// readWhole reads the newest state until stop is closed. It returns an error for the first
// half-written entry that it finds.
func readWhole(f FSM, stop chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		v := f.View()
		marked := 0
		for a := range v.DrainAllocs("d1") {
			marked++
			evals := 0
			for range v.OpenEvals(a.JobKey()) {
				evals++
			}
			if evals == 0 {
				return fmt.Errorf("a view of index %d shows the mark of allocation %s without its evaluation: the FSM must write both in one transaction", v.Index(), a.ID)
			}
		}
		if n := v.Node("n1"); n != nil && n.Drain != nil && n.Drain.Marked[cluster.MarkPaced] != marked {
			return fmt.Errorf("a view of index %d shows %d marks, but the drain counts %d: the FSM must write both in one transaction", v.Index(), marked, n.Drain.Marked[cluster.MarkPaced])
		}
		if want := uint64(2 + marked); v.Index() != want {
			return fmt.Errorf("a view of index %d shows %d marks: the index and the rows of an entry must become visible together", v.Index(), marked)
		}
	}
}
