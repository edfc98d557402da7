package timeline

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Trace writes what happens in a run as it happens, one JSON object a line:
//
//	{"step":12,"ms":41000,"at":"41s","server":"s2","event":"applied","entry":"NodesDrainComplete","index":118,
//	 "nodes":["n1"],"drains":["d1"],"requests":[57],"text":"end n1 complete","cause":{"by":"drainer","step":9}}
//
// The fields come in that order; those with nothing to say are left out. What had it
// happen is its [Cause]; requests are the indexes of the entries in which operators last
// asked for the drains that an entry of the drainer serves.
// Make it with [NewTrace].
type Trace struct {
	out *json.Encoder
	err error
	// requests are the indexes of the entries in which drains were last asked for.
	requests map[cluster.DrainID]uint64
}

// NewTrace returns a trace that writes to w, a write for each line.
func NewTrace(w io.Writer) *Trace {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return &Trace{out: out, requests: make(map[cluster.DrainID]uint64)}
}

// Moment is when and where something happened.
type Moment struct {
	// Step counts what the simulation did.
	Step uint64
	At   time.Duration
	// Server is where it happened, from zero; negative is nowhere.
	Server int
	// Cause is what had it happen, or nil if that is not known.
	Cause *Cause
}

// Event is what happened, but for an applied entry.
type Event struct {
	// Kind is what happened in a word: "elected", "fault", "woken".
	Kind string
	// Text says more, or is empty.
	Text string
	// Index is the raft index it is about, or zero.
	Index uint64
	// What it is about, or nil.
	Nodes  []cluster.NodeID
	Drains []cluster.DrainID
	Allocs []cluster.AllocID
	Jobs   []cluster.JobKey
}

// line is one line of a trace. The order of the fields is that of the output.
type line struct {
	Step     uint64            `json:"step"`
	MS       int64             `json:"ms"`
	At       string            `json:"at"`
	Server   string            `json:"server,omitempty"`
	Event    string            `json:"event"`
	Entry    string            `json:"entry,omitempty"`
	Index    uint64            `json:"index,omitempty"`
	Nodes    []cluster.NodeID  `json:"nodes,omitempty"`
	Drains   []cluster.DrainID `json:"drains,omitempty"`
	Allocs   []cluster.AllocID `json:"allocs,omitempty"`
	Jobs     []string          `json:"jobs,omitempty"`
	Refused  []refused         `json:"refused,omitempty"`
	Requests []uint64          `json:"requests,omitempty"`
	Text     string            `json:"text,omitempty"`
	Cause    *Cause            `json:"cause,omitempty"`
}

// refused is an item of an entry that was not applied with it.
type refused struct {
	Node  cluster.NodeID  `json:"node,omitempty"`
	Alloc cluster.AllocID `json:"alloc,omitempty"`
	Why   string          `json:"why"`
}

// Event writes an event.
func (t *Trace) Event(m Moment, e Event) {
	l := m.line(e.Kind)
	l.Index, l.Nodes, l.Drains, l.Allocs, l.Text = e.Index, e.Nodes, e.Drains, e.Allocs, e.Text
	for _, j := range e.Jobs {
		l.Jobs = append(l.Jobs, j.String())
	}
	t.write(l)
}

// Applied writes an applied entry: what took effect of it, and what was refused.
func (t *Trace) Applied(m Moment, a shims.Applied) {
	l := m.line("applied")
	l.Entry, l.Index, l.Text = a.Type.String(), a.Index, describe(a)
	l.about(a)
	t.request(&l, a.Response)
	t.write(l)
}

// request notes in which entry drains are asked for, and in which those were that an entry
// of the drainer serves.
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

// Err is the first error of the writer, after which nothing was written, or nil.
func (t *Trace) Err() error { return t.err }

func (t *Trace) write(l line) {
	if t.err != nil {
		return
	}
	if err := t.out.Encode(l); err != nil {
		t.err = fmt.Errorf("writing the trace at step %d: %w", l.Step, err)
	}
}

func (m Moment) line(event string) line {
	l := line{Step: m.Step, MS: m.At.Milliseconds(), At: m.At.String(), Event: event, Cause: m.Cause}
	if m.Server >= 0 {
		l.Server = serverName(m.Server)
	}
	return l
}

// about names what an entry is about.
func (l *line) about(a shims.Applied) {
	switch m := a.Message.(type) {
	case *shims.NodeRegister:
		l.Nodes = []cluster.NodeID{m.Node.ID}
	case *shims.NodeDeregister:
		l.Nodes = m.Nodes
	case *shims.NodeUpdateStatus:
		l.Nodes = []cluster.NodeID{m.Node}
	case *shims.NodeUpdateEligibility:
		l.Nodes = []cluster.NodeID{m.Node}
	case *shims.NodeUpdateDrain:
		l.Nodes = []cluster.NodeID{m.Node}
	case *shims.JobRegister:
		l.Jobs = []string{jobKeyOf(m.Job).String()}
	case *shims.JobDeregister:
		l.Jobs = []string{m.Job.String()}
	case *shims.EvalUpdate:
		for _, e := range m.Evals {
			l.Jobs = append(l.Jobs, e.JobKey().String())
		}
	case *shims.AllocClientUpdate:
		for _, r := range m.Reports {
			l.Allocs = append(l.Allocs, r.Alloc)
		}
	}
	l.answered(a.Response)
}

// answered names what took effect of an entry of items, and what was refused.
func (l *line) answered(response shims.Response) {
	switch r := response.(type) {
	case shims.DrainRequestApplied:
		if r.Drain != "" {
			l.Drains = []cluster.DrainID{r.Drain}
		}
	case shims.PlanApplied:
		for _, stop := range r.Accepted.Stops {
			l.Allocs = append(l.Allocs, stop.Alloc)
		}
		for _, place := range r.Accepted.Places {
			l.Allocs = append(l.Allocs, place.ID)
		}
		for _, no := range r.Refused {
			l.Refused = append(l.Refused, refused{no.Node, no.Alloc, no.Why})
		}
	case shims.MarksApplied:
		for _, mark := range r.Accepted {
			l.Allocs = append(l.Allocs, mark.Alloc)
			l.Nodes = append(l.Nodes, mark.Node)
			l.Drains = append(l.Drains, mark.Drain)
		}
		l.Nodes, l.Drains = unique(l.Nodes), unique(l.Drains)
		for _, no := range r.Refused {
			l.Refused = append(l.Refused, refused{no.Node, no.Alloc, no.Why})
		}
	case shims.CompletionsApplied:
		for _, end := range r.Ended {
			l.Nodes = append(l.Nodes, end.Node)
			l.Drains = append(l.Drains, end.Drain)
		}
		for _, no := range r.Refused {
			l.Refused = append(l.Refused, refused{no.Node, no.Alloc, no.Why})
		}
	}
	l.Jobs = slices.Compact(l.Jobs)
}
