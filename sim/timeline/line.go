package timeline

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

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

func refusals[R scheduler.Refusal | rules.Refusal](from []R) []refused {
	var all []refused
	for _, r := range from {
		no := rules.Refusal(r)
		all = append(all, refused{no.Node, no.Alloc, no.Why})
	}
	return all
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
