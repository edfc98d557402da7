package setting

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Provocation is an entry's opportunity for a fault that has something operated on a node
// or a job.
type Provocation struct {
	Fault  scenario.FaultName
	Target Target
	node   cluster.NodeID
	job    cluster.JobKey
}

// Provocations are the opportunities of an entry that was applied, in the order in which
// faults see them.
func Provocations(a shims.Applied) []Provocation {
	switch m := a.Message.(type) {
	case *shims.AllocUpdateDesiredTransition:
		if marked, is := a.Response.(shims.MarksApplied); is && len(marked.Accepted) > 0 {
			return ofMarks(marked)
		}
	case *shims.NodesDrainComplete:
		var all []Provocation
		if completed, is := a.Response.(shims.CompletionsApplied); is {
			for _, e := range completed.Ended {
				all = append(all, ofNode(scenario.DrainAgain, e.Node))
			}
		}
		return all
	case *shims.NodeUpdateDrain:
		if a.Before.Node(m.Node).Draining() && !a.After.Node(m.Node).Draining() {
			return []Provocation{ofNode(scenario.DrainAgain, m.Node)}
		}
	case *shims.NodeUpdateStatus:
		if a.Before.Node(m.Node).Reachable() && !a.After.Node(m.Node).Reachable() {
			return []Provocation{ofNode(scenario.NodeReturn, m.Node)}
		}
	}
	return nil
}

// ofMarks are the opportunities of an entry that has marked something.
func ofMarks(marked shims.MarksApplied) []Provocation {
	all := []Provocation{{Fault: scenario.StoreRestore}}
	var nodes []cluster.NodeID
	var jobs []cluster.JobKey
	for _, mark := range marked.Accepted {
		if !slices.Contains(nodes, mark.Node) {
			nodes = append(nodes, mark.Node)
			all = append(all, ofNode(scenario.DrainUpdate, mark.Node), ofNode(scenario.DrainCancel, mark.Node))
		}
		if key := mark.Group.Job; !slices.Contains(jobs, key) {
			jobs = append(jobs, key)
			for _, f := range [...]scenario.FaultName{scenario.JobEdit, scenario.JobScale, scenario.JobPurge} {
				all = append(all, Provocation{Fault: f, Target: Target{Group: &cluster.GroupKey{Job: key}}, job: key})
			}
		}
	}
	return all
}

func ofNode(f scenario.FaultName, id cluster.NodeID) Provocation {
	return Provocation{Fault: f, Target: Target{Words: []string{string(id)}}, node: id}
}

// Bounds of what a provoked operation draws.
const (
	shortestDeadline, longestDeadline = time.Second, 10 * time.Minute
	mostParallel                      = 3
	mostScaled                        = 3
)

// Op is the operation that the fault has done, with what it needs drawn.
func (p Provocation) Op(r *rand.Rand) scenario.Op {
	nodes := []cluster.NodeID{p.node}
	switch p.Fault {
	case scenario.DrainUpdate, scenario.DrainAgain:
		deadline := Draw(r, scenario.Range{Min: shortestDeadline, Max: longestDeadline})
		return &scenario.Drain{Nodes: nodes, Deadline: deadline.Round(time.Millisecond)}
	case scenario.DrainCancel:
		return &scenario.Cancel{Nodes: nodes, Eligible: r.IntN(2) == 1}
	case scenario.JobEdit:
		limit := r.IntN(mostParallel + 1)
		return &scenario.Edit{Job: p.job, MaxParallel: &limit}
	case scenario.JobScale:
		count := r.IntN(2*mostScaled + 1)
		return &scenario.Edit{Job: p.job, Count: &count}
	case scenario.JobPurge:
		return &scenario.Stop{Job: p.job, Purge: true}
	case scenario.NodeReturn:
		return &scenario.NodeChange{Nodes: nodes, Change: scenario.NodeReady}
	}
	return &scenario.Restore{}
}
