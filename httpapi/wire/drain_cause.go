package wire

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// DrainCulprit is the first of the allocations that cause the reason of another one. Ours.
type DrainCulprit struct {
	AllocID string
	// NodeName is empty if the node does not exist.
	NodeID   string
	NodeName string `json:",omitempty"`
	// State is one of a closed set, as the end of a sentence about the allocation: "is unhealthy".
	State string
	// Since is when the state began, null if unknown. More counts the other allocations.
	Since Time
	More  int `json:",omitempty"`
}

func newDrainCulprit(c *rules.Culprit) *DrainCulprit {
	if c == nil {
		return nil
	}
	return &DrainCulprit{
		AllocID: string(c.Alloc), NodeID: string(c.Node), NodeName: c.NodeName, State: c.State.String(), Since: NewTime(c.Since), More: c.More,
	}
}

// DrainPlacement is an allocation that a scheduler placed on a node that drained already. Ours.
type DrainPlacement struct {
	AllocID   string
	Namespace string
	JobID     string
	TaskGroup string
}

func newDrainPlacement(a *cluster.Allocation) *DrainPlacement {
	if a == nil {
		return nil
	}
	return &DrainPlacement{AllocID: string(a.ID), Namespace: string(a.Namespace), JobID: string(a.JobID), TaskGroup: a.TaskGroup}
}

// seeFor returns the command that shows more about the cause of a reason, or empty. The node is that of
// the drain.
func seeFor(r *rules.AllocExplanation, node cluster.NodeID) string {
	const command = "nodedrain "
	switch {
	case r.Culprit != nil:
		return command + "alloc status " + string(r.Culprit.Alloc)
	case r.Eval != nil:
		return command + "eval status " + string(r.Eval.ID)
	}
	switch job := r.Group.Job; r.Reason {
	case rules.ReasonBelowBudget, rules.ReasonNoPacedMoves:
		return command + "job status " + inNamespace(job.Namespace) + string(job.ID)
	case rules.ReasonDisconnected:
		return command + "node status " + string(node)
	case rules.ReasonStopping, rules.ReasonBatchRunning, rules.ReasonWaitingForHealth:
		return command + "alloc status " + string(r.Alloc)
	case rules.ReasonHeldForVolumes:
		if r.Held != nil && len(r.Held.Volumes) > 0 {
			v := r.Held.Volumes[0]
			return command + "volume status " + inNamespace(v.Namespace) + string(v.Volume)
		}
	case rules.ReasonWritePending:
		if r.Attempts > 0 {
			return command + "server members"
		}
	}
	return ""
}

// inNamespace is the flag of a command for a namespace, unless it is the default one.
func inNamespace(n cluster.Namespace) string {
	if n == "" || n == cluster.DefaultNamespace {
		return ""
	}
	return "-namespace " + string(n) + " "
}
