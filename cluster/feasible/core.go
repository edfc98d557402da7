package feasible

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// MissingCores returns why the node could not give the group its cores even if no allocation had any, or the
// empty string.
func MissingCores(g *cluster.TaskGroup, n *cluster.Node) string {
	switch need := g.Cores(); {
	case need == 0 || need <= len(n.Cores):
		return ""
	case len(n.Cores) == 0:
		return "the node reports no cores for tasks"
	default:
		return fmt.Sprintf("the node has %d cores for tasks, and the group needs %d", len(n.Cores), need)
	}
}

// FreeCores returns the cores of the node that no allocation has.
func FreeCores(n *cluster.Node, used cluster.CoresInUse) cluster.Cores {
	return slices.DeleteFunc(slices.Clone(n.Cores), func(core int) bool { return used[core] != nil })
}

// AssignCores chooses the cores of an allocation of the group on the node: the first free ones, task by task. It
// returns false if too few are free. A group without cores gets nil.
func AssignCores(g *cluster.TaskGroup, n *cluster.Node, used cluster.CoresInUse) (assigned *cluster.AssignedCores, ok bool) {
	need := g.Cores()
	if need == 0 {
		return nil, true
	}
	free := FreeCores(n, used)
	if len(free) < need {
		return nil, false
	}
	assigned = &cluster.AssignedCores{}
	for _, t := range g.Tasks {
		if t != nil && t.Cores > 0 {
			assigned.All = append(assigned.All, cluster.TaskCores{Task: t.Name, Cores: free[:t.Cores:t.Cores]})
			free = free[t.Cores:]
		}
	}
	return assigned, true
}

// RefusalOfCores returns why an allocation of the group on the node cannot get the cores, or the empty string.
// The FSM calls it.
func RefusalOfCores(g *cluster.TaskGroup, n *cluster.Node, assigned *cluster.AssignedCores, used cluster.CoresInUse) string {
	if why := MissingCores(g, n); why != "" {
		return why
	}
	var all []cluster.TaskCores
	if assigned != nil {
		all = assigned.All
	}
	own, at := make(map[int]bool), 0
	for _, t := range g.Tasks {
		if t == nil || t.Cores == 0 {
			continue
		}
		if at == len(all) || all[at].Task != t.Name || len(all[at].Cores) != t.Cores {
			return fmt.Sprintf("it has not the %d cores of task %s", t.Cores, t.Name)
		}
		for _, core := range all[at].Cores {
			holder := used[core]
			switch _, has := slices.BinarySearch(n.Cores, core); {
			case !has:
				return fmt.Sprintf("the node has no core %d for tasks", core)
			case holder != nil:
				return fmt.Sprintf("core %d is held by allocation %s of job %s", core, holder.ID, holder.JobID)
			case own[core]:
				return fmt.Sprintf("core %d is assigned twice", core)
			}
			own[core] = true
		}
		at++
	}
	if at < len(all) || assigned != nil && at == 0 {
		return "it has cores that nothing requests"
	}
	return ""
}
