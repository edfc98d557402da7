package setting

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Opportunity is an opportunity of an entry for a fault that performs an operation.
type Opportunity struct {
	Fault  scenario.FaultName
	Target Target
	node   cluster.NodeID
	job    cluster.JobKey
}

// Opportunities returns the opportunities of an applied entry. The simulator must try them in this
// order.
func Opportunities(a shims.Applied) []Opportunity {
	switch m := a.Message.(type) {
	case *shims.AllocUpdateDesiredTransition:
		if marked, is := a.Response.(shims.MarksApplied); is && len(marked.Accepted) > 0 {
			return ofMarks(marked)
		}
	case *shims.NodesDrainComplete:
		var all []Opportunity
		if completed, is := a.Response.(shims.CompletionsApplied); is {
			for _, e := range completed.Ended {
				all = append(all, ofNode(scenario.DrainAgain, e.Node))
			}
		}
		return all
	case *shims.NodeUpdateDrain:
		if a.Before.Node(m.Node).Draining() && !a.After.Node(m.Node).Draining() {
			return []Opportunity{ofNode(scenario.DrainAgain, m.Node)}
		}
	case *shims.NodeUpdateStatus:
		if a.Before.Node(m.Node).Reachable() && !a.After.Node(m.Node).Reachable() {
			return []Opportunity{ofNode(scenario.NodeReturn, m.Node)}
		}
	}
	return nil
}

// ofMarks returns the opportunities of an entry with accepted marks.
func ofMarks(marked shims.MarksApplied) []Opportunity {
	all := []Opportunity{{Fault: scenario.StoreRestore}}
	var nodes []cluster.NodeID
	var jobs []cluster.JobKey
	for _, mark := range marked.Accepted {
		if !slices.Contains(nodes, mark.Node) {
			nodes = append(nodes, mark.Node)
			all = append(all, ofNode(scenario.DrainUpdate, mark.Node), ofNode(scenario.DrainCancel, mark.Node),
				ofNode(scenario.DrainPause, mark.Node), ofNode(scenario.PauseAll, mark.Node))
		}
		if key := mark.Group.Job; !slices.Contains(jobs, key) {
			jobs = append(jobs, key)
			for _, f := range [...]scenario.FaultName{scenario.JobEdit, scenario.JobScale, scenario.JobPurge} {
				all = append(all, Opportunity{Fault: f, Target: Target{Group: &cluster.GroupKey{Job: key}}, job: key})
			}
		}
	}
	return all
}

func ofNode(f scenario.FaultName, id cluster.NodeID) Opportunity {
	return Opportunity{Fault: f, Target: Target{Words: []string{string(id)}}, node: id}
}

// Bounds of the drawn parameters of an operation.
const (
	shortestDeadline, longestDeadline = time.Second, 10 * time.Minute
	shortestPause, longestPause       = 10 * time.Millisecond, time.Minute
	mostParallel                      = 3
	mostScaled                        = 3
)

// Op returns the operation of the fault. r draws its parameters.
func (o Opportunity) Op(r *rand.Rand) scenario.Op {
	nodes := []cluster.NodeID{o.node}
	switch o.Fault {
	case scenario.DrainUpdate, scenario.DrainAgain:
		deadline := Draw(r, scenario.Range{Min: shortestDeadline, Max: longestDeadline})
		return &scenario.Drain{Nodes: nodes, Deadline: deadline.Round(time.Millisecond)}
	case scenario.DrainCancel:
		return &scenario.Cancel{Nodes: nodes, Eligible: r.IntN(2) == 1, Undo: r.IntN(3) == 1}
	case scenario.DrainPause:
		return &scenario.PauseDrains{Nodes: nodes, For: drawPause(r)}
	case scenario.PauseAll:
		return &scenario.PauseDrains{For: drawPause(r)}
	case scenario.JobEdit:
		limit := r.IntN(mostParallel + 1)
		return &scenario.Edit{Job: o.job, MaxParallel: &limit}
	case scenario.JobScale:
		count := r.IntN(2*mostScaled + 1)
		return &scenario.Edit{Job: o.job, Count: &count}
	case scenario.JobPurge:
		return &scenario.Stop{Job: o.job, Purge: true}
	case scenario.NodeReturn:
		return &scenario.NodeChange{Nodes: nodes, Change: scenario.NodeReady}
	}
	return &scenario.Restore{}
}

// drawPause draws how long drains are paused.
func drawPause(r *rand.Rand) time.Duration {
	return Draw(r, scenario.Range{Min: shortestPause, Max: longestPause}).Round(time.Millisecond)
}
