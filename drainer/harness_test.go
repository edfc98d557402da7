package drainer

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// harness steps a term as its goroutine would.
type harness struct {
	t      testingT
	config NodeDrainerConfig
	state  *memory
	raft   *fakeRaft
	wake   chan struct{}
	term   *Term
	errors *logged // the harness's, unless the config has a logger
	now    time.Time
	wakeAt time.Time
	steps  int
}

// testingT are the methods that must and rapid share.
type testingT interface {
	Helper()
	Fatalf(string, ...any)
}

// newHarness begins a term over a cluster, at the epoch. Edit may be nil.
func newHarness(t testingT, w *fixture.Cluster, edit func(*NodeDrainerConfig)) *harness {
	h := &harness{t: t, state: newMemory(w), errors: &logged{}, now: fixture.Epoch}
	h.raft = &fakeRaft{state: h.state}
	ids := 0
	h.config = NodeDrainerConfig{Raft: h.raft, Logger: slog.New(h.errors), NewEvalID: func() cluster.EvalID {
		ids++
		return cluster.EvalID("eval-" + string(rune('a'+ids/26%26)) + string(rune('a'+ids%26)) + string(rune('a'+ids/676%26)))
	}}
	if edit != nil {
		edit(&h.config)
	}
	h.restart()
	return h
}

// restart begins a new term over the same state. It loses what the earlier term remembered.
func (h *harness) restart() {
	h.t.Helper()
	if h.term != nil {
		h.term.Close()
	}
	h.wake = make(chan struct{}, 1)
	term, err := NewTerm(h.config, h.state, h.wake)
	if err != nil {
		h.t.Fatalf("beginning a term: %v", err)
	}
	h.term = term
	h.step()
}

func (h *harness) step() {
	h.steps++
	h.wakeAt = h.term.Step(h.now)
}

// due reports whether the term was woken, or its time has come.
func (h *harness) due() bool {
	select {
	case <-h.wake:
		return true
	default:
		return !h.wakeAt.IsZero() && !h.now.Before(h.wakeAt)
	}
}

// run steps until there is nothing to do now.
func (h *harness) run() {
	h.t.Helper()
	for range 1000 {
		if !h.due() {
			return
		}
		h.step()
	}
	h.t.Fatalf("the term steps without end at %s: its next step is at %s", h.now, h.wakeAt)
}

// settle steps and answers until there is nothing to do now.
func (h *harness) settle() {
	h.t.Helper()
	for range 1000 {
		h.run()
		if !h.raft.answer() {
			return
		}
	}
	h.t.Fatalf("the term writes without end at %s", h.now)
}

// advance lets time pass, and settles at each time that a step returned.
func (h *harness) advance(d time.Duration) {
	h.t.Helper()
	until := h.now.Add(d)
	for range 100_000 {
		h.settle()
		if h.wakeAt.IsZero() || h.wakeAt.After(until) {
			h.now = until
			h.settle()
			return
		}
		h.now = h.wakeAt
	}
	h.t.Fatalf("the term is stepped too often before %s", until)
}

// commit changes the state.
func (h *harness) commit(edit func(*fixture.Cluster)) { h.state.commit(edit) }

// schedule is a scheduler with unlimited capacity. It stops marked allocations immediately, and
// places healthy replacements of services on the first ready node.
func (h *harness) schedule() {
	h.commit(func(w *fixture.Cluster) {
		for _, e := range w.Evals {
			if e.Status != cluster.EvalPending {
				continue
			}
			e.Status = cluster.EvalComplete
			for _, a := range slices.Clone(w.Allocs) {
				if a.JobKey() == e.JobKey() && a.Marked() && !a.Terminal() {
					migrate(w, a)
				}
			}
		}
	})
}

// migrate stops an allocation, and replaces it if it belongs to a service.
func migrate(w *fixture.Cluster, a *cluster.Allocation) {
	a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientComplete
	i := slices.IndexFunc(w.Nodes, func(n *cluster.Node) bool { return n.Ready() })
	job := w.Job(a.JobKey())
	if a.JobType() != cluster.JobService || i < 0 || job.Stopped() {
		return
	}
	next := w.Place(a.ID+"'", job, w.Nodes[i].ID)
	next.TaskGroup, next.PreviousAllocation, a.NextAllocation = a.TaskGroup, a.ID, next.ID
}

// wait lets time pass until the term's next step.
func (h *harness) wait() {
	if h.wakeAt.After(h.now) {
		h.now = h.wakeAt
	}
}

// logged is a [slog.Handler] that keeps the messages of errors.
type logged struct{ messages []string }

func (l *logged) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.messages = append(l.messages, r.Message)
	return nil
}

func (l *logged) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *logged) WithGroup(string) slog.Handler { return l }

// journal is a [slog.Handler] that keeps warnings and messages for operators, with their
// attributes.
type journal struct{ lines []string }

func (j *journal) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	j.lines = append(j.lines, line)
	return nil
}

func (j *journal) WithAttrs([]slog.Attr) slog.Handler { return j }

func (j *journal) WithGroup(string) slog.Handler { return j }

// with returns the lines that contain the text, without it.
func (j *journal) with(text string) (lines []string) {
	for _, line := range j.lines {
		if strings.Contains(line, text) {
			lines = append(lines, strings.Replace(line, text, "...", 1))
		}
	}
	return lines
}
