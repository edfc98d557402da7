package timeline

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Trace writes one JSON object in one line for each event of a run:
//
//	{"step":12,"ms":41000,"at":"41s","server":"s2","event":"applied","entry":"NodesDrainComplete","index":118,
//	 "nodes":["n1"],"drains":["d1"],"requests":[57],"text":"end n1: complete","cause":{"by":"drainer","step":9}}
//
// The fields have that order. A line has no empty fields. In an entry of the drainer, requests are
// the indexes of the latest requests for its drains. Make a trace with [NewTrace].
//
// A step without an event has a line only if another line names it as its cause. Its line then
// precedes that line.
type Trace struct {
	out *json.Encoder
	err error
	// requests are the indexes of the latest requests for drains.
	requests map[cluster.DrainID]uint64
	world    *world.World // nil until Watch
	causes
	// lastWritten is the step of the newest line. began is the start time of the present step.
	lastWritten int
	began       time.Duration
}

// NewTrace returns a trace that writes to w, with one write for each line.
func NewTrace(w io.Writer) *Trace {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return &Trace{out: out, requests: map[cluster.DrainID]uint64{}, causes: causes{
		wakers: map[int]Cause{}, proposers: map[drainerWrite]int{}, unwritten: map[int]silentStep{}, appliers: map[uint64]int{},
	}}
}

// Watch begins the trace of a world. It is for [sim.Options] and is called once.
func (t *Trace) Watch(w *world.World) {
	t.world = w
	t.recordWaker(ByElection, 0)
	t.event(nil, "elected", w.Leader(), "")
	w.OnStep(t.beforeStep)
	w.Observe(world.Observer{
		Applied: t.applied,
		Elected: func(server int) {
			t.event(t.stepCause(), "elected", server, fmt.Sprintf("term %d", w.Term()))
			t.recordWaker(ByElection, 0)
		},
		TermEnded: func(term int) { t.event(t.stepCause(), "deposed", -1, fmt.Sprintf("term %d", term)) },
		Struck: func(s world.Strike) {
			t.event(t.stepCause(), "fault", -1, describeStrike(s))
			t.recordWaker(ByFault, 0)
		},
		ClockSet: t.clock(),
		Restored: func(*statestore.Snapshot, *statestore.Snapshot) { t.event(t.stepCause(), "restored", -1, "") },
		Stepped:  t.drainer,
		Proposed: t.proposed,
		Answered: t.answered,
	})
}

// beforeStep records the last step before the next one begins.
func (t *Trace) beforeStep(last int) error {
	if kind, cause := t.world.Step(); last > t.lastWritten {
		t.unwritten[last] = silentStep{kind, cause, t.began}
	}
	t.began = t.now()
	return nil
}

// clock returns a function that writes a line when the clock of a term's server is set.
func (t *Trace) clock() func(term int, ahead time.Duration) {
	last := map[int]time.Duration{} // by term
	return func(term int, ahead time.Duration) {
		if was, has := last[term]; has && was != ahead {
			t.event(t.stepCause(), "clock", -1, fmt.Sprintf("term %d: %s ahead", term, ahead))
		}
		last[term] = ahead
	}
}

func (t *Trace) applied(a world.Applied) {
	t.appliers[a.Index] = t.world.Steps()
	if a.Message == nil {
		t.writeNow(line{Event: "placed", Text: "past the log", Index: a.Index}, t.stepCause(), -1)
	} else {
		cause := t.proposer(a.Index)
		t.writeReportStep(cause, a)
		l := line{Event: "applied", Entry: a.Type.String(), Index: a.Index, Text: describe(a)}
		l.setRows(a)
		t.request(&l, a.Response)
		t.writeNow(l, cause, t.world.Leader())
	}
	t.recordWaker(ByEntry, a.Index)
}

func (t *Trace) drainer(s world.DrainerStep) {
	cause, text := t.stepCause(), "was woken"
	switch kind, _ := t.world.Step(); {
	case s.Woken:
	case kind == world.Drainer:
		cause.By, cause.Index, text = ByTimer, 0, "was due"
	default:
		text = "was not due" // the last step on a replaced store
	}
	t.event(cause, "drainer", s.Server, text)
}

func (t *Trace) proposed(m world.Proposal) {
	text := fmt.Sprintf("term %d write %d: %s", m.Term, m.N, messageName(m.Message))
	if m.Taken {
		t.proposers[drainerWrite{m.Term, m.N}] = t.world.Steps()
	} else {
		text += ", not taken"
	}
	t.event(&Cause{By: ByDrainer, Step: uint64(t.world.Steps())}, "proposed", t.world.Leader(), text)
}

func (t *Trace) answered(term, n int, a shims.Answer) {
	text := fmt.Sprintf("term %d write %d: %s", term, n, a.Outcome)
	if a.Err != nil {
		text += ", " + a.Err.Error()
	}
	write := drainerWrite{term, n}
	t.event(&Cause{By: ByDrainer, Step: uint64(t.proposers[write])}, "answered", -1, text)
	delete(t.proposers, write)
	t.recordWaker(ByAnswer, 0)
}

// request records the index of a request for a drain. For an entry of the drainer, it sets the
// requests of the line.
func (t *Trace) request(l *line, response shims.Response) {
	switch r := response.(type) {
	case shims.DrainRequestApplied:
		if r.Drain != "" && !r.Repeated {
			t.requests[r.Drain] = l.Index
		}
	case shims.MarksApplied, shims.CompletionsApplied:
		for _, d := range l.Drains {
			if index, has := t.requests[d]; has {
				l.Requests = append(l.Requests, index)
			}
		}
		slices.Sort(l.Requests)
		l.Requests = slices.Compact(l.Requests)
	}
}

// End writes the violations of a run. The error is the first error of the writer. After an error the
// trace writes nothing more.
func (t *Trace) End(r *sim.Result) error {
	for _, v := range r.Violations {
		t.write(line{Step: uint64(r.Steps), Event: "violation", Index: v.Index, Text: v.String()}, v.At.Sub(world.Epoch), -1)
	}
	return t.err
}

// write completes and writes a line. A server counts from zero. A negative one is no server.
func (t *Trace) write(l line, at time.Duration, server int) {
	if t.err != nil {
		return
	}
	l.MS, l.At = at.Milliseconds(), at.String()
	if server >= 0 {
		l.Server = serverName(server)
	}
	if err := t.out.Encode(l); err != nil {
		t.err = fmt.Errorf("writing the trace at step %d: %w", l.Step, err)
	}
}

// now is the time since the run began.
func (t *Trace) now() time.Duration { return t.world.Now().Sub(world.Epoch) }

// writeNow writes a line of the present step, after the lines of its causes.
func (t *Trace) writeNow(l line, cause *Cause, server int) {
	t.writeCauses(cause)
	t.lastWritten = t.world.Steps()
	l.Step, l.Cause = uint64(t.lastWritten), cause
	t.write(l, t.now(), server)
}

func (t *Trace) event(cause *Cause, kind string, server int, text string) {
	t.writeNow(line{Event: kind, Text: text}, cause, server)
}

func messageName(m shims.Message) string {
	if m == nil {
		return "barrier"
	}
	return m.Type().String()
}

// describeStrike describes a strike.
func describeStrike(s world.Strike) string {
	text := string(s.Name)
	if s.Target != "" {
		text += " on " + s.Target
	}
	if s.For > 0 {
		text += " for " + s.For.String()
	}
	return text
}
