package telemetry

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// auditor shows the log to a witness and measures drains. Only its goroutine uses the fields that
// have no other owner.
type auditor struct {
	t       *Telemetry
	options witness.Options
	// since is the start of the server. At a start, raft applies old entries again. The witness
	// checks them, but events before since are not counted again.
	since time.Time

	queue chan shims.Applied
	// stop is closed by close, stopped when run has ended.
	stop, stopped chan struct{}
	stopOnce      sync.Once

	// missed counts the entries that found the queue full. index is the index of the newest judged
	// entry. size is the size of the witness.
	missed, index, size atomic.Uint64

	witness *witness.Witness // nil before the first entry
	// initial is the size of the witness at its start. If it has grown by more than maxGrowth, a
	// new witness replaces it.
	initial, maxGrowth int
	// found counts all findings, also those that were not logged.
	found int
}

func newAuditor(t *Telemetry, o Options) *auditor {
	a := &auditor{
		t: t, since: time.Now().Round(0),
		maxGrowth: maxGrowth,
		queue:     make(chan shims.Applied, o.QueueSize), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	margin := o.Policy.StopMargin
	if margin == 0 {
		margin = rules.DefaultStopMargin
	}
	a.options = witness.Options{
		StopMargin:       margin,
		PluginsAfterStop: o.Policy.PluginsAfterDeadline == rules.PluginsAfterStop,
		MarkedIsComplete: o.Policy.Completion == rules.CompletionMarked,
		MarksOnly:        true,
		OnFinding:        a.report,
	}
	return a
}

// offer queues an entry if there is room. Raft's goroutine for the FSM calls it.
func (a *auditor) offer(entry shims.Applied) {
	select {
	case a.queue <- entry:
	default: // audit finds the gap at the next entry
		a.missed.Add(1)
	}
}

func (a *auditor) close() {
	a.stopOnce.Do(func() { close(a.stop) })
	<-a.stopped
}

// run audits entries until it is closed, and then the entries that are left.
func (a *auditor) run() {
	defer close(a.stopped)
	for {
		select {
		case entry := <-a.queue:
			a.audit(entry)
		case <-a.stop:
			for {
				select {
				case entry := <-a.queue:
					a.audit(entry)
				default:
					return
				}
			}
		}
	}
}

// maxGrowth is the default of auditor.maxGrowth: some megabytes.
const maxGrowth = 10_000

// audit shows one entry to the witness. A new witness starts from the state before the entry if
// the present one does not have that state: at the start, after missed entries, and after a
// restore. A new witness also replaces one that has grown too much.
func (a *auditor) audit(entry shims.Applied) {
	grown := a.witness != nil && a.witness.Size() > a.initial+max(a.initial, a.maxGrowth)
	if a.witness == nil || grown || entry.Before.Index() != a.index.Load() {
		a.witness = witness.Resume(a.options, entry.Before)
		a.initial = a.witness.Size()
	}
	observed := applied.Entry(entry)
	a.witness.Observe(observed)
	a.countMarks(entry)
	a.countLost(entry)
	a.countCollected(entry)
	a.countMoves(entry)
	a.countEnds(entry, observed.Touched.Nodes)
	a.index.Store(entry.Index)
	a.size.Store(uint64(a.witness.Size()))
}

// maxLogged bounds the logged findings. A server that breaks a guarantee with every entry must
// not fill its disk with them.
const maxLogged = 100

// report counts and logs a broken guarantee.
func (a *auditor) report(f witness.Finding) {
	a.t.series.violations.WithLabelValues(f.Kind.Guarantee()).Inc()
	if a.found++; a.found > maxLogged {
		return
	}
	a.t.logger.Error("a guarantee of the drainer is broken", "guarantee", f.Kind.Guarantee(), "kind", f.Kind, "index", f.Index,
		"node", f.Node, "drain", f.Drain, "alloc", f.Alloc, "job", f.Group.Job, "group", f.Group.Name, "why", f.Why)
	if a.found == maxLogged {
		a.t.logger.Error("no more broken guarantees are logged, but they are counted", "series", namespace+"_"+violationsTotal)
	}
}

// countMarks counts the marks and the requests for replacements of an entry, and how long drains waited for their first mark.
func (a *auditor) countMarks(entry shims.Applied) {
	m, marks := entry.Message.(*shims.AllocUpdateDesiredTransition)
	marked, judged := entry.Response.(shims.MarksApplied)
	if !marks || !judged || m.At.Before(a.since) {
		return
	}
	timed := map[cluster.DrainID]bool{}
	for _, mark := range marked.Accepted {
		if mark.Surge {
			a.t.series.surges.WithLabelValues().Inc()
			continue
		}
		a.t.series.marks.WithLabelValues(identifier(mark.Class.String())).Inc()
		n := entry.Before.Node(mark.Node)
		if timed[mark.Drain] || n == nil || n.Drain == nil || n.Drain.Marked != [cluster.MarkClassCount]int{} {
			continue
		}
		timed[mark.Drain] = true
		a.t.series.firstMark.WithLabelValues().Observe(m.At.Sub(n.Drain.Strategy.StartedAt).Seconds())
	}
}

// countLost counts a node whose heartbeat was missed.
func (a *auditor) countLost(entry shims.Applied) {
	m, status := entry.Message.(*shims.NodeUpdateStatus)
	if !status || m.At.Before(a.since) {
		return
	}
	before, after := entry.Before.Node(m.Node), entry.After.Node(m.Node)
	if before != nil && after != nil && before.Status != after.Status && !after.Reachable() {
		a.t.series.heartbeats.WithLabelValues(string(after.Status)).Inc()
	}
}

// countCollected counts the rows that an entry has deleted.
func (a *auditor) countCollected(entry shims.Applied) {
	m, is := entry.Message.(*shims.Collect)
	collected, applied := entry.Response.(shims.CollectApplied)
	if !is || !applied || m.At.Before(a.since) {
		return
	}
	for table, n := range map[string]int{
		statestore.TableAllocs: len(collected.Deleted.Allocs),
		statestore.TableEvals:  len(collected.Deleted.Evals),
		statestore.TableJobs:   len(collected.Deleted.Jobs),
	} {
		a.t.series.collected.WithLabelValues(table).Add(float64(n))
	}
}

// countMoves counts the moves of data that the reports of an entry have ended: those to an allocation, and those
// from an allocation whose client no longer keeps its data.
func (a *auditor) countMoves(entry shims.Applied) {
	m, is := entry.Message.(*shims.AllocClientUpdate)
	if !is || m.At.Before(a.since) { // an entry without a time has no moves
		return
	}
	for _, r := range m.Reports {
		before, after := entry.Before.Alloc(r.Alloc), entry.After.Alloc(r.Alloc)
		if before == nil || after == nil {
			continue
		}
		if in := after.DataIn.StateOf(); in.Ended() && !before.DataIn.StateOf().Ended() {
			a.t.series.moves.WithLabelValues(identifier(string(in))).Inc()
		}
		if r.DataOut != nil && before.DataOut.Kept() && after.DataOut.StateOf() == cluster.DataGivenUp {
			a.t.series.moves.WithLabelValues(identifier(string(cluster.DataGivenUp))).Inc()
		}
	}
}

// countEnds counts the drains of these nodes that ended in an entry.
func (a *auditor) countEnds(entry shims.Applied, nodes []cluster.NodeID) {
	for _, id := range nodes {
		before, after := entry.Before.Node(id), entry.After.Node(id)
		if before == nil || before.Drain == nil || after != nil && after.Drain != nil && after.Drain.ID == before.Drain.ID {
			continue
		}
		record := entry.After.DrainRecord(before.Drain.ID)
		if record == nil || record.EndIndex != entry.Index || record.EndedAt.Before(a.since) {
			continue // the witness reports a missing or wrong record
		}
		outcome := identifier(string(record.Outcome))
		a.t.series.ended.WithLabelValues(outcome).Inc()
		took := record.EndedAt.Sub(record.Strategy.StartedAt)
		a.t.logger.Info("a drain ended", "node", record.NodeID, "drain", record.ID, "outcome", record.Outcome, "took", took,
			"stopping", record.StillStopping, "unconfirmed", record.CountUnconfirmed())
		a.t.series.duration.WithLabelValues(outcome).Observe(took.Seconds())
		if deadline := record.Strategy.ForceDeadline; !deadline.IsZero() && record.EndedAt.After(deadline) {
			a.t.series.lateness.WithLabelValues().Observe(record.EndedAt.Sub(deadline).Seconds())
		}
	}
}
