package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Transcript records a run as text: the requests of operators, the writes of the drainer, and
// the reason why each allocation is still on its draining node. Make it with [NewTranscript].
type Transcript struct {
	world *World
	// since is the time since the transcript began.
	since func() time.Duration
	lines []line
	// waits holds the last recorded reasons of each draining node.
	waits map[cluster.NodeID]string
	// Everything adds plans and the reports of clients.
	Everything bool
	// Brief writes the number of allocations instead of their names.
	Brief bool
}

// line is one line of a transcript.
type line struct {
	at      time.Duration
	verb    string
	node    cluster.NodeID // or empty
	details string
}

// maxNames is the largest number of names in a line. Instead of more names, a line has their
// number.
const maxNames = 8

// NewTranscript starts a transcript. Its times count from the world's current time.
func NewTranscript(w *World) *Transcript {
	start := w.now
	t := &Transcript{world: w, since: func() time.Duration { return w.now.Sub(start) }, waits: map[cluster.NodeID]string{}}
	w.Observe(Observer{Applied: t.entry, NodeChanged: func(id cluster.NodeID, change NodeChange) {
		t.nodeLine("node ", id, ": %s", string(change))
	}})
	return t
}

// String returns the lines of the transcript. It merges more than eight consecutive lines that
// differ only in their nodes.
func (t *Transcript) String() string {
	var b strings.Builder
	for i := 0; i < len(t.lines); {
		l := t.lines[i]
		same := 1
		for i+same < len(t.lines) && t.lines[i+same].sameButNode(l) {
			same++
		}
		node := string(l.node)
		if same <= maxNames {
			same = 1
		} else {
			node = fmt.Sprintf("%d nodes", same)
		}
		fmt.Fprintf(&b, "%-7s %s%s%s\n", l.at, l.verb, node, l.details)
		i += same
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// sameButNode reports whether two lines have nodes and differ at most in the node.
func (l line) sameButNode(o line) bool {
	return l.node != "" && o.node != "" && l.at == o.at && l.verb == o.verb && l.details == o.details
}

// line adds a line without a node.
func (t *Transcript) line(format string, args ...any) {
	t.lines = append(t.lines, line{at: t.since(), verb: fmt.Sprintf(format, args...)})
}

// nodeLine adds a line of a node.
func (t *Transcript) nodeLine(verb string, id cluster.NodeID, format string, args ...any) {
	t.lines = append(t.lines, line{
		at: t.since(), verb: verb, node: id, details: fmt.Sprintf(format, args...),
	})
}

// EntryText returns the lines of an entry in a transcript, without those of claims, as one line. It is
// empty if the transcript has none.
func EntryText(a shims.Applied) string {
	t := Transcript{since: func() time.Duration { return 0 }}
	t.changes(a)
	texts := make([]string, len(t.lines))
	for i, l := range t.lines {
		texts[i] = l.verb + string(l.node) + l.details
	}
	return strings.Join(texts, "; ")
}

// entry adds the lines of an applied entry.
func (t *Transcript) entry(a shims.Applied) {
	t.changes(a)
	if _, refused := a.Response.(shims.Refused); !refused {
		t.claims(a)
	}
}

// changes adds the lines of an entry, without those of claims.
func (t *Transcript) changes(a shims.Applied) {
	if refused, is := a.Response.(shims.Refused); is {
		t.line("%s refused: %v", a.Type, refused.Err)
		return
	}
	defer t.confirmations(a)
	switch m := a.Message.(type) {
	case *shims.NodeUpdateDrain:
		t.drain(a, m)
	case *shims.PauseDrains:
		t.pause(a, m)
	case *shims.AllocUpdateDesiredTransition:
		t.marks(a, m)
	case *shims.NodesDrainComplete:
		t.completions(a)
	case *shims.JobRegister:
		t.line("job %s", describeJob(m.Job))
	case *shims.JobDeregister:
		t.line("%s job %s", map[bool]string{false: "stop", true: "purge"}[m.Purge], scenario.JobText(m.Job))
	case *shims.Collect:
		t.collected(a)
	case *shims.NodeUpdateStatus:
		t.nodeLine("node ", m.Node, " %s", a.After.Node(m.Node).Status)
	case *shims.NodeUpdateEligibility:
		t.nodeLine("node ", m.Node, " %s", m.Eligibility)
	case *shims.NodeRegister:
		t.registers(a, m.Node.ID)
	case *shims.NodeDeregister:
		for _, id := range m.Nodes {
			t.nodeLine("delete ", id, "")
		}
	case *shims.ApplyPlan:
		t.rollout(a, m)
		if t.Everything {
			t.plan(a)
		}
	case *shims.AllocClientUpdate:
		if t.Everything {
			t.reports(a, m)
		}
	}
}

// registers adds a line for a registration, with the number of unlisted allocations if it has changed.
func (t *Transcript) registers(a shims.Applied, id cluster.NodeID) {
	text, before, after := " registers", a.Before.Node(id), a.After.Node(id)
	if after != nil && (before == nil && after.Unlisted.Len() > 0 || before != nil && !before.Unlisted.Equal(after.Unlisted)) {
		text += fmt.Sprintf(", %d unlisted", after.Unlisted.Len())
	}
	t.nodeLine("node ", id, "%s", text)
}

func (t *Transcript) drain(a shims.Applied, m *shims.NodeUpdateDrain) {
	updated := a.Response.(shims.DrainRequestApplied)
	switch was := a.Before.Node(m.Node); {
	case updated.Repeated:
		t.nodeLine("drain ", m.Node, ": repeated request")
	case m.Spec != nil && was.Draining():
		t.nodeLine("update the drain of ", m.Node, ": %s", describeSpec(*m.Spec))
	case m.Spec != nil:
		t.nodeLine("drain ", m.Node, ": %s", describeSpec(*m.Spec))
	case updated.Drain == "":
		t.nodeLine("cancel ", m.Node, ": it does not drain")
	default:
		text := fmt.Sprintf(": %d marks withdrawn", updated.Withdrawn)
		if len(updated.Stopping) > 0 {
			text += ", stopping already: " + t.names(a.Before, updated.Stopping)
		}
		if n := a.After.DrainRecord(updated.Drain).CountUnconfirmed(); n > 0 {
			text += fmt.Sprintf(", %d unconfirmed", n)
		}
		t.nodeLine("cancel ", m.Node, "%s", text)
	}
}

func (t *Transcript) pause(a shims.Applied, m *shims.PauseDrains) {
	done, verb := a.Response.(shims.DrainPauseApplied), "resume"
	if m.Pause {
		verb = "pause"
	}
	text := ""
	if !done.Changed {
		text = ": nothing changes"
	}
	for _, d := range done.Drains {
		if !m.Pause && done.Changed && !d.ForceDeadline.IsZero() {
			text += fmt.Sprintf(": deadline in %s", scenario.DurationText(d.ForceDeadline.Sub(m.At)))
		}
	}
	if m.Node == "" {
		t.line("%s all drains%s", verb, text)
		return
	}
	t.nodeLine(verb+" the drain of ", m.Node, "%s", text)
}

func (t *Transcript) marks(a shims.Applied, m *shims.AllocUpdateDesiredTransition) {
	marked := a.Response.(shims.MarksApplied)
	var parts []string
	for class := range cluster.MarkClassCount {
		var ids []cluster.AllocID
		for _, mark := range marked.Accepted {
			if mark.Class == class && !mark.Surge {
				ids = append(ids, mark.Alloc)
			}
		}
		if len(ids) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", t.names(a.Before, ids), class))
		}
	}
	if len(parts) > 0 {
		t.line("mark %s", strings.Join(parts, ", "))
	}
	var requested []cluster.AllocID
	for _, mark := range marked.Accepted {
		if mark.Surge {
			requested = append(requested, mark.Alloc)
		}
	}
	if len(requested) > 0 {
		t.line("request replacements of %s", t.names(a.Before, requested))
	}
	t.refused(a, marked.Refused)
	if len(m.Marks.Marks) == 0 {
		for _, key := range m.Reevaluate {
			t.line("evaluate %s again", scenario.GroupText(key))
		}
	}
}

func (t *Transcript) completions(a shims.Applied) {
	completed := a.Response.(shims.CompletionsApplied)
	for _, e := range completed.Ended {
		text := fmt.Sprintf(": %s", e.Outcome)
		if e.StillStopping > 0 {
			text += fmt.Sprintf(", %d still stopping", e.StillStopping)
		}
		if e.Unconfirmed != nil {
			text += fmt.Sprintf(", %d unconfirmed", e.Unconfirmed.Count)
		}
		t.nodeLine("end ", e.Node, "%s", text)
	}
	t.refused(a, completed.Refused)
}

// rollout adds a line for the allocations that a plan stops because their job has other tasks.
func (t *Transcript) rollout(a shims.Applied, m *shims.ApplyPlan) {
	var ids []cluster.AllocID
	for _, s := range m.Stops {
		was, is := a.Before.Alloc(s.Alloc), a.After.Alloc(s.Alloc)
		if was != nil && !was.ServerTerminal() && is.ServerTerminal() && is.DesiredDescription == cluster.DescNewerVersion {
			ids = append(ids, s.Alloc)
		}
	}
	if len(ids) > 0 {
		t.line("replace %s", t.names(a.Before, ids))
	}
}

// confirmations adds a line for each record whose count of unconfirmed allocations has fallen.
func (t *Transcript) confirmations(a shims.Applied) {
	if a.After.TableIndex(statestore.TableDrains) == a.Before.TableIndex(statestore.TableDrains) {
		return
	}
	for d := range a.After.Drains() {
		before := a.Before.DrainRecord(d.ID)
		if before == nil || before.CountUnconfirmed() == d.CountUnconfirmed() {
			continue
		}
		text := fmt.Sprintf(": %d of %d unconfirmed", before.CountUnconfirmed()-d.CountUnconfirmed(), before.CountUnconfirmed())
		if by := d.Unconfirmed.ConfirmedBy; by != "" {
			text += ", by " + by
		} else if other := d.Unconfirmed.Other; other != before.Unconfirmed.Other {
			text += fmt.Sprintf(", by %s with another drain", other.By)
		}
		t.nodeLine("confirmed ", d.NodeID, "%s", text)
	}
}

func (t *Transcript) collected(a shims.Applied) {
	done := a.Response.(shims.CollectApplied)
	var parts []string
	if len(done.Deleted.Allocs) > 0 {
		parts = append(parts, t.names(a.Before, done.Deleted.Allocs))
	}
	if n := len(done.Deleted.Evals); n > 0 {
		parts = append(parts, fmt.Sprintf("(%d) evaluations", n))
	}
	for _, key := range done.Deleted.Jobs {
		parts = append(parts, "job "+scenario.JobText(key))
	}
	if done.Kept > 0 {
		parts = append(parts, fmt.Sprintf("(%d) kept", done.Kept))
	}
	t.line("collect %s", strings.Join(parts, ", "))
}

func (t *Transcript) refused(a shims.Applied, refusals []rules.Refusal) {
	for _, r := range refusals {
		if r.Alloc == "" {
			t.nodeLine("refused the end of ", r.Node, ": %s", r.Why)
		} else {
			t.line("refused %s: %s", t.names(a.Before, []cluster.AllocID{r.Alloc}), r.Why)
		}
	}
}

func (t *Transcript) plan(a shims.Applied) {
	applied := a.Response.(shims.PlanApplied)
	for _, s := range applied.Accepted.Stops {
		t.line("  stop %s", t.names(a.Before, []cluster.AllocID{s.Alloc}))
	}
	for _, p := range applied.Accepted.Places {
		t.line("  place %s", allocLabel(p))
	}
	for _, r := range applied.Refused {
		t.line("  plan refused: %s", r.Why)
	}
}

func (t *Transcript) reports(a shims.Applied, m *shims.AllocClientUpdate) {
	for _, r := range m.Reports {
		text := string(r.ClientStatus)
		if r.Healthy != nil {
			text += map[bool]string{false: ", unhealthy", true: ", healthy"}[*r.Healthy]
		}
		t.line("  report %s %s", t.names(a.After, []cluster.AllocID{r.Alloc}), text)
	}
}

// Reasons adds a line for each draining node whose reasons have changed: why its allocations are
// still there. Call it when no event is left at the current time; see [Loop.OnQuiet].
func (t *Transcript) Reasons() {
	draining := map[cluster.NodeID]bool{}
	for n := range t.world.State().DrainView().DrainingNodes() {
		draining[n.ID] = true
		report, _ := t.world.Servers.leader.drainer.Explain(n.ID, t.world.Clock())
		text := t.describe(report)
		if t.waits[n.ID] != text && text != "" {
			t.nodeLine("  ", n.ID, ": %s", text)
		}
		t.waits[n.ID] = text
	}
	for id := range t.waits {
		if !draining[id] {
			delete(t.waits, id)
		}
	}
}

func (t *Transcript) describe(r rules.Report) string {
	var parts []string
	for reason := range rules.ReasonCount {
		var ids []cluster.AllocID
		for _, a := range r.Allocs {
			if a.Reason == reason {
				ids = append(ids, a.Alloc)
			}
		}
		if len(ids) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", t.names(t.world.State(), ids), reason))
		}
	}
	return strings.Join(parts, ", ")
}

// names returns the labels of allocations, or their number if there are many.
func (t *Transcript) names(state *statestore.Snapshot, ids []cluster.AllocID) string {
	if len(ids) > maxNames || t.Brief {
		return fmt.Sprintf("(%d)", len(ids))
	}
	labels := make([]string, len(ids))
	for i, id := range ids {
		labels[i] = string(id)
		if a := state.Alloc(id); a != nil {
			labels[i] = allocLabel(a)
		}
	}
	slices.Sort(labels)
	return strings.Join(labels, " ")
}

// claims adds a line for each claim that an entry has created, changed or freed.
func (t *Transcript) claims(a shims.Applied) {
	if a.After.TableIndex(statestore.TableClaims) == a.Before.TableIndex(statestore.TableClaims) {
		return
	}
	change := func(c *cluster.VolumeClaim, state *statestore.Snapshot, format string, args ...any) {
		t.line("  %s for %s: %s", c.Volume.ID, t.names(state, []cluster.AllocID{c.Alloc}), fmt.Sprintf(format, args...))
	}
	for c := range a.Before.WorkView().Claims() {
		switch now := a.After.WorkView().Claim(c.Key()); {
		case now == nil:
			change(c, a.Before, "freed")
		case now.State != c.State:
			change(c, a.Before, "%s", now.State)
		case now.Attached && !c.Attached:
			change(c, a.Before, "attached")
		}
	}
	for c := range a.After.WorkView().Claims() {
		if a.Before.WorkView().Claim(c.Key()) == nil {
			change(c, a.After, "claimed")
		}
	}
}

// allocLabel is the group's label with an index and a node: "job.group[index]@node".
func allocLabel(a *cluster.Allocation) string {
	index := a.Name[strings.LastIndexByte(a.Name, '[')+1:]
	return fmt.Sprintf("%s[%s@%s", scenario.GroupText(a.GroupKey()), index, a.NodeID)
}

func describeJob(j *cluster.Job) string {
	parts := []string{scenario.JobText(j.Key())}
	for _, g := range j.TaskGroups {
		text := fmt.Sprintf("%s count %d", g.Name, g.Count)
		if g.Migrate != nil {
			text += fmt.Sprintf(" max_parallel %d", g.Migrate.MaxParallel)
			if g.Migrate.MaxSurge > 0 {
				text += fmt.Sprintf(" max_surge %d", g.Migrate.MaxSurge)
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func describeSpec(s cluster.DrainSpec) string {
	text := "no deadline"
	switch {
	case s.Deadline > 0:
		text = "deadline " + s.Deadline.String()
	case s.Deadline < 0:
		text = "force"
	}
	if s.IgnoreSystemJobs {
		text += ", without system jobs"
	}
	if s.MaxSurge > 0 {
		text += fmt.Sprintf(", max_surge %d", s.MaxSurge)
	}
	return text
}
