package timeline

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Trace writes one JSON object in one line for each event of a run:
//
//	{"step":12,"ms":41000,"at":"41s","server":"s2","event":"applied","entry":"NodesDrainComplete","index":118,
//	 "nodes":["n1"],"drains":["d1"],"requests":[57],"text":"end n1 complete","cause":{"by":"drainer","step":9}}
//
// The fields have that order. A line has no empty fields. In an entry of the drainer, requests are
// the indexes of the latest requests for its drains. Make a trace with [NewTrace].
type Trace struct {
	out *json.Encoder
	err error
	// requests are the indexes of the latest requests for drains.
	requests map[cluster.DrainID]uint64
}

// NewTrace returns a trace that writes to w, with one write for each line.
func NewTrace(w io.Writer) *Trace {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return &Trace{out: out, requests: make(map[cluster.DrainID]uint64)}
}

// Position is the time, the place and the cause of an event.
type Position struct {
	// Step is the number of the simulation's step.
	Step uint64
	At   time.Duration
	// Server counts from zero. Negative is no server.
	Server int
	// Cause is nil if it is unknown.
	Cause *Cause
}

// Event is any event except an applied entry.
type Event struct {
	// Kind is a word: "elected", "fault", "woken".
	Kind string
	// Text gives details, or is empty.
	Text string
	// Index is the raft index that the event concerns, or zero.
	Index uint64
	// Allocs are the allocations that the event concerns, or nil.
	Allocs []cluster.AllocID
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

// refused is a refused item of an entry.
type refused struct {
	Node  cluster.NodeID  `json:"node,omitempty"`
	Alloc cluster.AllocID `json:"alloc,omitempty"`
	Why   string          `json:"why"`
}

// Event writes an event.
func (t *Trace) Event(m Position, e Event) {
	l := m.line(e.Kind)
	l.Index, l.Allocs, l.Text = e.Index, e.Allocs, e.Text
	t.write(l)
}

func refusals[R scheduler.Refusal | rules.Refusal](from []R) []refused {
	var all []refused
	for _, r := range from {
		no := rules.Refusal(r)
		all = append(all, refused{no.Node, no.Alloc, no.Why})
	}
	return all
}

// Applied writes an applied entry: its accepted and its refused items.
func (t *Trace) Applied(m Position, a shims.Applied) {
	l := m.line("applied")
	l.Entry, l.Index, l.Text = a.Type.String(), a.Index, describe(a)
	l.setRows(a)
	t.request(&l, a.Response)
	t.write(l)
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

// Err returns the first error of the writer, or nil. After an error the trace writes nothing more.
func (t *Trace) Err() error { return t.err }

func (t *Trace) write(l line) {
	if t.err != nil {
		return
	}
	if err := t.out.Encode(l); err != nil {
		t.err = fmt.Errorf("writing the trace at step %d: %w", l.Step, err)
	}
}

func (m Position) line(event string) line {
	l := line{Step: m.Step, MS: m.At.Milliseconds(), At: m.At.String(), Event: event, Cause: m.Cause}
	if m.Server >= 0 {
		l.Server = serverName(m.Server)
	}
	return l
}

// setRows sets the objects of an entry.
func (l *line) setRows(a shims.Applied) {
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
		l.Jobs = []string{m.Job.Key().String()}
	case *shims.JobDeregister:
		l.Jobs = []string{m.Job.String()}
	case *shims.EvalUpdate:
		for _, e := range m.Evals {
			l.Jobs = append(l.Jobs, e.JobKey().String())
		}
	case *shims.Collect:
		l.Allocs = m.Allocs
		for _, key := range m.Jobs {
			l.Jobs = append(l.Jobs, key.String())
		}
	case *shims.AllocStop:
		l.Allocs = []cluster.AllocID{m.Alloc}
	case *shims.VolumeDetach:
		l.Nodes = []cluster.NodeID{m.Node}
	case *shims.AllocClientUpdate:
		for _, r := range m.Reports {
			l.Allocs = append(l.Allocs, r.Alloc)
		}
	}
	l.answered(a.Response)
}

// answered sets the objects of the accepted items of an entry, and the refused items.
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
		l.Refused = refusals(r.Refused)
	case shims.MarksApplied:
		for _, mark := range r.Accepted {
			l.Allocs = append(l.Allocs, mark.Alloc)
			l.Nodes = append(l.Nodes, mark.Node)
			l.Drains = append(l.Drains, mark.Drain)
		}
		l.Nodes, l.Drains = unique(l.Nodes), unique(l.Drains)
		l.Refused = refusals(r.Refused)
	case shims.CompletionsApplied:
		for _, end := range r.Ended {
			l.Nodes = append(l.Nodes, end.Node)
			l.Drains = append(l.Drains, end.Drain)
		}
		l.Refused = refusals(r.Refused)
	}
	l.Jobs = slices.Compact(l.Jobs)
}
